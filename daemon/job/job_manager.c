/* The loop. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "common/system/file.h"
#include "common/system/install_paths.h"
#include "daemon/job/job_active.h"
#include "daemon/job/job_manager_internal.h"
#include "daemon/job/job_recover.h"
#include "daemon/job/job_watch.h"
#include "daemon/job/job_queue.h"
#include "daemon/job/run_dir_remove.h"
#include "daemon/job/run_dir.h"
#include "daemon/job/run_dir_trim.h"
#include "daemon/launch/failure_rules.h"
#include "daemon/store/store_open.h"
#include "daemon/sweep/sweep.h"

#define POLL_SECONDS   1.0  /* where inotify says nothing (NFS, or a watch that could not be had) */
#define GATHER_SECONDS 0.05 /* lines that come within this time share a commit */

static char *manager_copy_text(const char *text)
{
    return text ? strdup(text) : NULL;
}

/* Run directories are told to clients and workers, whose current folder is another. */
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

    free(m->drain_command);
    m->drain_command = drain_command ? strdup(drain_command) : NULL;
    pthread_mutex_lock(&m->mutex);
    if (before)
        failure_rules_inherit(rules, before);
    m->rules = rules;
    pthread_mutex_unlock(&m->mutex);
    failure_rules_destroy(before);
}

json_t *job_failure_rules(struct job_manager *m, int64_t *unlabelled)
{
    pthread_mutex_lock(&m->mutex);
    json_t *list = failure_rules_to_json(m->rules, unlabelled);
    pthread_mutex_unlock(&m->mutex);
    return list;
}

void job_manager_each_round(struct job_manager *m, job_manager_round *round, void *context)
{
    m->each_round = round;
    m->round_context = context;
    m->round_next_at = 0;
}

static void manager_wake_by_slurm(void *context)
{
    job_manager_wake(context);
}

int job_manager_create(const struct job_manager_config *config, struct store *store,
                       struct job_manager **out, struct error *e)
{
    struct job_manager *m = xcalloc(1, sizeof *m);

    m->store = store;
    m->wake_fd = m->inotify_fd = -1;
    pthread_mutex_init(&m->mutex, NULL);
    pthread_mutex_init(&m->files, NULL);
    m->jobs_dir = manager_copy_text(config->jobs_dir);
    m->mpirun = manager_copy_text(config->mpirun ? config->mpirun : "mpirun");
    m->worker = manager_copy_text(config->worker ? config->worker : BINDIR "/train-worker");
    m->agent = manager_copy_text(config->agent ? config->agent : "ssh");
    m->slots = config->slots > 0 ? config->slots : launch_node_slots(false);
    m->slurm_settings = config->slurm;
    m->queue_next_at = m->round_next_at = m->trim_next_at = INFINITY;
    job_manager_set_limits(m, &config->limits);
    m->used.total = m->slots;
    m->look_at_queue = true;
    struct failure_rules *rules = config->rules;
    int status = m->jobs_dir && m->mpirun && m->worker && m->agent
                     ? file_make_dirs(m->jobs_dir, e)
                     : error_set(e, ERR_NO_MEMORY, "no memory for the job manager");
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
        status = error_set_errno(e, errno, "cannot make an eventfd");
    if (!status)
        status = slurm_create(&m->slurm_settings, manager_wake_by_slurm, m, &m->slurm, e);
    if (status) {
        job_manager_destroy(m);
        return status;
    }
    m->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (m->inotify_fd < 0)
        log_warning("inotify cannot be used (%s): run directories are looked at once a second",
                    strerror(errno));
    *out = m;
    return 0;
}

void job_manager_destroy(struct job_manager *m)
{
    if (!m)
        return;
    while (m->active)
        active_destroy(m, m->active);
    job_trim_forget(m);
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
    free(m);
}

void job_manager_stop(struct job_manager *m)
{
    m->stop = true;
    job_manager_wake(m);
}

int64_t job_queue_position(struct job_manager *m, int64_t id, int64_t *of)
{
    int64_t position = 0;

    pthread_mutex_lock(&m->mutex);
    for (size_t i = 0; i < m->queue_count && !position; i++)
        if (m->queue_ids[i] == id)
            position = (int64_t)i + 1;
    *of = (int64_t)m->queue_count;
    pthread_mutex_unlock(&m->mutex);
    return position;
}

void job_manager_slots(struct job_manager *m, struct job_slots *slots)
{
    pthread_mutex_lock(&m->mutex);
    *slots = m->used;
    pthread_mutex_unlock(&m->mutex);
}

/* ---------------------------------------------------------------- the loop */

enum { FD_WAKE, FD_INOTIFY, FD_PROCESSES };

struct round {
    struct pollfd *fds; /* FD_WAKE, FD_INOTIFY, then one for each active job, in order */
    size_t room;
    double next_poll; /* monotonic: when all run directories are looked at in any case */
    double gather_at; /* monotonic: when those that inotify told of are; 0: none told */
};

static size_t manager_fill_fds(const struct job_manager *m, struct round *r)
{
    size_t count = FD_PROCESSES;

    for (const struct active_job *a = m->active; a; a = a->next)
        count++;
    struct pollfd *grown = array_reserve(r->fds, count, &r->room, sizeof *grown);
    if (!grown)
        return 0;
    r->fds = grown;
    r->fds[FD_WAKE] = (struct pollfd){.fd = m->wake_fd, .events = POLLIN};
    r->fds[FD_INOTIFY] = (struct pollfd){.fd = m->inotify_fd, .events = POLLIN};
    struct pollfd *fd = r->fds + FD_PROCESSES;
    for (const struct active_job *a = m->active; a; a = a->next)
        *fd++ = (struct pollfd){.fd = a->machine.phase == PHASE_RUNNING ? a->process.pidfd : -1,
                                .events = POLLIN};
    return count;
}

static int manager_wait_ms(const struct job_manager *m, const struct round *r, double now)
{
    double until = fmin(fmin(m->active ? r->next_poll : INFINITY, m->queue_next_at),
                        fmin(fmin(m->round_next_at, m->trim_next_at), m->measure_next_at));

    if (m->look_at_queue)
        return 0;
    if (m->removing)
        until = fmin(until, m->remove_next_at);
    if (r->gather_at && r->gather_at < until)
        until = r->gather_at;
    for (const struct active_job *a = m->active; a; a = a->next)
        until = fmin(until, watch_next_at(a, now));
    if (until == INFINITY)
        return -1;
    return until <= now ? 0 : (int)(fmin(until - now, 3600) * 1000) + 1;
}

static void manager_drain_wakeups(int fd)
{
    char bytes[4096];
    while (read(fd, bytes, sizeof bytes) > 0)
        ;
}

static void manager_look_at_results(struct job_manager *m, struct round *r, double now)
{
    struct pollfd *fd = r->fds + FD_PROCESSES;

    if (r->fds[FD_WAKE].revents) {
        manager_drain_wakeups(m->wake_fd);
        m->look_at_queue = true;
    }
    if (r->fds[FD_INOTIFY].revents) {
        manager_drain_wakeups(m->inotify_fd);
        if (!r->gather_at)
            r->gather_at = now + GATHER_SECONDS;
    }
    for (struct active_job *a = m->active; a; a = a->next, fd++)
        if (fd->fd >= 0 && fd->revents)
            watch_launcher_ended(m, a);
}

/* A job that is not there any more has ended in the meantime. */
static void manager_take_cancel_requests(struct job_manager *m)
{
    pthread_mutex_lock(&m->mutex);
    int64_t *ids = m->cancel_ids;
    size_t count = m->cancel_count;
    m->cancel_ids = NULL;
    m->cancel_count = m->cancel_room = 0;
    pthread_mutex_unlock(&m->mutex);
    for (size_t i = 0; i < count; i++) {
        struct active_job *a = active_find(m, ids[i]);
        if (a)
            watch_cancel(m, a);
    }
    free(ids);
}

static void manager_look_at_jobs(struct job_manager *m, struct round *r, double now)
{
    bool due = now >= r->next_poll || (r->gather_at && now >= r->gather_at);

    for (struct active_job *a = m->active, *next; a; a = next) {
        next = a->next;
        watch_job(m, a, due);
    }
    if (due) {
        r->gather_at = 0;
        r->next_poll = now + POLL_SECONDS;
    }
}

static void manager_publish_slots(struct job_manager *m)
{
    int64_t running = 0;

    for (const struct active_job *a = m->active; a; a = a->next)
        running += a->machine.phase != PHASE_IN_SLURM;
    pthread_mutex_lock(&m->mutex);
    m->used.used = active_slots(m);
    m->used.running = running;
    pthread_mutex_unlock(&m->mutex);
}

/* Many submissions in a row share a look at the queue. */
static bool manager_queue_is_due(struct job_manager *m, double now)
{
    double earliest = m->queue_looked_at + GATHER_SECONDS;

    if (m->look_at_queue && now < earliest) {
        m->look_at_queue = false;
        m->queue_next_at = fmin(m->queue_next_at, earliest);
    }
    if (!m->look_at_queue && now < m->queue_next_at)
        return false;
    m->queue_looked_at = now;
    return true;
}

static int manager_one_round(struct job_manager *m, struct round *r, struct error *e)
{
    size_t count = manager_fill_fds(m, r);
    if (!count)
        return error_set(e, ERR_NO_MEMORY, "no memory to watch the jobs");
    if (poll(r->fds, count, manager_wait_ms(m, r, clock_monotonic())) < 0) {
        if (errno == EINTR)
            return 0;
        return error_set_errno(e, errno, "cannot wait for the jobs");
    }
    double now = clock_monotonic();
    manager_look_at_results(m, r, now);
    if (m->stop)
        return 0;
    manager_take_cancel_requests(m);
    manager_look_at_jobs(m, r, now);
    if (m->active && now >= m->sweeps_next_at) {
        sweeps_stop_losers(m);
        m->sweeps_next_at = now + POLL_SECONDS;
    }
    if (manager_queue_is_due(m, now)) {
        double again = sweeps_go_on(m);
        queue_start_jobs(m);
        m->queue_next_at = fmin(m->queue_next_at, clock_monotonic() + again);
    }
    job_trim_again(m, now);
    job_measure_older(m, now);
    job_go_on_removing(m);
    manager_publish_slots(m);
    if (m->each_round)
        m->round_next_at = clock_monotonic() + m->each_round(m->round_context);
    return 0;
}

int job_manager_run(struct job_manager *m, struct error *e)
{
    struct round round = {0};
    job_finish_removals(m);
    int status = recover_all(m, e);
    job_trim_remember(m);

    job_keep_limits(m);
    manager_publish_slots(m);
    while (!status && !m->stop)
        status = manager_one_round(m, &round, e);
    /* What is there is stored; the rest is read by the next daemon. */
    for (struct active_job *a = m->active; a; a = a->next)
        watch_events(a);
    free(round.fds);
    return status;
}
