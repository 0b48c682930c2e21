#include "worker/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/log.h"
#include "worker/evaluate.h"
#include "worker/model/weights.h"

static int write_state(const struct run *r, int64_t step, const char *folder, struct error *e)
{
    char path[PATH_MAX + 128];
    json_t *state = json_pack("{s:I, s:f, s:I, s:I, s:I, s:I}", "step", (json_int_t)step, "epoch",
                              (double)step / (double)r->plan->steps_per_epoch, "images_seen",
                              (json_int_t)(step * r->plan->global_batch), "global_batch",
                              (json_int_t)r->plan->global_batch, "world_size",
                              (json_int_t)r->world, "seed", (json_int_t)r->spec->seed);
    if (!state)
        return error_set(e, ERR_NO_MEMORY, "no memory for state.json");
    snprintf(path, sizeof path, "%s/state.json", folder);
    int status = json_file_write(path, state, e);
    json_decref(state);
    return status;
}

static int fill_folder(const struct run *r, const struct sgd *optimizer, int64_t step,
                       const char *folder, struct error *e)
{
    char path[PATH_MAX + 128], steps[32];
    struct safetensors_meta meta[] = {{"format", "pt"}, {"arch", r->spec->model.arch}, {"step", steps}};

    snprintf(steps, sizeof steps, "%lld", (long long)step);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    int status = model_save(r->model, path, meta, sizeof meta / sizeof meta[0], e);
    if (status)
        return status;
    snprintf(path, sizeof path, "%s/optimizer.safetensors", folder);
    status = sgd_save(optimizer, path, e);
    return status ? status : write_state(r, step, folder, e);
}

static int step_of_name(const char *name, long long *step)
{
    int used = 0;
    return sscanf(name, "step-%lld%n", step, &used) == 1 && name[used] == '\0';
}

static int newest_first(const struct dirent **a, const struct dirent **b)
{
    long long x = 0, y = 0;
    step_of_name((*a)->d_name, &x);
    step_of_name((*b)->d_name, &y);
    return (x < y) - (x > y);
}

static int is_checkpoint(const struct dirent *entry)
{
    long long step;
    return step_of_name(entry->d_name, &step);
}

static void remove_old(const struct run *r, const char *checkpoints)
{
    struct dirent **names;
    struct error e;
    int count = scandir(checkpoints, &names, is_checkpoint, newest_first);

    for (int i = 0; i < count; i++) {
        char path[PATH_MAX + 300];
        snprintf(path, sizeof path, "%s/%s", checkpoints, names[i]->d_name);
        if (i >= r->spec->checkpoint.keep && file_remove_tree(path, &e))
            log_warning("%s", e.text);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
}

static int write_folder(struct run *r, const struct sgd *optimizer, int64_t step, struct error *e)
{
    char checkpoints[PATH_MAX + 16], hidden[PATH_MAX + 64], final[PATH_MAX + 64];

    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", r->run_dir);
    snprintf(hidden, sizeof hidden, "%s/.step-%08lld.tmp", checkpoints, (long long)step);
    snprintf(final, sizeof final, "%s/step-%08lld", checkpoints, (long long)step);
    int status = file_remove_tree(hidden, e);
    if (!status)
        status = file_make_dirs(hidden, e);
    if (!status)
        status = fill_folder(r, optimizer, step, hidden, e);
    if (!status)
        status = file_remove_tree(final, e); /* of a run by hand in the same folder */
    if (!status && rename(hidden, final))
        status = error_set_errno(e, errno, "cannot name the checkpoint %s", final);
    if (status) {
        struct error ignored;
        file_remove_tree(hidden, &ignored);
        return error_prefix(e, "checkpoint of step %lld", (long long)step);
    }
    file_sync_dir(checkpoints);
    remove_old(r, checkpoints);
    return 0;
}

static int say_checkpoint(struct run *r, int64_t step, const char *relative, double seconds,
                          struct error *e)
{
    report_begin(r->report, EVENT_CHECKPOINT);
    report_int(r->report, "step", step);
    report_real(r->report, "epoch", (double)step / (double)r->plan->steps_per_epoch);
    report_text(r->report, "path", relative);
    report_real(r->report, "seconds", seconds);
    return report_end(r->report, e);
}

int checkpoint_write(struct run *r, const struct sgd *optimizer, int64_t step, char *relative,
                     struct error *e)
{
    char model_path[64];
    double start = clock_monotonic();
    int status = 0;

    r->phase = "checkpoint";
    average_statistics(r);
    snprintf(model_path, sizeof model_path, "checkpoints/step-%08lld/model.safetensors",
             (long long)step);
    if (r->rank == 0) {
        status = write_folder(r, optimizer, step, e);
        if (!status)
            status = say_checkpoint(r, step, model_path, clock_monotonic() - start, e);
    }
    status = agree_on_error(r->comm, status, e, &r->failed_at);
    if (!status && relative)
        memcpy(relative, model_path, sizeof model_path);
    return status;
}
