#include <stdio.h>
#include <string.h>

#include "common/run/checkpoints.h"
#include "common/run/provenance.h"
#include "daemon/archive/job_archive.h"

static const char *const run_files[] = {"job.json", "plan.json", "events.jsonl", "result.json",
                                        PROVENANCE_NAME};
static const char *const attempt_files[] = {"stdout.log", "trace.json", "layers.txt",
                                            "predictions.csv"};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const char *job_archive_attempt_file(size_t i)
{
    return i < COUNT(attempt_files) ? attempt_files[i] : NULL;
}

static bool is_listed(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

static bool is_of_checkpoint(const char *name)
{
    const struct checkpoint_file *file;

    for (size_t i = 0; (file = checkpoint_file_at(i)); i++)
        if (strcmp(name, file->name) == 0)
            return true;
    return strcmp(name, "state.json") == 0;
}

/* The number as it is printed, and the name behind it, so that no two texts mean one file. */
bool job_archive_takes(const char *name)
{
    long long number = 0;
    char again[64];
    int used = 0;

    if (is_listed(name, run_files, COUNT(run_files)))
        return true;
    if (sscanf(name, "attempt-%9lld/%n", &number, &used) == 1 && used > 0 && number > 0) {
        snprintf(again, sizeof again, "attempt-%lld/", number);
        return strlen(again) == (size_t)used && memcmp(again, name, (size_t)used) == 0 &&
               is_listed(name + used, attempt_files, COUNT(attempt_files));
    }
    if (sscanf(name, "checkpoints/step-%15lld/%n", &number, &used) == 1 && used > 0 && number > 0) {
        snprintf(again, sizeof again, "checkpoints/step-%08lld/", number);
        return strlen(again) == (size_t)used && memcmp(again, name, (size_t)used) == 0 &&
               is_of_checkpoint(name + used);
    }
    return false;
}
