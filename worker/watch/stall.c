#include "worker/watch/stall.h"

#include <dirent.h>
#include <linux/tcp.h> /* glibc's netinet/tcp.h lacks members of struct tcp_info */
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/assert_always.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/run/stall_report.h"
#include "common/system/process.h"
#include "common/xalloc.h"
#include "worker/team/parallel.h"

#define BEAT_SECONDS 0.5
/* A process without a heartbeat for this time counts as not running. */
#define LATE_SECONDS 3
/* Multiplies the limit outside of steps, where a checkpoint of another machine may take long */
#define GIVE_UP_PATIENT 10
/* Wait at most this long to write an event: its disk may be the cause of the stall */
#define EVENT_SECONDS 1
#define MOVED_BYTES   (1 << 16) /* threshold above the keep-alive traffic of MPI's daemons */

/* State of a rank, written by it and read by its machine. Times are of the monotonic clock. */
struct heartbeat {
    _Atomic int doing, phase;
    _Atomic double since;       /* start of the current activity */
    _Atomic double phase_at;    /* start of the phase or step */
    _Atomic double progress_at; /* last progress */
    _Atomic double
        moved_at;        /* last time its connections transferred MOVED_BYTES during a long wait */
    _Atomic double beat; /* last wake-up of its watch thread */
    _Atomic int64_t steps; /* completed steps of all attempts */
    int rank;
    pid_t pid;
};

enum stall_severity {
    SEVERITY_NOTHING,
    SEVERITY_GETS_ON,
    SEVERITY_EXCHANGES,
    SEVERITY_SLOW,
    SEVERITY_BAD
};

#define STALL_MAGIC 0x5354414c
struct stall {
    unsigned magic;
    double seconds, give_up_seconds;
    struct heartbeat alone; /* this rank's state while it is not shared */
    struct heartbeat *self;
    struct traincomm_shared *shared; /* NULL before stall_share and after stall_unshare */
    int ranks_here, world; /* ranks of this machine, and of all machines; 1 and 0 while the state is
                              not shared */
    struct report *report;
    uint64_t progress;     /* last value of stall_progress() */
    uint64_t moved;        /* stall_tcp_bytes() at moved_at, or when the wait became long */
    double moved_wait;     /* the value of `since` during that wait */
    int doing_before;      /* activity before the wait */
    double reported_phase; /* phase_at at the time of the last report */
    double reported_at;
    enum stall_severity reported;
    pthread_t thread;
    pthread_mutex_t lock; /* held during a check */
    pthread_cond_t ends;
    bool end;
};

static const char *const doing_text[] = {"waiting for data", "computing",
                                         "reading or writing files", "in the all-reduce",
                                         "waiting for the other ranks"};

static struct heartbeat *stall_heartbeat_of(const struct stall *s, int host_rank)
{
    return s->shared ? traincomm_shared_part(s->shared, host_rank) : s->self;
}

static void stall_set_doing(struct stall *s, int doing)
{
    double now = clock_monotonic();
    atomic_store(&s->self->doing, doing);
    atomic_store(&s->self->since, now);
    atomic_store(&s->self->progress_at, now);
}

void stall_doing(struct stall *s, enum stall_doing doing)
{
    if (s)
        stall_set_doing(s, (int)doing);
}

void stall_phase(struct stall *s, enum stall_phase phase)
{
    if (!s)
        return;
    assert_object(s, STALL_MAGIC);
    double now = clock_monotonic();
    atomic_store(&s->self->phase_at, now);
    atomic_store(&s->self->progress_at, now);
    atomic_store(&s->self->phase, (int)phase);
}

void stall_step_ended(struct stall *s, int64_t step)
{
    if (!s)
        return;
    atomic_store(&s->self->steps, step);
    stall_phase(s, STALL_IN_STEP);
}

static void stall_note_wait(void *context, bool waits)
{
    struct stall *s = context;
    int doing = atomic_load(&s->self->doing);

    if (waits) {
        s->doing_before = doing;
        stall_set_doing(s, doing == STALL_ALLREDUCE ? doing : STALL_WAIT);
    } else {
        stall_set_doing(s, s->doing_before);
    }
}

struct verdict {
    enum stall_state state;
    const struct heartbeat *who; /* the rank that causes the stall; NULL: all ranks */
};

static double stall_stopped_for(const struct heartbeat *p, double now)
{
    double silent = now - atomic_load(&p->beat);
    return silent > LATE_SECONDS ? silent : 0;
}

static bool stall_has_ended(const struct heartbeat *p)
{
    struct process_stat stat;
    return !process_stat_read(p->pid, &stat) || process_has_ended(&stat);
}

static bool stall_is_stopped(const struct heartbeat *p)
{
    struct process_stat stat;
    return process_stat_read(p->pid, &stat) && process_is_stopped(&stat);
}

/* Sets *v if the rank's process does not run. Outside of steps, a process that is slow to wake up
 * is tolerated; a step cannot continue without it. */
static bool stall_judge_process(const struct stall *s, const struct heartbeat *p, double now,
                                struct verdict *v)
{
    bool in_step = atomic_load(&s->self->phase) == STALL_IN_STEP, stopped = stall_is_stopped(p);
    double silent = stall_stopped_for(p, now);

    if (stall_has_ended(p))
        *v = (struct verdict){STALL_DEAD, p};
    else if ((silent > 0 && (in_step || silent >= s->seconds / 2)) || (stopped && in_step))
        *v = (struct verdict){stopped ? STALL_STOPPED : STALL_STARVED, p};
    else
        return false;
    return true;
}

static const struct heartbeat *stall_first_doing(const struct stall *s, enum stall_doing doing)
{
    for (int i = 0; i < s->ranks_here; i++)
        if (atomic_load(&stall_heartbeat_of(s, i)->doing) == (int)doing)
            return stall_heartbeat_of(s, i);
    return NULL;
}

static double stall_last_progress(const struct stall *s)
{
    double last = 0;

    for (int i = 0; i < s->ranks_here; i++) {
        double at = atomic_load(&stall_heartbeat_of(s, i)->progress_at);
        last = at > last ? at : last;
    }
    return last;
}

/* Returns whether the run makes progress outside of a step. A step that takes too long gets a
 * warning even if ranks make progress. */
static bool stall_gets_on(const struct stall *s, double now)
{
    return s->shared && atomic_load(&s->self->phase) != STALL_IN_STEP &&
           now - stall_last_progress(s) < s->seconds;
}

/* Returns whether gradients are still being transferred: the step is slow, but will end. */
static bool stall_exchanges(const struct stall *s, double now)
{
    double last = -INFINITY;

    for (int i = 0; i < s->ranks_here; i++)
        last = fmax(last, atomic_load(&stall_heartbeat_of(s, i)->moved_at));
    return s->shared && atomic_load(&s->self->phase) == STALL_IN_STEP &&
           now - last < s->seconds / 2;
}

/* Checks for the most severe cause first: a rank that does not run, then one waited for. */
static struct verdict stall_judge(const struct stall *s, double now)
{
    const struct heartbeat *p;
    struct verdict v;

    for (int i = 0; i < s->ranks_here; i++)
        if (stall_judge_process(s, stall_heartbeat_of(s, i), now, &v))
            return v;
    if (stall_gets_on(s, now))
        return (struct verdict){STALL_GETS_ON, NULL};
    if ((p = stall_first_doing(s, STALL_DATA)))
        return (struct verdict){STALL_DATA_LATE, p};
    if ((p = stall_first_doing(s, STALL_FILES)))
        return (struct verdict){STALL_FILES_LATE, p};
    if ((p = stall_first_doing(s, STALL_COMPUTE)))
        return (struct verdict){STALL_COMPUTES, p};
    if (stall_exchanges(s, now))
        return (struct verdict){STALL_EXCHANGES, NULL};
    return (struct verdict){STALL_WAITS, s->shared ? NULL : s->self};
}

static const char *stall_cause_of(enum stall_state state)
{
    switch (state) {
    case STALL_STOPPED:
    case STALL_STARVED:
        return "rank_stopped";
    case STALL_DEAD:
        return "rank_dead";
    case STALL_DATA_LATE:
        return "data";
    case STALL_COMPUTES:
        return "compute";
    case STALL_FILES_LATE:
        return "files";
    default:
        return "all_reduce";
    }
}

static void stall_report_event(struct stall *s, const struct stall_report *line, const char *text)
{
    struct report *report = s->report;
    struct error ignored;

    if (!report || !report_begin_within(report, EVENT_WARNING, EVENT_SECONDS))
        return;
    report_int(report, "step", atomic_load(&s->self->steps));
    report_text(report, "message", text);
    report_text(report, "cause", stall_cause_of(line->state));
    if (line->rank >= 0) {
        report_int(report, "rank", line->rank);
        report_text(report, "host", line->host);
    }
    report_real(report, "stalled_seconds", line->seconds);
    report_end(report, &ignored);
}

static void stall_report(struct stall *s, const struct verdict *v, double seconds, bool with_event)
{
    struct stall_report line = {.seconds = seconds,
                                .phase = (enum stall_phase)atomic_load(&s->self->phase),
                                .state = v->state,
                                .rank = v->who ? v->who->rank : -1};
    char text[STALL_REPORT_BYTES];

    gethostname(line.host, sizeof line.host - 1);
    stall_report_print(&line, s->ranks_here < s->world, text);
    if (v->state == STALL_GETS_ON)
        log_info("%s", text);
    else
        log_warning("%s", text);
    if (with_event && v->state != STALL_GETS_ON)
        stall_report_event(s, &line, text);
}

static void stall_report_self(const struct stall *s, double now, double idle)
{
    enum stall_phase phase = (enum stall_phase)atomic_load(&s->self->phase);
    char missing[STALL_REPORT_BYTES];

    stall_report_missing(phase, missing);
    log_warning("%s for %.0f s; this rank is %s for %.0f s", missing, idle,
                doing_text[atomic_load(&s->self->doing)], now - atomic_load(&s->self->since));
}

static bool stall_is_first_that_runs(const struct stall *s, double now)
{
    for (int i = 0; stall_heartbeat_of(s, i) != s->self; i++)
        if (!stall_has_ended(stall_heartbeat_of(s, i)) &&
            stall_stopped_for(stall_heartbeat_of(s, i), now) <= 0)
            return false;
    return true;
}

/* Exits if other machines do not answer: the daemon cannot signal an unreachable host, so its ranks
 * have to end themselves. */
static void stall_give_up(const struct stall *s, const struct verdict *v, double now)
{
    bool in_step = atomic_load(&s->self->phase) == STALL_IN_STEP;
    double idle = now - stall_last_progress(s);

    if (s->give_up_seconds <= 0 || v->state != STALL_WAITS || s->ranks_here == s->world ||
        idle < s->give_up_seconds * (in_step ? 1 : GIVE_UP_PATIENT))
        return;
    log_error("this rank has waited for %.0f s: the other hosts are unreachable, exiting", idle);
    _exit(1);
}

/* Reports once per phase or step, again if the state gets worse, and again after the same time,
 * because the daemon considers a machine without reports lost. */
static void stall_log(struct stall *s, const struct verdict *v, double now, double began)
{
    enum stall_severity severity = v->state <= STALL_STARVED     ? SEVERITY_BAD
                                   : v->state == STALL_GETS_ON   ? SEVERITY_GETS_ON
                                   : v->state == STALL_EXCHANGES ? SEVERITY_EXCHANGES
                                                                 : SEVERITY_SLOW;
    bool first = s->reported_phase != began || severity > s->reported;

    if (!first && now - s->reported_at < s->seconds)
        return;
    s->reported_phase = began;
    s->reported_at = now;
    s->reported = severity;
    if (first && v->state != STALL_GETS_ON)
        stall_report_self(s, now, now - began);
    if (stall_is_first_that_runs(s, now))
        stall_report(s, v, now - began, first);
}

static uint64_t stall_tcp_bytes_of(int fd)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) ||
        size < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received)
        return 0;
    return info.tcpi_bytes_acked + info.tcpi_bytes_received;
}

uint64_t stall_tcp_bytes(void)
{
    DIR *folder = opendir("/proc/self/fd");
    uint64_t total = 0;

    if (!folder)
        return 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            total += stall_tcp_bytes_of(atoi(entry->d_name));
    closedir(folder);
    return total;
}

static void stall_look_at_traffic(struct stall *s, double now, double began)
{
    double since = atomic_load(&s->self->since);
    int doing = atomic_load(&s->self->doing);

    if (now - began < s->seconds / 2 || !s->shared || s->ranks_here == s->world ||
        (doing != STALL_ALLREDUCE && doing != STALL_WAIT))
        return;
    uint64_t bytes = stall_tcp_bytes();
    if (since > s->moved_wait || bytes < s->moved) { /* a new wait, or a connection was closed */
        s->moved_wait = since;
        s->moved = bytes;
    } else if (bytes - s->moved >= MOVED_BYTES) {
        s->moved = bytes;
        atomic_store(&s->self->moved_at, now);
        atomic_store(&s->self->progress_at, now);
    }
}

static void stall_check(struct stall *s)
{
    double now = clock_monotonic(), began = atomic_load(&s->self->phase_at);
    uint64_t progress = stall_progress();

    /* If this thread was itself suspended, the times of this rank are meaningless. */
    bool slept = now - atomic_load(&s->self->beat) > LATE_SECONDS;
    atomic_store(&s->self->beat, now);
    if (progress != s->progress || slept)
        atomic_store(&s->self->progress_at, now);
    s->progress = progress;
    stall_look_at_traffic(s, now, began);
    if (slept || now - began < s->seconds)
        return;
    struct verdict v = stall_judge(s, now);
    stall_give_up(s, &v, now);
    stall_log(s, &v, now, began);
}

static void *stall_watch(void *argument)
{
    struct stall *s = argument;

    pthread_mutex_lock(&s->lock);
    while (!s->end) {
        clock_wait(&s->ends, &s->lock, clock_monotonic() + BEAT_SECONDS);
        if (!s->end)
            stall_check(s);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Returns the rank number set by the launcher, which is known before MPI starts; -1: not set. */
static int stall_rank_by_environment(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = getenv(names[i]);
        char *end;
        long rank = text ? strtol(text, &end, 10) : -1;
        if (text && end != text && !*end && rank >= 0 && rank < 1 << 24)
            return (int)rank;
    }
    return -1;
}

int stall_create(double seconds, double give_up_seconds, struct stall **out, struct error *e)
{
    *out = NULL;
    if (seconds <= 0)
        return 0;
    struct stall *s = xcalloc(1, sizeof *s);
    s->magic = STALL_MAGIC;
    s->seconds = seconds;
    s->give_up_seconds = give_up_seconds;
    s->self = &s->alone;
    s->ranks_here = 1;
    s->alone.rank = stall_rank_by_environment();
    s->alone.pid = getpid();
    atomic_store(&s->alone.beat, clock_monotonic());
    atomic_store(&s->alone.moved_at, -INFINITY);
    stall_phase(s, STALL_IN_START);
    stall_set_doing(s, STALL_WAIT);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->ends, NULL);
    int reason = helper_thread_start(&s->thread, "stall", stall_watch, s);
    if (reason) {
        free(s);
        return error_set_errno(e, reason, "cannot start the thread that detects stalls");
    }
    *out = s;
    return 0;
}

/* Moves the state while the watch thread is locked out. */
static void stall_move_heartbeat(struct stall *s, struct heartbeat *to)
{
    const struct heartbeat *from = s->self;

    atomic_store(&to->doing, atomic_load(&from->doing));
    atomic_store(&to->phase, atomic_load(&from->phase));
    atomic_store(&to->since, atomic_load(&from->since));
    atomic_store(&to->phase_at, atomic_load(&from->phase_at));
    atomic_store(&to->progress_at, atomic_load(&from->progress_at));
    atomic_store(&to->moved_at, atomic_load(&from->moved_at));
    atomic_store(&to->beat, clock_monotonic());
    atomic_store(&to->steps, atomic_load(&from->steps));
    to->pid = from->pid;
    to->rank = from->rank;
    s->self = to;
}

int stall_share(struct stall *s, struct traincomm *comm, struct error *e)
{
    struct traincomm_shared *shared;

    if (!s)
        return 0;
    assert_object(s, STALL_MAGIC);
    assert_always(!s->shared);
    s->alone.rank = traincomm_rank(comm);
    traincomm_on_wait(comm, stall_note_wait, s);
    stall_set_doing(s, STALL_COMPUTE);
    int status = traincomm_shared_create(comm, sizeof(struct heartbeat), &shared);
    if (status)
        return error_set(e, ERR_NO_MEMORY, "cannot detect stalls: %s", traincomm_strerror(status));
    pthread_mutex_lock(&s->lock);
    stall_move_heartbeat(s, traincomm_shared_part(shared, traincomm_host_rank(comm)));
    pthread_mutex_unlock(&s->lock);
    traincomm_barrier(comm); /* all ranks have written their state before any rank reads it */
    pthread_mutex_lock(&s->lock);
    s->shared = shared;
    s->ranks_here = traincomm_host_size(comm);
    s->world = traincomm_size(comm);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

void stall_unshare(struct stall *s)
{
    if (!s || !s->shared)
        return;
    struct traincomm_shared *shared = s->shared;
    pthread_mutex_lock(&s->lock);
    stall_move_heartbeat(s, &s->alone);
    s->shared = NULL;
    s->ranks_here = 1;
    s->world = 0;
    pthread_mutex_unlock(&s->lock);
    traincomm_shared_destroy(shared);
    stall_set_doing(s, STALL_WAIT);
}

void stall_report_to(struct stall *s, struct report *report)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->report = report;
    pthread_mutex_unlock(&s->lock);
}

void stall_destroy(struct stall *s)
{
    if (!s)
        return;
    assert_object_ends(s, STALL_MAGIC);
    assert_always(!s->shared);
    pthread_mutex_lock(&s->lock);
    s->end = true;
    pthread_cond_signal(&s->ends);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    free(s);
}
