#include "client/local.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "common/run/attempt.h"
#include "common/system/file.h"
#include "common/system/install_paths.h"

#define LOG_TAIL      600
#define KILL_SECONDS  10
#define STALL_SECONDS 300 /* traind's default stall_seconds */
#define LOOK_SECONDS  0.1

static volatile sig_atomic_t signals;

static void local_note_signal(int number)
{
    (void)number;
    signals++;
}

int local_find_worker(char **path, struct error *e)
{
    char self[PATH_MAX], beside[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    if (n > 0) {
        self[n] = '\0';
        if (file_path(beside, NULL, "%s/train-worker", dirname(self)) == 0 &&
            launch_find_program(beside, path, e) == 0)
            return 0;
    }
    return launch_find_program("train-worker", path, e);
}

int64_t local_threads(const struct job_spec *spec)
{
    if (spec->cluster.threads_per_worker > 0)
        return spec->cluster.threads_per_worker;
    int64_t share = launch_node_slots(spec->cluster.smt) / spec->cluster.workers_per_node;
    return share > 0 ? share : 1;
}

int local_start(struct local *l, struct error *e)
{
    const struct job_spec *spec = l->spec;
    struct sigaction note = {.sa_handler = local_note_signal};
    char *mpirun = NULL, *worker = NULL;
    int64_t threads = local_threads(spec);
    bool fits = threads * spec->cluster.workers_per_node <= launch_node_slots(spec->cluster.smt);
    int status = launch_find_program(MPIRUN, &mpirun, e);

    l->process = (struct launch_process){.pidfd = -1, .gate = -1};
    if (!status)
        status = file_path(l->attempt_dir, e, "%s/attempt-%lld", l->run_dir, (long long)l->attempt);
    if (!status)
        status = local_find_worker(&worker, e);
    struct launch_request request = {
        .attempt = l->attempt,
        .run_dir = l->run_dir,
        .spec = spec,
        .threads = threads,
        .bind = fits ? spec->cluster.bind : JOB_BIND_NONE,
        .mpirun = mpirun,
        .worker = worker,
        .agent = LAUNCH_AGENT,
        .measure_peak = l->benchmarks,
        .stall_seconds = l->benchmarks ? 0 : STALL_SECONDS,
        .resumes = l->resumes,
    };
    placement_read_mine(&request.machine);
    if (!status)
        status = launcher_local.start(&request, &l->process, e);
    if (!status && !launch_release(&l->process))
        status = error_set(e, ERR_INTERNAL, "mpirun ended before starting");
    sigaction(SIGINT, &note, NULL);
    sigaction(SIGTERM, &note, NULL);
    sigaction(SIGHUP, &note, NULL);
    signal(SIGPIPE, SIG_IGN); /* the run continues if the reader of stdout ends */
    free(mpirun);
    free(worker);
    return status;
}

void local_stop(struct local *l)
{
    int how = l->stops++ + (l->benchmarks ? 1 : 0);

    launcher_local.stop(&l->process, l->attempt_dir,
                        how == 0   ? LAUNCH_STOP_AFTER_STEP
                        : how == 1 ? LAUNCH_STOP_NOW
                                   : LAUNCH_STOP_KILL);
    l->stopped_at = clock_monotonic();
}

/* Ranks may outlive a killed mpirun; their shared memory is freed with the last one. */
static void local_end(struct local *l)
{
    int64_t signal_number;

    launch_reap(&l->process, &l->code, &signal_number);
    if (launcher_local.survivors(&l->process, l->attempt_dir) > 0) {
        launcher_local.stop(&l->process, l->attempt_dir, LAUNCH_STOP_KILL);
        launcher_local.survivors(&l->process, l->attempt_dir);
    }
    launch_process_close(&l->process);
    l->gone = true;
}

void local_append_log(const struct local *l, struct error *e)
{
    char path[PATH_MAX], *text;
    size_t bytes;

    if (file_path(path, NULL, "%s/stdout.log", l->attempt_dir) ||
        file_read(path, 1 << 20, &text, &bytes, NULL))
        return;
    error_append(e, "; the end of %s:\n%s", path, text + (bytes > LOG_TAIL ? bytes - LOG_TAIL : 0));
    free(text);
}

void local_clear(struct local *l)
{
    if (l->events)
        fclose(l->events);
    json_decref(l->event);
    json_decref(l->job);
}

static void local_take_event(struct local *l, enum event_type type)
{
    static const char *const own[EVENT_TYPE_COUNT][3] = {
        [EVENT_RUN_START] = {"resumed_step", "step",             "running"   },
        [EVENT_STEP] = {"top1",         "train_top1",       "running"   },
        [EVENT_EVAL_PROGRESS] = {"images",       "evaluated_images", "evaluating"},
        [EVENT_EVAL] = {"loss",         "eval_loss",        "evaluating"},
        [EVENT_CHECKPOINT] = {"step",         "checkpoint_step" },
        [EVENT_RUN_STOP] = {"status",     "outcome"                  },
        [EVENT_FAILED] = {"reason",      "reason",                        "failed"            },
    };
    json_t *event = json_copy(l->event);

    if (type < EVENT_TYPE_COUNT && own[type][0]) {
        json_object_set(l->job, own[type][1], json_object_get(event, own[type][0]));
        json_object_del(event, own[type][0]);
        if (own[type][2])
            json_object_set_new(l->job, "state", json_string(own[type][2]));
    }
    l->explained = l->explained || type == EVENT_FAILED;
    json_object_update_existing(l->job, event);
    json_decref(event);
}

static bool local_next_event(struct local *l, struct stream_event *event)
{
    char path[PATH_MAX];
    size_t capacity = 0;
    long at;

    file_path(path, NULL, "%s/events.jsonl", l->attempt_dir);
    if (!l->events && !(l->events = fopen(path, "re")))
        return false;
    at = ftell(l->events); /* also clears the end-of-file state */
    char *line = NULL;
    ssize_t bytes = getline(&line, &capacity, l->events);
    bool whole = bytes > 0 && line[bytes - 1] == '\n';
    if (!whole)
        fseek(l->events, at, SEEK_SET);
    json_t *body = whole ? json_loads(line, 0, NULL) : NULL;
    const char *type = json_get_text(body, "type", NULL);
    free(line);
    if (!type) {
        json_decref(body);
        return whole && local_next_event(l, event);
    }
    json_decref(l->event);
    l->event = body;
    local_take_event(l, event_type_of(type));
    *event = (struct stream_event){.type = type, .body = body};
    return true;
}

/* Creates the last event, a state. If the run itself sent none, it was stopped before its first
 * step or the workers crashed. */
static int local_tell_end(struct local *l, struct stream_event *event)
{
    const char *state = json_get_text(l->job, "outcome", "");
    bool good = strcmp(state, "success") == 0;
    bool stopped = !good && (l->stops || strcmp(state, "cancelled") == 0);

    if (!good && !l->explained)
        json_object_set_new(
            l->job, "reason",
            stopped ? json_string("stopped")
                    : json_sprintf("mpirun ended with status %lld", (long long)l->code));
    state = good ? "succeeded" : stopped ? "cancelled" : "failed";
    json_object_set_new(l->job, "state", json_string(state));
    json_object_del(l->job, "outcome");
    json_decref(l->event);
    l->event = json_pack("{s:s, s:o, s:s, s:O}", "type", "state", "t", json_number(clock_now()),
                         "state", state, "reason", json_object_get(l->job, "reason"));
    *event = (struct stream_event){.type = "state", .body = l->event};
    l->ended = true;
    return STREAM_EVENT;
}

int local_next(struct local *l, int fd, double seconds, struct stream_event *event)
{
    double until = seconds < 0 ? INFINITY : clock_monotonic() + seconds;

    for (;;) {
        struct pollfd wait[] = {
            {.fd = fd,               .events = POLLIN},
            {.fd = l->process.pidfd, .events = POLLIN}
        };
        bool was_gone = l->gone;
        if (local_next_event(l, event))
            return STREAM_EVENT;
        if (was_gone)
            return l->ended ? STREAM_NOTHING : local_tell_end(l, event);
        bool at_once = l->stops > (l->benchmarks ? 0 : 1);
        if (signals || (at_once && clock_monotonic() - l->stopped_at > KILL_SECONDS))
            local_stop(l);
        signals = 0;
        double left = fmin(until - clock_monotonic(), LOOK_SECONDS);
        if (left <= 0)
            return STREAM_NOTHING;
        if (poll(wait, 2, (int)ceil(1e3 * left)) > 0 && wait[1].revents)
            local_end(l);
        else if (wait[0].revents)
            return STREAM_NOTHING;
    }
}
