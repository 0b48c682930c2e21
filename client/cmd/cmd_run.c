#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/cmd/cmd_plan.h"
#include "client/document.h"
#include "client/job.h"
#include "client/local.h"
#include "client/views/print.h"
#include "client/views/progress.h"
#include "client/views/screen.h"
#include "client/views/view.h"
#include "common/clock.h"
#include "common/job/job_document.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "common/system/file.h"

struct run {
    const struct cmd_args *args;
    char folder[PATH_MAX];
    int64_t attempt; /* newest attempt; 0: none yet */
    struct planned planned;
    struct local local;
};

/* Returns a static buffer, valid until the next call. */
static const char *run_path(const struct run *r, const char *name, int64_t attempt)
{
    static char path[PATH_MAX];

    if (attempt)
        file_path(path, NULL, "%s/%s-%lld", r->folder, name, (long long)attempt);
    else
        file_path(path, NULL, "%s/%s", r->folder, name);
    return path;
}

/* Chooses --run-dir, or in the current folder the job's name, or the name of its file. */
static int run_choose_folder(struct run *r, const char *name, struct error *e)
{
    const char *given = cmd_value(r->args, "run-dir");
    char base[NAME_MAX + 1], current[PATH_MAX] = "";

    snprintf(base, sizeof base, "%s", name ? name : file_base_name(r->args->operands[0]));
    if (!name)
        base[strcspn(base, ".")] = '\0';
    for (char *c = base; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
            *c = '-';
    if (!given)
        given = strspn(base, ".-") || !*base ? "run" : base;
    if (*given != '/' && !getcwd(current, sizeof current))
        return error_set_errno(e, errno, "cannot determine the current folder");
    return file_path(r->folder, e, "%s%s%s", current, *current ? "/" : "", given);
}

/* A job with another number of workers is the same job, because the workers replan it. */
static int run_check_same_job(const struct run *r, const json_t *job, struct error *e)
{
    json_t *before = json_document_load(run_path(r, "job.json", 0), e);
    int status = before ? 0 : -(int)e->code;

    json_object_set(before, "cluster", json_object_get(job, "cluster"));
    json_object_set(before, "batch_per_worker", json_object_get(job, "batch_per_worker"));
    if (before && !json_equal(before, job))
        status =
            error_set(e, ERR_CONFLICT,
                      "%s contains a run of another job, see its job.json: specify another folder "
                      "with --run-dir",
                      r->folder);
    json_decref(before);
    return status;
}

static int run_prepare_folder(struct run *r, json_t *job, struct error *e)
{
    struct launch_process earlier = {.pidfd = -1, .gate = -1};
    bool resumes = cmd_flag(r->args, "resume");
    int status = 0;

    if (access(run_path(r, "job.json", 0), F_OK) == 0) {
        status = run_check_same_job(r, job, e);
        while (!status && access(run_path(r, "attempt", r->attempt + 1), F_OK) == 0)
            r->attempt++;
        if (!status && launcher_local.survivors(&earlier, run_path(r, "attempt", r->attempt)))
            status =
                error_set(e, ERR_CONFLICT, "the run in %s is still in progress, as process %ld",
                          r->folder, (long)earlier.members.items[0].pid);
        launch_process_close(&earlier);
        if (!status && !resumes)
            status =
                error_set(e, ERR_CONFLICT,
                          "%s contains a run of this job: continue from its newest checkpoint with "
                          "--resume, or specify another folder with --run-dir",
                          r->folder);
    } else if (resumes) {
        status = error_set(e, ERR_NOT_FOUND, "%s has no run to resume", r->folder);
    } else if (rmdir(r->folder) && errno != ENOENT) {
        status =
            error_set(e, ERR_CONFLICT,
                      "%s is not an empty folder: specify another one with --run-dir", r->folder);
    }
    if (!status)
        status = file_make_dirs(r->folder, e);
    return status ? status : json_file_write(run_path(r, "job.json", 0), job, e);
}

/* Returns what is known before the first event; values that events will set are null. */
static json_t *run_describe(const struct run *r)
{
    const struct plan *plan = r->planned.plan;

    return must_alloc(json_pack(
        "{s:s, s:o, s:I, s:I, s:I, s:I, s:o, s:s, s:o, s:n, s:n, s:n, s:n, s:n, s:n, s:n, s:n, "
        "s:n}",
        "state", "starting", "name", json_text_or_null(r->planned.spec->name), "attempt",
        (json_int_t)r->attempt + 1, "train_steps", (json_int_t)plan->train_steps, "eval_images",
        (json_int_t)plan->eval_images, "global_batch", (json_int_t)plan->global_batch, "started_at",
        json_number(clock_now()), "run_dir", r->folder, "plan", plan_to_json(plan), "step", "epoch",
        "loss", "lr", "images_per_sec", "ttt_seconds", "top1", "top5", "reason"));
}

static void run_follow(struct local *l)
{
    bool view = !client.json && terminal_full() && screen_open(&(struct error){0}) == 0;
    struct progress shown = {0};
    struct stream_event event;
    struct error e;
    struct job job;

    if (view && view_job(0, false, l, &e) == VIEW_SIGNALLED)
        raise(SIGINT);
    screen_close();
    for (int stops = 0; !l->ended; stops = l->stops) {
        int news = local_next(l, -1, 1, &event);
        job_read(l->job, &job);
        if (!client.json && news == STREAM_EVENT && !l->ended)
            progress_show(&shown, &job);
        if (l->stops == 1 && !stops)
            fputs("trainctl: stopping after this step; press Ctrl-C again to stop at once\n",
                  stderr);
    }
}

static int run_conclude(const struct run *r)
{
    struct error e;
    struct job job;

    job_read(r->local.job, &job);
    if (client.json)
        print_json(r->local.job);
    else
        cmd_show_entry.print(r->local.job);
    fflush(stdout);
    if (job_outcome(&job) == 0)
        return 0;
    error_set(&e, ERR_INTERNAL, "%s", job.reason);
    if (job_outcome(&job) == 1 && !r->local.explained)
        local_append_log(&r->local, &e);
    fprintf(stderr, "trainctl: %s\n  The same command with --resume continues in %s", e.text,
            r->folder);
    fprintf(stderr, job.checkpoint_step > 0 ? ", from the checkpoint of step %.0f\n" : "\n",
            job.checkpoint_step);
    return job_outcome(&job);
}

static int run_start_here(struct run *r, struct error *e)
{
    const struct job_spec *spec = r->planned.spec;
    json_t *job = job_spec_to_json(spec);
    int status = 0;

    if (spec->cluster.launcher != JOB_LAUNCHER_LOCAL)
        status =
            error_set(e, ERR_UNSUPPORTED,
                      "cluster.launcher is slurm: send the job to a daemon with trainctl submit, "
                      "or run it here with --set cluster.launcher=local");
    if (!status)
        status = run_choose_folder(r, spec->name, e);
    if (!status)
        status = run_prepare_folder(r, job, e);
    json_decref(job);
    if (status)
        return status;
    plan_print_warnings(stderr, r->planned.plan);
    r->local = (struct local){
        .spec = spec,
        .run_dir = r->folder,
        .attempt = r->attempt + 1,
        .resumes = cmd_flag(r->args, "resume"),
        .job = run_describe(r),
    };
    return local_start(&r->local, e);
}

static int cmd_run(const struct cmd_args *args)
{
    struct run r = {.args = args};
    struct error e;

    api_hurry(1000); /* to get speeds that a daemon may have measured */
    int code = plan_file(args->operands[0], args, &r.planned);
    if (code == 0 && run_start_here(&r, &e)) {
        code = cmd_fail(&e);
    } else if (code == 0) {
        run_follow(&r.local);
        code = run_conclude(&r);
    }
    local_clear(&r.local);
    planned_clear(&r.planned);
    return code;
}

/* clang-format off */
const struct cmd cmd_run_entry = {
    .name = "run", .synopsis = "[--set KEY=VALUE...] [--run-dir DIR] [--resume] FILE|-",
    .help = "train on this machine without a daemon, and show the progress", .example = "trainctl run --set epochs=1 job.json",
    .run = cmd_run, .completion = "file", .operands = {1, 1},
    .options = {
        OPTION("set", 0, "KEY=VALUE", "change a key of the document first, e.g. lr.base=0.2", "key"),
        OPTION("run-dir", 0, "DIR", "folder for checkpoints, events and log (default: ./NAME, from the job's name, otherwise from FILE)", "file"),
        OPTION("resume", 0, NULL, "continue from the newest checkpoint of an earlier run in that folder", NULL),
    },
};
/* clang-format on */
