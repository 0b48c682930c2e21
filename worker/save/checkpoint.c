#include "worker/save/checkpoint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/dataset/class_names.h"
#include "common/log.h"
#include "common/run/checkpoints.h"
#include "common/run/weights.h"
#include "common/system/file.h"
#include "worker/ema.h"
#include "worker/model/weights.h"
#include "worker/save/rank_statistics.h"
#include "worker/watch/stall.h"

#define KEPT_IN_TRAINING 2 /* number kept during training if checkpoint.keep is "auto" */

struct checkpoint_parts {
    struct optimizer *optimizer;
    const struct run_state *state;
    json_t *digests; /* of the statistics files; usually empty */
};

static int checkpoint_fill_folder(struct run *r, const struct checkpoint_parts *parts,
                                  const char *folder, struct error *e)
{
    const struct run_state *state = parts->state;
    char path[PATH_MAX], steps[32];
    struct safetensors_meta meta[] = {
        {"format",          "pt"                                       },
        {"arch",            r->spec->model.arch                        },
        {"step",            steps                                      },
        {WEIGHTS_BLUR_POOL, r->spec->model.blur_pool ? "true" : "false"},
        {CLASS_NAMES_KEY,   r->classes                                 }
    };
    size_t meta_count = sizeof meta / sizeof meta[0] - (r->classes ? 0 : 1);

    snprintf(steps, sizeof steps, "%lld", (long long)state->step);
    file_path(path, NULL, "%s/model.safetensors", folder);
    int status = model_save(r->model, path, meta, meta_count, e);
    if (!status && ema_has_begun(r->ema)) {
        file_path(path, NULL, "%s/" CHECKPOINT_EMA, folder);
        ema_swap(r);
        status = model_save(r->model, path, meta, meta_count, e);
        ema_swap(r);
    }
    if (status)
        return status;
    file_path(path, NULL, "%s/optimizer.safetensors", folder);
    status = optimizer_save(parts->optimizer, state->step, path, e);
    return status ? status : run_state_write(state, r->spec, folder, parts->digests, e);
}

static int checkpoint_write_folder(struct run *r, const struct checkpoint_parts *parts,
                                   const char *checkpoints, const char *hidden, struct error *e)
{
    int64_t step = parts->state->step;
    char final[PATH_MAX];

    file_path(final, NULL, "%s/step-%08lld", checkpoints, (long long)step);
    int status = checkpoint_fill_folder(r, parts, hidden, e);
    if (!status)
        status = file_remove_tree(final, e); /* left over from an earlier attempt */
    if (!status && rename(hidden, final))
        status = error_set_errno(e, errno, "cannot rename the checkpoint to %s", final);
    if (status)
        return status;
    file_sync_dir(checkpoints);
    int64_t keep = r->spec->checkpoint.keep;
    checkpoint_keep(checkpoints, step, keep ? keep : KEPT_IN_TRAINING, r->resumes);
    return 0;
}

int checkpoint_write(struct run *r, struct optimizer *optimizer, const struct run_state *state,
                     bool stopped, char *relative, struct error *e)
{
    struct checkpoint_parts parts = {optimizer, state, json_object()};
    int64_t step = state->step;
    char checkpoints[PATH_MAX], hidden[PATH_MAX], model_path[64];
    double start = clock_monotonic();
    struct error ignored;
    int status = 0;

    r->phase = "checkpoint";
    stall_phase(r->stall, STALL_IN_CHECKPOINT);
    stall_doing(r->stall, STALL_FILES);
    file_path(checkpoints, NULL, "%s/checkpoints", r->run_dir);
    file_path(hidden, NULL, "%s/.step-%08lld.tmp", checkpoints, (long long)step);
    if (r->rank == 0) {
        if (checkpoint_remove_unfinished(checkpoints, e))
            log_warning("%s", e->text);
        status = file_make_dirs(hidden, e);
    }
    status = run_agree(r, status, e);
    if (!status && stopped && r->averaged_at != step)
        status = rank_statistics_save(r, hidden, parts.digests, e);
    rank_statistics_average(r, step);
    snprintf(model_path, sizeof model_path, "checkpoints/step-%08lld/model.safetensors",
             (long long)step);
    if (!status) {
        if (r->rank == 0)
            status = checkpoint_write_folder(r, &parts, checkpoints, hidden, e);
        if (r->rank == 0 && !status) {
            report_begin(r->report, EVENT_CHECKPOINT);
            report_int(r->report, "step", step);
            report_real(r->report, "epoch", run_epoch(r, step));
            report_text(r->report, "path", model_path);
            report_real(r->report, "seconds", clock_monotonic() - start);
            status = report_end(r->report, e);
        }
        status = run_agree(r, status, e);
    }
    json_decref(parts.digests);
    if (status && r->rank == 0)
        file_remove_tree(hidden, &ignored);
    if (status)
        return error_prefix(e, "checkpoint of step %lld", (long long)step);
    if (relative)
        memcpy(relative, model_path, sizeof model_path);
    return 0;
}

void checkpoint_keep_last(const struct run *r, int64_t step)
{
    char checkpoints[PATH_MAX];

    file_path(checkpoints, NULL, "%s/checkpoints", r->run_dir);
    if (r->rank == 0 && r->spec->checkpoint.keep == 0)
        checkpoint_keep(checkpoints, step, 1, r->resumes);
}
