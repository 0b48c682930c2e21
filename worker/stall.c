#include "worker/stall.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/process_stat.h"
#include "common/stall_line.h"

#define BEAT_SECONDS 0.5
#define LATE_SECONDS 3 /* without a beat: its process does not run */

/* A rank, as the others on its machine see it. Written by that rank alone. Clocks are monotonic,
 * one for the machine. */
struct pulse {
    _Atomic int doing;
    _Atomic double since;   /* that it is doing this */
    _Atomic double step_at; /* end of its last step */
    _Atomic double beat;    /* its watching thread's last sign of life */
    _Atomic int64_t steps;  /* that ended in this run, of all attempts */
    int rank;
    pid_t pid;
};

struct stall {
    struct run *run;
    double seconds;
    struct traincomm_shared *shared;
    struct pulse *own; /* this rank's */
    int ranks_here;
    double told; /* step_at of the stall already spoken of */
    pthread_t thread;
    bool watched; /* the thread is there */
    pthread_mutex_t lock;
    pthread_cond_t ends;
    bool end;
};

static const char *const words[] = {"between steps", "waiting for data", "computing",
                                    "in the all-reduce", "waiting for the other ranks"};

static struct pulse *pulse_of(const struct stall *s, int host_rank)
{
    return traincomm_shared_part(s->shared, host_rank);
}

void stall_doing(struct stall *s, enum stall_doing doing)
{
    if (!s)
        return;
    double now = clock_monotonic();
    atomic_store(&s->own->doing, doing);
    atomic_store(&s->own->since, now);
    if (doing != STALL_OTHER)
        return;
    atomic_store(&s->own->step_at, now);
    atomic_fetch_add(&s->own->steps, 1);
}

/* ---- what is wrong */

struct verdict {
    const char *cause; /* of the event: rank_dead rank_stopped data compute all_reduce */
    const char *text;
    const struct pulse *who; /* NULL: all */
};

/* Whether a rank's process can run at all. */
static bool judge_process(const struct pulse *p, double now, struct verdict *v)
{
    struct process_stat stat;

    if (!process_stat_read(p->pid, &stat) || process_has_ended(&stat))
        *v = (struct verdict){"rank_dead", STALL_DEAD, p};
    else if (process_is_stopped(&stat))
        *v = (struct verdict){"rank_stopped", STALL_STOPPED, p};
    else if (now - atomic_load(&p->beat) > LATE_SECONDS)
        *v = (struct verdict){"rank_stopped", STALL_STARVED, p};
    else
        return false;
    return true;
}

static const struct pulse *first_doing(const struct stall *s, enum stall_doing doing)
{
    for (int i = 0; i < s->ranks_here; i++)
        if (atomic_load(&pulse_of(s, i)->doing) == (int)doing)
            return pulse_of(s, i);
    return NULL;
}

/* The worst first: whoever does not run, then who has not come to the all-reduce. */
static struct verdict judge(const struct stall *s, double now)
{
    const struct pulse *p;
    struct verdict v;

    for (int i = 0; i < s->ranks_here; i++)
        if (judge_process(pulse_of(s, i), now, &v))
            return v;
    if ((p = first_doing(s, STALL_DATA)))
        return (struct verdict){"data", STALL_DATA_LATE, p};
    if ((p = first_doing(s, STALL_COMPUTE)))
        return (struct verdict){"compute", STALL_COMPUTES, p};
    if (s->ranks_here == s->run->world)
        return (struct verdict){"all_reduce", "all ranks are in the all-reduce", NULL};
    return (struct verdict){"all_reduce",
                            "all ranks of this machine wait for ranks of others: a network or a "
                            "machine is gone",
                            NULL};
}

static void say_event(struct stall *s, const struct verdict *v, const char *host, const char *text,
                      double idle)
{
    struct report *report = s->run->report;
    struct error ignored;

    report_begin(report, EVENT_WARNING);
    report_int(report, "step", atomic_load(&s->own->steps));
    report_text(report, "message", text);
    report_text(report, "cause", v->cause);
    if (v->who) {
        report_int(report, "rank", v->who->rank);
        report_text(report, "host", host);
    }
    report_real(report, "stalled_seconds", idle);
    report_end(report, &ignored);
}

static void speak(struct stall *s, double now, double idle)
{
    struct verdict v = judge(s, now);
    char host[64] = "", text[256];

    gethostname(host, sizeof host - 1);
    if (v.who)
        snprintf(text, sizeof text, STALL_LINE_RANK, idle, v.who->rank, host, v.text);
    else
        snprintf(text, sizeof text, STALL_LINE_HOST, idle, host, v.text);
    log_warning("%s", text);
    if (s->run->rank == 0)
        say_event(s, &v, host, text, idle);
}

/* Of the ranks of this machine: one speaks for all. */
static bool is_first_that_runs(const struct stall *s, double now)
{
    struct verdict ignored;

    for (int i = 0; pulse_of(s, i) != s->own; i++)
        if (!judge_process(pulse_of(s, i), now, &ignored))
            return false;
    return true;
}

/* A host that is cut off is not told to end: its ranks end themselves, long after whoever could has
 * ended the run. */
static void give_up(const struct stall *s, double now, double idle)
{
    if (s->run->give_up_seconds <= 0 || idle < s->run->give_up_seconds || judge(s, now).who ||
        s->ranks_here == s->run->world)
        return;
    log_error("no step for %.0f s: the other hosts are gone, this rank ends", idle);
    _exit(1);
}

static void look(struct stall *s)
{
    double now = clock_monotonic(), step_at = atomic_load(&s->own->step_at);
    int doing = atomic_load(&s->own->doing);

    /* A watcher that was itself stopped wakes up with an old beat: its rank's clocks say nothing
     * about a stall. */
    bool slept = now - atomic_load(&s->own->beat) > LATE_SECONDS;
    atomic_store(&s->own->beat, now);
    if (slept || doing == STALL_OTHER || now - step_at < s->seconds)
        return;
    give_up(s, now, now - step_at);
    if (s->told == step_at)
        return;
    s->told = step_at;
    log_warning("no step for %.0f s; this rank is %s for %.0f s", now - step_at, words[doing],
                now - atomic_load(&s->own->since));
    if (is_first_that_runs(s, now))
        speak(s, now, now - step_at);
}

static void *watch(void *argument)
{
    struct stall *s = argument;
    struct timespec at;

    pthread_mutex_lock(&s->lock);
    while (!s->end) {
        double next = clock_monotonic() + BEAT_SECONDS;
        at.tv_sec = (time_t)next;
        at.tv_nsec = (long)((next - (double)at.tv_sec) * 1e9);
        pthread_cond_timedwait(&s->ends, &s->lock, &at);
        if (!s->end)
            look(s);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- making and ending */

static int share_memory(struct stall *s, struct error *e)
{
    struct traincomm *comm = s->run->comm;
    int status = traincomm_shared_create(comm, sizeof(struct pulse), &s->shared);

    if (status)
        return error_set(e, ERR_NO_MEMORY, "no memory to watch for stalls: %s",
                         traincomm_strerror(status));
    s->own = pulse_of(s, traincomm_host_rank(comm));
    s->ranks_here = traincomm_host_size(comm);
    double now = clock_monotonic();
    s->own->rank = s->run->rank;
    s->own->pid = getpid();
    atomic_store(&s->own->steps, s->run->from.step);
    atomic_store(&s->own->since, now);
    atomic_store(&s->own->step_at, now);
    atomic_store(&s->own->beat, now);
    atomic_store(&s->own->doing, STALL_OTHER);
    traincomm_barrier(comm); /* nobody looks before all have written */
    return 0;
}

static int start_thread(struct stall *s, struct error *e)
{
    pthread_condattr_t monotonic;
    sigset_t all, before;

    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->ends, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all); /* signals are for the thread that trains */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int reason = pthread_create(&s->thread, NULL, watch, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    s->watched = reason == 0;
    return reason ? error_set_errno(e, reason, "cannot start a thread that watches for stalls") : 0;
}

int stall_create(struct run *r, double seconds, struct stall **out, struct error *e)
{
    struct stall *s = seconds > 0 ? calloc(1, sizeof *s) : NULL;
    int status =
        s || seconds <= 0 ? 0 : error_set(e, ERR_NO_MEMORY, "no memory to watch for stalls");

    *out = NULL;
    status = run_agree(r, status, e);
    if (status || !s) {
        free(s);
        return status;
    }
    s->run = r;
    s->seconds = seconds;
    status = share_memory(s, e);
    if (!status)
        status = start_thread(s, e);
    *out = s;
    return run_agree(r, status, e);
}

void stall_destroy(struct stall *s)
{
    if (!s)
        return;
    if (s->watched) {
        pthread_mutex_lock(&s->lock);
        s->end = true;
        pthread_cond_signal(&s->ends);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
    }
    traincomm_shared_destroy(s->shared);
    free(s);
}
