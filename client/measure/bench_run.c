/*
 * A short training for its speed, in a folder of its own that is removed afterwards. mpirun is
 * started by the daemon's launcher, so that what is measured is what a job would get.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/measure/bench.h"
#include "client/measure/speeds.h"
#include "common/clock.h"
#include "common/job/job_document.h"
#include "common/json.h"
#include "common/system/file.h"
#include "common/system/install_paths.h"
#include "launch/launch.h"

#define LOG_TAIL     600 /* bytes of the workers' output that an error shows */
#define KILL_SECONDS 10  /* after a signal, an mpirun that is still there is killed */

struct run {
    const struct job_spec *spec;
    char dir[PATH_MAX - 64];
    struct launch_process process;
};

static volatile sig_atomic_t interrupted; /* so often */

static void note_signal(int number)
{
    (void)number;
    if (interrupted < 2)
        interrupted++;
}

int bench_find_worker(char **path, struct error *e)
{
    char self[PATH_MAX], beside[PATH_MAX + 16];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    if (n > 0) {
        self[n] = '\0';
        snprintf(beside, sizeof beside, "%s/train-worker", dirname(self));
        if (launch_find_program(beside, path, e) == 0)
            return 0;
    }
    return launch_find_program("train-worker", path, e);
}

static int bench_make_folder(struct run *r, struct error *e)
{
    char path[PATH_MAX];
    const char *tmp = getenv("TMPDIR");

    snprintf(r->dir, sizeof r->dir, "%s/trainctl-bench-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(r->dir)) {
        error_set_errno(e, errno, "cannot make the folder %s", r->dir);
        r->dir[0] = '\0';
        return -(int)e->code;
    }
    snprintf(path, sizeof path, "%s/job.json", r->dir);
    json_t *job = job_spec_to_json(r->spec);
    int status = json_file_write(path, job, e);
    json_decref(job);
    return status;
}

/* Until mpirun has ended; a signal to us ends it too, and a second one kills it. */
static int wait_for_end(struct run *r, const char *attempt_dir, struct error *e)
{
    struct sigaction note = {.sa_handler = note_signal};
    struct pollfd ended = {.fd = r->process.pidfd, .events = POLLIN};
    int64_t code, signal_number;
    double asked = 0; /* when it was asked to end; 0: it was not */

    sigaction(SIGINT, &note, NULL);
    sigaction(SIGTERM, &note, NULL);
    sigaction(SIGHUP, &note, NULL);
    while (poll(&ended, 1, 200) <= 0)
        if (interrupted && asked == 0) {
            launcher_local.stop(&r->process, attempt_dir, LAUNCH_STOP_NOW);
            asked = clock_monotonic();
        } else if (interrupted > 1 || (asked > 0 && clock_monotonic() - asked > KILL_SECONDS)) {
            launcher_local.stop(&r->process, attempt_dir, LAUNCH_STOP_KILL);
        }
    launch_reap(&r->process, &code, &signal_number);
    /* An mpirun that was killed leaves its ranks. With the last one their memory is given back. */
    if (launcher_local.survivors(&r->process, attempt_dir) > 0) {
        launcher_local.stop(&r->process, attempt_dir, LAUNCH_STOP_KILL);
        launcher_local.survivors(&r->process, attempt_dir);
    }
    launch_process_close(&r->process);
    if (interrupted)
        return error_set(e, ERR_INTERRUPTED, "interrupted");
    return code == 0 ? 0 : error_set(e, ERR_INTERNAL, "the workers failed");
}

/* Why the workers failed: the reason of their event, or the end of what they printed. */
static void explain_failure(const char *attempt_dir, struct error *e)
{
    char path[PATH_MAX], *text;
    size_t bytes;
    struct error ignored;

    snprintf(path, sizeof path, "%s/events.jsonl", attempt_dir);
    char *reason = bench_failure(path);
    if (reason) {
        error_set(e, e->code, "the workers failed: %s", reason);
        free(reason);
        return;
    }
    snprintf(path, sizeof path, "%s/stdout.log", attempt_dir);
    if (file_read(path, 1 << 20, &text, &bytes, &ignored))
        return;
    error_set(e, e->code, "the workers failed; the end of their output:\n%s",
              text + (bytes > LOG_TAIL ? bytes - LOG_TAIL : 0));
    free(text);
}

static int bench_launch(struct run *r, const char *attempt_dir, const char *mpirun,
                        const char *worker, struct error *e)
{
    int64_t threads = speeds_threads(r->spec);
    bool fits =
        threads * r->spec->cluster.workers_per_node <= launch_node_slots(r->spec->cluster.smt);
    struct placement_machine machine;
    placement_read_mine(&machine);
    struct launch_request request = {
        .machine = machine,
        .attempt = 1,
        .run_dir = r->dir,
        .spec = r->spec,
        .threads = threads,
        .bind = fits ? r->spec->cluster.bind : JOB_BIND_NONE,
        .mpirun = mpirun,
        .worker = worker,
        .agent = LAUNCH_AGENT,
        .measure_peak = true,
    };
    int status = launcher_local.start(&request, &r->process, e);

    if (!status && !launch_release(&r->process))
        status = error_set(e, ERR_INTERNAL, "mpirun ended before it began");
    if (!status)
        status = wait_for_end(r, attempt_dir, e);
    return status;
}

static int run_job(struct run *r, struct bench *bench, struct error *e)
{
    char attempt_dir[PATH_MAX - 32], events[PATH_MAX];
    char *mpirun = NULL, *worker = NULL;
    int status = launch_find_program(MPIRUN, &mpirun, e);

    if (!status)
        status = bench_find_worker(&worker, e);
    if (!status)
        status = bench_make_folder(r, e);
    if (!status) {
        snprintf(attempt_dir, sizeof attempt_dir, "%s/attempt-1", r->dir);
        snprintf(events, sizeof events, "%s/events.jsonl", attempt_dir);
        status = bench_launch(r, attempt_dir, mpirun, worker, e);
        if (status && e->code != ERR_INTERRUPTED)
            explain_failure(attempt_dir, e);
    }
    if (!status)
        status = bench_read(events, r->spec, bench, e);
    free(mpirun);
    free(worker);
    return status;
}

int bench_run(const struct job_spec *spec, struct bench *bench, struct error *e)
{
    struct run r = {
        .spec = spec, .process = {.pidfd = -1, .gate = -1}
    };
    struct error ignored;
    int status = run_job(&r, bench, e);

    if (r.dir[0])
        file_remove_tree(r.dir, &ignored);
    return status;
}
