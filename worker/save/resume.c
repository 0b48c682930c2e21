#include "worker/save/resume.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/run/checkpoints.h"

static int resume_find_named(const char *from, const struct job_spec *spec, char path[PATH_MAX],
                             struct run_state *state, struct error *e)
{
    if (!realpath(from, path)) {
        path[0] = '\0';
        return error_set(e, ERR_NOT_FOUND,
                         "checkpoint %s does not exist: --resume takes a checkpoint folder, for "
                         "example checkpoints/step-00000520, or latest",
                         from);
    }
    int status = run_state_read(path, spec, state, e);
    struct error what = *e;
    if (status == -ERR_CORRUPT)
        return error_set(e, ERR_CORRUPT, "%s; --resume latest takes the newest one that is whole",
                         what.text);
    return status;
}

static int resume_find_latest(const char *run_dir, const struct job_spec *spec, char path[PATH_MAX],
                              struct run_state *state, json_t *warnings, struct error *e)
{
    char checkpoints[PATH_MAX + 16], folder[PATH_MAX + 300];
    struct dirent **names;
    struct error first;
    int status = 0;

    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", run_dir);
    int count = checkpoint_list(checkpoints, &names, e);
    if (count < 0)
        return count;
    for (int i = 0; i < count && !path[0]; i++) {
        snprintf(folder, sizeof folder, "%s/%s", checkpoints, names[i]->d_name);
        status = strlen(folder) < PATH_MAX
                     ? run_state_read(folder, spec, state, e)
                     : error_set(e, ERR_USAGE, "the path %.200s... is too long", folder);
        if (!status)
            memcpy(path, folder, strlen(folder) + 1);
        else
            json_array_append_new(warnings, json_sprintf("%s; an older one is tried", e->text));
        if (status && i == 0)
            first = *e;
    }
    checkpoint_list_free(names, count);
    if (count == 0)
        json_array_append_new(
            warnings,
            json_sprintf("no checkpoint in %s: starting from the beginning", checkpoints));
    if (!status)
        return 0;
    *e = first;
    return error_prefix(e, "none of the %d checkpoints in %s can be resumed", count, checkpoints);
}

int resume_find(const char *run_dir, const char *from, const struct job_spec *spec,
                char path[PATH_MAX], struct run_state *state, json_t *warnings, struct error *e)
{
    path[0] = '\0';
    if (strcmp(from, "latest") == 0)
        return resume_find_latest(run_dir, spec, path, state, warnings, e);
    return resume_find_named(from, spec, path, state, e);
}
