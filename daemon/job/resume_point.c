#include "daemon/job/resume_point.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/run/checkpoints.h"
#include "common/system/file.h"

static int resume_list(const char *run_dir, struct dirent ***names, struct error *e)
{
    char folder[PATH_MAX];
    int status = file_path(folder, e, "%s/checkpoints", run_dir);

    return status ? status : checkpoint_list(folder, names, e);
}

int64_t resume_point_newest_step(const char *run_dir, struct error *e)
{
    struct dirent **names;
    int64_t step = 0;
    int count = resume_list(run_dir, &names, e);

    if (count < 0)
        return count;
    if (count > 0)
        checkpoint_step(names[0]->d_name, &step);
    checkpoint_list_free(names, count);
    return step;
}

static int resume_read_state(const char *run_dir, int64_t number, struct resume_point *at,
                             struct error *e)
{
    char path[PATH_MAX], hex[DIGEST_BYTES];
    const char *digest = NULL;
    json_int_t step, epoch, images;

    json_t *state =
        file_path(path, e, "%s/checkpoints/step-%08lld/state.json", run_dir, (long long)number)
            ? NULL
            : json_document_load(path, e);
    if (!state)
        return -(int)e->code;
    int bad = json_unpack(state, "{s:I, s:I, s:I, s?s}", "step", &step, "epoch_number", &epoch,
                          "epoch_images", &images, "xxh128", &digest);
    if (!bad && digest) {
        checkpoint_state_digest(state, hex);
        bad = strcmp(digest, hex);
    }
    int64_t best = json_integer_value(json_array_get(checkpoint_best(state), 0));
    json_decref(state);
    if (bad)
        return error_set(e, ERR_CORRUPT, "%s has been changed since it was written", path);
    at->step = step;
    at->epoch = epoch;
    at->epoch_images = images;
    at->best = best;
    return 0;
}

int resume_point_find(const char *run_dir, struct resume_point *at, struct error *e)
{
    struct dirent **names;
    int count = resume_list(run_dir, &names, e), status = 0;

    *at = (struct resume_point){0};
    if (count < 0)
        return count;
    for (int i = 0; i < count && (i == 0 || status); i++) {
        int64_t step = 0;
        checkpoint_step(names[i]->d_name, &step);
        status = resume_read_state(run_dir, step, at, e);
        if (status && i == 0) {
            at->passed_over = step;
            snprintf(at->why_not, sizeof at->why_not, "%.255s", e->text);
        }
    }
    checkpoint_list_free(names, count);
    return status ? status : count > 0;
}

int64_t resume_point_usable_step(const char *run_dir)
{
    struct resume_point at;
    struct error e;
    int found = resume_point_find(run_dir, &at, &e);

    if (found < 0)
        log_warning("%s", e.text);
    return found > 0 ? at.step : 0;
}
