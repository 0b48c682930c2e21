#include "daemon/job/job_manager.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "common/assert_always.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "common/system/file.h"
#include "common/system/install_paths.h"
#include "daemon/job/job_manager_internal.h"
#include "daemon/job/job_queue.h"
#include "daemon/job/job_recover.h"
#include "daemon/job/job_run.h"
#include "daemon/job/job_run_watch.h"
#include "daemon/job/run_dir.h"
#include "daemon/job/run_dir_cleanup.h"
#include "daemon/launch/failure_rules.h"
#include "daemon/store/store_open.h"
#include "daemon/sweep/sweep.h"

#define POLL_SECONDS 1.0 /* where inotify reports nothing (NFS, or no watch available) */

/* Makes a path absolute, because clients and workers run in other working directories. */
static int manager_make_absolute(char **path, struct error *e)
{
    char *absolute = realpath(*path, NULL);
    if (!absolute)
        return error_set_errno(e, errno, "%s", *path);
    free(*path);
    *path = absolute;
    return 0;
}

void job_manager_set_limits(struct job_manager *m, const struct job_limits *limits)
{
    assert_object(m, JOB_MANAGER_MAGIC);
    m->limits = *limits;
    if (m->limits.cancel_grace_seconds < 0)
        m->limits.cancel_grace_seconds = 10;
    if (m->limits.priority_seconds <= 0)
        m->limits.priority_seconds = 3600;
    pthread_mutex_lock(&m->mutex);
    m->shared_limits = m->limits;
    pthread_mutex_unlock(&m->mutex);
}

void job_manager_set_rules(struct job_manager *m, struct failure_rules *rules,
                           const char *drain_command)
{
    struct failure_rules *before = m->rules;

    assert_object(m, JOB_MANAGER_MAGIC);
    free(m->drain_command);
    m->drain_command = xstrdup_or_null(drain_command);
    pthread_mutex_lock(&m->mutex);
    if (before)
        failure_rules_inherit(rules, before);
    m->rules = rules;
    pthread_mutex_unlock(&m->mutex);
    failure_rules_destroy(before);
}

void job_manager_each_round(struct job_manager *m, job_manager_round *round, void *context)
{
    assert_object(m, JOB_MANAGER_MAGIC);
    m->each_round = round;
    m->round_context = context;
    job_manager_want(m, TASK_EACH_ROUND, 0);
}

static void manager_wake_by_slurm(void *context)
{
    job_manager_wake(context);
}

int job_manager_create(const struct job_manager_config *config, struct store *store,
                       struct job_manager **out, struct error *e)
{
    struct job_manager *m = xcalloc(1, sizeof *m);

    m->magic = JOB_MANAGER_MAGIC;
    m->store = store;
    m->wake_fd = m->inotify_fd = -1;
    pthread_mutex_init(&m->mutex, NULL);
    pthread_mutex_init(&m->files, NULL);
    m->jobs_dir = xstrdup(config->jobs_dir);
    m->mpirun = xstrdup(config->mpirun ? config->mpirun : "mpirun");
    m->worker = xstrdup(config->worker ? config->worker : BINDIR "/train-worker");
    m->agent = xstrdup(config->agent ? config->agent : "ssh");
    m->slots = config->slots > 0 ? config->slots : launch_node_slots(false);
    m->slurm_settings = config->slurm;
    m->task_at[TASK_RETRY] = m->task_at[TASK_REMOVE] = m->task_at[TASK_EACH_ROUND] = INFINITY;
    job_manager_set_limits(m, &config->limits);
    m->used.total = m->slots;
    struct failure_rules *rules = config->rules;
    int status = file_make_dirs(m->jobs_dir, e);
    if (!status && !rules)
        status = failure_rules_load(NULL, &rules, e);
    if (rules)
        job_manager_set_rules(m, rules, config->drain_command);
    if (!status)
        status = manager_make_absolute(&m->jobs_dir, e);
    if (!status)
        status = store_set_jobs_dir(store, m->jobs_dir, e);
    if (!status)
        status = run_dirs_survey(store, m->jobs_dir, e);
    if (!status && (m->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        status = error_set_errno(e, errno, "cannot create an eventfd");
    if (!status)
        m->slurm = slurm_create(&m->slurm_settings, manager_wake_by_slurm, m);
    if (status) {
        job_manager_destroy(m);
        return status;
    }
    m->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (m->inotify_fd < 0)
        log_warning("cannot use inotify (%s): checking run directories once a second",
                    strerror(errno));
    *out = m;
    return 0;
}

void job_manager_destroy(struct job_manager *m)
{
    if (!m)
        return;
    assert_object(m, JOB_MANAGER_MAGIC);
    while (m->active)
        job_run_destroy(m, m->active);
    cleanup_stop(m);
    slurm_destroy(m->slurm);
    if (m->wake_fd >= 0)
        close(m->wake_fd);
    if (m->inotify_fd >= 0)
        close(m->inotify_fd);
    free(m->cancel_ids);
    free(m->queue_ids);
    free(m->queue_ends);
    free(m->jobs_dir);
    free(m->mpirun);
    free(m->worker);
    free(m->agent);
    free(m->drain_command);
    failure_rules_destroy(m->rules);
    pthread_mutex_destroy(&m->mutex);
    pthread_mutex_destroy(&m->files);
    assert_object_ends(m, JOB_MANAGER_MAGIC);
    free(m);
}

void job_manager_stop(struct job_manager *m)
{
    assert_object(m, JOB_MANAGER_MAGIC);
    m->stop = true;
    job_manager_wake(m);
}

enum { FD_WAKE, FD_INOTIFY, FD_PROCESSES };

struct manager_loop {
    struct pollfd *fds; /* FD_WAKE, FD_INOTIFY, then one for each active job, in order */
    size_t capacity;
    double events_at; /* monotonic time of the next read of all run directories */
};

static size_t manager_fill_fds(const struct job_manager *m, struct manager_loop *l)
{
    size_t count = FD_PROCESSES;

    for (const struct active_job *a = m->active; a; a = a->next)
        count++;
    l->fds = must_alloc(array_reserve(l->fds, count, &l->capacity, sizeof *l->fds));
    l->fds[FD_WAKE] = (struct pollfd){.fd = m->wake_fd, .events = POLLIN};
    l->fds[FD_INOTIFY] = (struct pollfd){.fd = m->inotify_fd, .events = POLLIN};
    struct pollfd *fd = l->fds + FD_PROCESSES;
    for (const struct active_job *a = m->active; a; a = a->next)
        *fd++ = (struct pollfd){.fd = a->machine.phase == PHASE_RUNNING ? a->process.pidfd : -1,
                                .events = POLLIN};
    return count;
}

static int manager_wait_ms(struct job_manager *m, const struct manager_loop *l)
{
    double now = clock_monotonic(), until = m->active ? l->events_at : INFINITY;

    if (m->removing)
        job_manager_want(m, TASK_REMOVE, m->remove_not_before);
    for (int task = 0; task < TASK_COUNT; task++)
        until = fmin(until, m->task_at[task]);
    for (const struct active_job *a = m->active; a; a = a->next)
        until = fmin(until, job_run_next_at(a, now));
    if (until == INFINITY)
        return -1;
    return until <= now ? 0 : (int)(fmin(until - now, 3600) * 1000) + 1;
}

static void manager_drain_fd(int fd)
{
    char bytes[4096];
    while (read(fd, bytes, sizeof bytes) > 0)
        ;
}

static void manager_look_at_results(struct job_manager *m, struct manager_loop *l, double now)
{
    struct pollfd *fd = l->fds + FD_PROCESSES;

    if (l->fds[FD_WAKE].revents) {
        manager_drain_fd(m->wake_fd);
        job_manager_want_queue(m);
    }
    if (l->fds[FD_INOTIFY].revents) {
        manager_drain_fd(m->inotify_fd);
        l->events_at = fmin(l->events_at, now + GATHER_SECONDS);
    }
    for (struct active_job *a = m->active; a; a = a->next, fd++)
        if (fd->fd >= 0 && fd->revents)
            job_run_launcher_ended(m, a);
}

static void manager_take_cancel_requests(struct job_manager *m)
{
    pthread_mutex_lock(&m->mutex);
    int64_t *ids = m->cancel_ids;
    size_t count = m->cancel_count;
    m->cancel_ids = NULL;
    m->cancel_count = m->cancel_room = 0;
    pthread_mutex_unlock(&m->mutex);
    for (size_t i = 0; i < count; i++) {
        struct active_job *a = job_run_find(m, ids[i]);
        if (a)
            job_run_cancel(m, a);
    }
    free(ids);
}

static void manager_look_at_jobs(struct job_manager *m, struct manager_loop *l, double now)
{
    bool due = now >= l->events_at;

    for (struct active_job *a = m->active, *next; a; a = next) {
        next = a->next;
        job_run_watch(m, a, due);
    }
    if (due)
        l->events_at = now + POLL_SECONDS;
}

static void manager_publish_slots(struct job_manager *m)
{
    int64_t running = 0, used = 0;

    for (const struct active_job *a = m->active; a; a = a->next) {
        running += a->machine.phase != PHASE_IN_SLURM;
        assert_always(a->slots >= 0);
        used += a->slots;
    }
    pthread_mutex_lock(&m->mutex);
    m->used.used = used;
    m->used.running = running;
    pthread_mutex_unlock(&m->mutex);
}

static double manager_stop_losers(struct job_manager *m)
{
    if (!m->active)
        return INFINITY;
    sweeps_stop_losers(m);
    return clock_monotonic() + POLL_SECONDS;
}

static double manager_start_jobs(struct job_manager *m)
{
    m->queue_looked_at = clock_monotonic();
    double again = sweeps_go_on(m);
    job_queue_start(m);
    return clock_monotonic() + again;
}

/* Returns the monotonic time of its next call, unless job_manager_want makes it earlier. */
typedef double manager_task(struct job_manager *m);
static manager_task *const manager_tasks[] = {
    [TASK_STOP_LOSERS] = manager_stop_losers,
    [TASK_QUEUE] = manager_start_jobs,
    [TASK_RETRY] = cleanup_retry,
    [TASK_MEASURE] = cleanup_measure_next,
    [TASK_REMOVE] = cleanup_remove_some,
};

static int manager_one_round(struct job_manager *m, struct manager_loop *l, struct error *e)
{
    size_t count = manager_fill_fds(m, l);

    if (poll(l->fds, count, manager_wait_ms(m, l)) < 0)
        return errno == EINTR ? 0 : error_set_errno(e, errno, "cannot wait for job events");
    double now = clock_monotonic();
    manager_look_at_results(m, l, now);
    if (m->stop)
        return 0;
    manager_take_cancel_requests(m);
    manager_look_at_jobs(m, l, now);
    for (enum job_task task = 0; task < TASK_EACH_ROUND; task++) {
        if (now < m->task_at[task])
            continue;
        m->task_at[task] = INFINITY;
        job_manager_want(m, task, manager_tasks[task](m));
    }
    manager_publish_slots(m);
    if (m->each_round)
        m->task_at[TASK_EACH_ROUND] = clock_monotonic() + m->each_round(m->round_context);
    return 0;
}

int job_manager_run(struct job_manager *m, struct error *e)
{
    struct manager_loop loop = {0};

    assert_object(m, JOB_MANAGER_MAGIC);
    cleanup_finish_removals(m);
    int status = job_recover_all(m, e);
    cleanup_start(m);
    cleanup_keep_limits(m);
    manager_publish_slots(m);
    while (!status && !m->stop)
        status = manager_one_round(m, &loop, e);
    /* Store the events so far; the next daemon reads the rest. */
    for (struct active_job *a = m->active; a; a = a->next)
        job_run_read_events(a);
    free(loop.fds);
    return status;
}
