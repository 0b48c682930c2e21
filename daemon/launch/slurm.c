#include "daemon/launch/slurm.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert_always.h"
#include "common/json.h"
#include "common/clock.h"
#include "common/run/attempt.h"
#include "common/system/file.h"
#include "common/xalloc.h"
#include "common/log.h"
#include "daemon/launch/slurm_call.h"
#include "daemon/launch/slurm_reply.h"

#define SCRIPT         "sbatch"
#define SOON_SECONDS   0.3 /* minimum time between two requested polls */
#define CANCEL_SECONDS 5.0 /* between attempts to cancel a job */
#define MISSING_LOOKS  2   /* a job missing in this many polls is gone */
/* A dead node's job is COMPLETING until Slurm marks the node down (SlurmdTimeout). */
#define COMPLETING_SECONDS 30.0

#define SLURM_MAGIC     0x51063a11u
#define SLURM_JOB_MAGIC 0x51063b0bu

struct slurm_job {
    unsigned magic;
    struct slurm_job *next;
    struct slurm *slurm;
    char name[SLURM_NAME_BYTES];
    char *run_dir;
    int64_t first_attempt;
    struct slurm_status status;
    bool held, dead;
    bool look_first; /* may have been submitted: search for its name before submitting it */
    bool cancel;
    bool cancelled;
    bool owed; /* traind considers it ended; cancel it if Slurm has it */
    char complaint[256];
    int missing;             /* consecutive polls in which it was missing */
    double next_at;          /* monotonic time of its next call */
    double completing_since; /* monotonic; 0: not completing */
};

/* The mutex guards everything except the settings and `call`. */
struct slurm {
    unsigned magic;
    struct slurm_settings settings;
    struct slurm_call call;
    void (*changed)(void *context);
    void *context;
    pthread_t thread;
    bool has_thread;
    atomic_bool quit;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct slurm_job *jobs;
    const struct slurm_job *submitting;
    double look_at;
    double looked_at;
    char complaint[256]; /* last logged message about Slurm not answering; "" */
};

/* ---------------------------------------------------------------- Slurm thread: one job */

static bool slurm_job_has_ended(const struct slurm_job *j)
{
    return j->status.phase >= SLURM_ENDED;
}

static void slurm_file_of(const struct slurm_job *j, const char *name, char path[PATH_MAX])
{
    file_path(path, NULL, "%s/attempt-%lld/%s", j->run_dir, (long long)j->first_attempt, name);
}

static bool slurm_is_news(char complaint[256], const char *words)
{
    if (strncmp(complaint, words, 255) == 0)
        return false;
    snprintf(complaint, 256, "%.255s", words);
    return true;
}

/* Called without the mutex, like all calls to Slurm. If the answer is lost, the job may have been
 * submitted, so it is searched for before the next attempt. */
static void slurm_submit_job(struct slurm *s, struct slurm_job *j)
{
    struct error e = {0};
    char path[PATH_MAX];
    int64_t id = 0;

    slurm_file_of(j, SCRIPT, path);
    int status = slurm_call_submit(&s->call, path, &id, &e);
    pthread_mutex_lock(&s->mutex);
    s->submitting = NULL;
    if (slurm_job_has_ended(j)) {
        /* It was cancelled meanwhile; whatever Slurm has will be searched for and cancelled. */
        j->status.job_id = id;
        j->look_first = id == 0;
        j->owed = id || e.code == ERR_UNREACHABLE;
        j->next_at = 0;
        s->look_at = clock_monotonic() + SOON_SECONDS;
    } else if (status == 0) {
        j->status.job_id = id;
        j->status.phase = SLURM_WAITING;
        j->status.silent = false;
        snprintf(j->status.words, sizeof j->status.words, "waiting for Slurm to consider it");
        s->look_at = clock_monotonic() + SOON_SECONDS;
        log_info("%s: Slurm's job %lld", j->name, (long long)id);
    } else if (e.code == ERR_UNREACHABLE) {
        j->look_first = true;
        j->next_at = clock_monotonic() + (double)s->settings.poll_seconds;
        snprintf(j->status.words, sizeof j->status.words,
                 "could not be submitted yet, Slurm does not answer: %.300s", e.text);
        if (slurm_is_news(j->complaint, e.text))
            log_warning("%s: %s", j->name, e.text);
    } else {
        j->status.phase = SLURM_REFUSED;
        snprintf(j->status.words, sizeof j->status.words, "%.480s", e.text);
    }
    pthread_mutex_unlock(&s->mutex);
    s->changed(s->context);
}

static int64_t slurm_id_of_script(const struct slurm_job *j)
{
    char path[PATH_MAX], *text;
    size_t bytes;
    int64_t id = 0;

    slurm_file_of(j, "slurm-job", path);
    if (file_read(path, 64, &text, &bytes, NULL) == 0) {
        id = strtoll(text, NULL, 10);
        free(text);
    }
    return id;
}

static void slurm_cancel_job(struct slurm *s, struct slurm_job *j, int64_t id)
{
    struct error e = {0};
    int status = slurm_call_cancel(&s->call, id, &e);
    bool unreachable = status && e.code == ERR_UNREACHABLE;

    pthread_mutex_lock(&s->mutex);
    if (status && slurm_is_news(j->complaint, e.text))
        log_warning("%s: Slurm's job %lld is not cancelled yet: %s", j->name, (long long)id,
                    e.text);
    j->cancelled = true;
    j->owed = j->owed && unreachable;
    j->status.silent = unreachable;
    j->next_at = clock_monotonic() + CANCEL_SECONDS;
    s->look_at = clock_monotonic() + SOON_SECONDS;
    pthread_mutex_unlock(&s->mutex);
    if (unreachable)
        s->changed(s->context);
}

/* ---------------------------------------------------------------- Slurm thread: polling */

static enum slurm_phase slurm_phase_of(struct slurm_job *j, const struct slurm_reply *r, double now)
{
    static const char *const running[] = {"RUNNING",   "CONFIGURING", "SUSPENDED", "STOPPED",
                                          "SIGNALING", "STAGE_OUT",   "RESIZING",  "POWER_UP_NODE"};
    if (!r->completing)
        j->completing_since = 0;
    else if (j->completing_since == 0)
        j->completing_since = now;
    if (r->completing)
        return now - j->completing_since < COMPLETING_SECONDS ? SLURM_RUNNING : SLURM_ENDED;
    if (strcmp(r->state, "PENDING") == 0 || strcmp(r->state, "REQUEUED") == 0 ||
        strcmp(r->state, "REQUEUE_HOLD") == 0 || strcmp(r->state, "SPECIAL_EXIT") == 0)
        return SLURM_WAITING;
    for (size_t i = 0; i < sizeof running / sizeof running[0]; i++)
        if (strcmp(r->state, running[i]) == 0)
            return SLURM_RUNNING;
    return SLURM_ENDED;
}

static void slurm_update_job(struct slurm_job *j, const struct slurm_reply *r, const json_t *all,
                             double now)
{
    struct slurm_status *status = &j->status;

    j->missing = 0;
    status->silent = false;
    status->job_id = r->id;
    bool put_back = r->completing && (r->restarts > status->restarts ||
                                      (status->phase == SLURM_WAITING && status->restarts > 0));
    enum slurm_phase phase = slurm_phase_of(j, r, now);
    /* Its processes may still write events of the attempt that is ending. */
    if (put_back && phase == SLURM_RUNNING && status->phase == SLURM_RUNNING)
        return;
    status->phase = put_back ? SLURM_WAITING : phase;
    snprintf(status->state, sizeof status->state, "%s", r->state);
    snprintf(status->reason, sizeof status->reason, "%s", r->reason);
    snprintf(status->nodes, sizeof status->nodes, "%s", r->nodes);
    status->words[0] = '\0';
    if (status->phase == SLURM_WAITING)
        slurm_reply_waiting(r, slurm_reply_ahead(all, r), status->words, sizeof status->words);
    status->restarts = r->restarts;
    status->exit_code = status->phase == SLURM_ENDED ? r->exit_code : -1;
    status->exit_signal = status->phase == SLURM_ENDED ? r->exit_signal : -1;
    status->start = r->start;
    status->limit_seconds = r->limit_seconds;
}

static bool slurm_find_job(const json_t *all, const struct slurm_job *j, struct slurm_reply *found)
{
    const json_t *job;
    size_t i;
    bool any = false;

    json_array_foreach (all, i, job) {
        struct slurm_reply r;
        if (!slurm_reply_read(job, &r) || strcmp(r.name, j->name) != 0 || (any && r.id < found->id))
            continue;
        *found = r;
        any = true;
    }
    return any;
}

static void slurm_job_missing(struct slurm *s, struct slurm_job *j, double now)
{
    if (j->status.job_id == 0)
        j->status.job_id = slurm_id_of_script(j);
    if (j->status.job_id == 0) {
        j->look_first = false; /* it was never submitted */
    } else if (++j->missing >= MISSING_LOOKS) {
        j->status.phase = SLURM_GONE;
        snprintf(j->status.state, sizeof j->status.state, "%s", "UNKNOWN");
    } else {
        s->look_at = fmin(s->look_at, now + 1);
    }
}

static void slurm_poll(struct slurm *s)
{
    struct error e = {0};
    json_t *all = NULL;
    int status = slurm_call_jobs(&s->call, &all, &e);
    double now = clock_monotonic();
    bool news = false;

    pthread_mutex_lock(&s->mutex);
    s->looked_at = now;
    s->look_at = now + (double)s->settings.poll_seconds;
    if (status && slurm_is_news(s->complaint, e.text))
        log_warning("Slurm does not answer; its jobs are assumed to be running: %s", e.text);
    else if (!status && *s->complaint)
        log_info("Slurm answers again");
    if (!status)
        s->complaint[0] = '\0';
    for (struct slurm_job *j = s->jobs; j; j = j->next) {
        struct slurm_status before = j->status;
        struct slurm_reply reply;
        if (status) {
            j->status.silent = true;
            news |= !before.silent;
            continue;
        }
        if (j->owed) {
            struct slurm_job there = *j;
            j->look_first = false;
            j->owed =
                slurm_find_job(all, j, &reply) && slurm_phase_of(&there, &reply, now) < SLURM_ENDED;
            j->status.job_id = j->owed ? reply.id : j->status.job_id;
        }
        if (j->dead || j->held || slurm_job_has_ended(j) ||
            (j->status.job_id == 0 && !j->look_first))
            continue;
        if (slurm_find_job(all, j, &reply))
            slurm_update_job(j, &reply, all, now);
        else
            slurm_job_missing(s, j, now);
        news |= memcmp(&before, &j->status, sizeof before) != 0;
    }
    pthread_mutex_unlock(&s->mutex);
    json_decref(all);
    if (news)
        s->changed(s->context);
}

/* ---------------------------------------------------------------- Slurm thread */

static bool slurm_has_last_call(const struct slurm_job *j)
{
    return j->owed ||
           (j->dead && j->cancel && !j->cancelled && j->status.job_id && !slurm_job_has_ended(j));
}

static void slurm_free_dead(struct slurm *s)
{
    for (struct slurm_job **at = &s->jobs; *at;) {
        struct slurm_job *j = *at;
        if (!j->dead || (slurm_has_last_call(j) && !s->quit)) {
            at = &j->next;
            continue;
        }
        *at = j->next;
        assert_object_ends(j, SLURM_JOB_MAGIC);
        free(j->run_dir);
        free(j);
    }
}

static bool slurm_wants_call(const struct slurm_job *j)
{
    if (j->dead || j->owed)
        return slurm_has_last_call(j) && j->status.job_id;
    return !j->held && !slurm_job_has_ended(j) &&
           (j->status.job_id == 0 ? !j->look_first && !j->cancel : j->cancel);
}

/* Returns when the next call is due; *job: for this job, or NULL for a poll. */
static double slurm_next_call(const struct slurm *s, struct slurm_job **job)
{
    double at = INFINITY;

    *job = NULL;
    for (struct slurm_job *j = s->jobs; j; j = j->next) {
        bool watched = j->owed || (!j->held && !j->dead && !slurm_job_has_ended(j));
        if (watched && (j->status.job_id || j->look_first) && s->look_at < at) {
            at = s->look_at;
            *job = NULL;
        }
        if (slurm_wants_call(j) && j->next_at < at) {
            at = j->next_at;
            *job = j;
        }
    }
    return at;
}

static void *slurm_serve(void *context)
{
    struct slurm *s = context;
    struct slurm_job *job;

    pthread_mutex_lock(&s->mutex);
    while (!s->quit) {
        slurm_free_dead(s);
        double at = slurm_next_call(s, &job);
        if (at > clock_monotonic()) {
            clock_wait(&s->wake, &s->mutex, at);
        } else if (job) {
            int64_t id = job->status.job_id;
            s->submitting = id ? s->submitting : job;
            pthread_mutex_unlock(&s->mutex);
            if (id)
                slurm_cancel_job(s, job, id);
            else
                slurm_submit_job(s, job);
            pthread_mutex_lock(&s->mutex);
        } else {
            pthread_mutex_unlock(&s->mutex);
            slurm_poll(s);
            pthread_mutex_lock(&s->mutex);
        }
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

/* ---------------------------------------------------------------- the manager's thread */

struct slurm *slurm_create(const struct slurm_settings *settings, void (*changed)(void *),
                           void *context)
{
    struct slurm *s = xcalloc(1, sizeof *s);
    s->magic = SLURM_MAGIC;
    s->settings = *settings;
    s->call = (struct slurm_call){.quit = &s->quit};
    s->changed = changed;
    s->context = context;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->wake, NULL);
    return s;
}

void slurm_destroy(struct slurm *s)
{
    if (!s)
        return;
    assert_object_ends(s, SLURM_MAGIC);
    pthread_mutex_lock(&s->mutex);
    s->quit = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->mutex);
    if (s->has_thread)
        pthread_join(s->thread, NULL);
    for (struct slurm_job *j = s->jobs; j; j = j->next)
        j->dead = true;
    slurm_free_dead(s);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

int slurm_check(struct error *e)
{
    static const char *const programs[] = {"sbatch", "squeue", "scancel"};

    for (size_t i = 0; i < 3; i++) {
        char *path;
        if (launch_find_program(programs[i], &path, e))
            return error_set(e, ERR_INVALID,
                             "launcher slurm: %s is not installed on traind's machine "
                             "(apt-get install slurm-client), or not in its PATH",
                             programs[i]);
        free(path);
    }
    return 0;
}

static int slurm_follow(struct slurm *s, const char *name, int64_t job_id, const char *run_dir,
                        struct launch_process *process, struct error *e)
{
    long long first;
    struct slurm_job *j = xcalloc(1, sizeof *j);

    assert_object(s, SLURM_MAGIC);
    *process = (struct launch_process){.pidfd = -1, .gate = -1};
    j->magic = SLURM_JOB_MAGIC;
    j->run_dir = xstrdup(run_dir);
    snprintf(j->name, sizeof j->name, "%s", name);
    j->slurm = s;
    j->held = true;
    j->first_attempt = sscanf(name, "traind-%*d-%lld-", &first) == 1 ? first : 1;
    j->status = (struct slurm_status){
        .phase = job_id ? SLURM_WAITING : SLURM_SUBMITTING,
        .job_id = job_id,
        .silent = job_id == 0,
        .exit_code = -1,
        .exit_signal = -1,
        .limit_seconds = NAN,
        .words = "being submitted to Slurm",
    };
    pthread_mutex_lock(&s->mutex);
    int why = s->has_thread ? 0 : pthread_create(&s->thread, NULL, slurm_serve, s);
    if (!why) {
        s->has_thread = true; /* it is started with the first job */
        j->next = s->jobs;
        s->jobs = j;
        process->slurm = j;
    }
    pthread_mutex_unlock(&s->mutex);
    if (!why)
        return 0;
    free(j->run_dir);
    free(j);
    return error_set_errno(e, why, "cannot start the launcher slurm");
}

int slurm_adopt(struct slurm *s, const char *name, int64_t job_id, const char *run_dir,
                struct launch_process *process, struct error *e)
{
    int status = slurm_follow(s, name, job_id, run_dir, process, e);

    if (!status)
        process->slurm->look_first = true;
    return status;
}

static void slurm_change(struct slurm_job *j, void (*set)(struct slurm_job *))
{
    assert_object(j, SLURM_JOB_MAGIC);
    pthread_mutex_lock(&j->slurm->mutex);
    set(j);
    pthread_cond_signal(&j->slurm->wake);
    pthread_mutex_unlock(&j->slurm->mutex);
}

static void slurm_set_soon(struct slurm_job *j)
{
    struct slurm *s = j->slurm;
    double soon = fmax(clock_monotonic(), s->looked_at + SOON_SECONDS);
    s->look_at = fmin(s->look_at, soon);
}

static void slurm_set_released(struct slurm_job *j)
{
    j->held = false;
    slurm_set_soon(j);
}

static void slurm_set_cancel(struct slurm_job *j)
{
    if (!j->cancel)
        j->next_at = 0;
    j->cancel = true;
}

static void slurm_set_dead(struct slurm_job *j)
{
    j->dead = true;
}

void slurm_release(struct slurm_job *job)
{
    slurm_change(job, slurm_set_released);
}

bool slurm_disown(struct slurm_job *job)
{
    assert_object(job, SLURM_JOB_MAGIC);
    pthread_mutex_lock(&job->slurm->mutex);
    bool ended = slurm_job_has_ended(job);
    int64_t ran = ended ? 0 : slurm_id_of_script(job);
    if (ran) {
        job->status.job_id = ran;
    } else if (!ended) {
        /* If the script starts later, it sees the cancellation and ends. */
        job->owed = job->status.job_id || job->look_first || job->slurm->submitting == job;
        job->status.phase = SLURM_ENDED;
        snprintf(job->status.state, sizeof job->status.state, "%s", "CANCELLED");
        ended = true;
    }
    pthread_cond_signal(&job->slurm->wake);
    pthread_mutex_unlock(&job->slurm->mutex);
    return ended;
}

void slurm_look_soon(struct slurm_job *job)
{
    slurm_change(job, slurm_set_soon);
}

void slurm_cancel(struct slurm_job *job)
{
    slurm_change(job, slurm_set_cancel);
    job->slurm->changed(job->slurm->context);
}

void slurm_forget(struct slurm_job *job)
{
    if (job)
        slurm_change(job, slurm_set_dead);
}

void slurm_read(struct slurm_job *job, struct slurm_status *status)
{
    assert_object(job, SLURM_JOB_MAGIC);
    pthread_mutex_lock(&job->slurm->mutex);
    *status = job->status;
    pthread_mutex_unlock(&job->slurm->mutex);
}

const char *slurm_name(const struct slurm_job *job)
{
    assert_object(job, SLURM_JOB_MAGIC);
    return job->name;
}

int64_t slurm_first_attempt(const struct slurm_job *job)
{
    assert_object(job, SLURM_JOB_MAGIC);
    return job->first_attempt;
}

/* ---------------------------------------------------------------- launcher */

static int slurm_start_attempt(const struct launch_request *r, struct launch_process *process,
                               struct error *e)
{
    char name[SLURM_NAME_BYTES], folder[PATH_MAX], path[PATH_MAX], *text = NULL;

    *process = (struct launch_process){.pidfd = -1, .gate = -1};
    slurm_job_name(r, name);
    int status = slurm_script(r, &text, e);
    if (!status)
        status = file_path(folder, e, "%s/attempt-%lld", r->run_dir, (long long)r->attempt);
    if (!status)
        status = file_path(path, e, "%s/" SCRIPT, folder);
    if (!status)
        status = file_make_dirs(folder, e);
    if (!status)
        status = file_write_atomic(path, text, strlen(text), e);
    free(text);
    return status ? status : slurm_follow(r->cluster, name, 0, r->run_dir, process, e);
}

/* The script of a running job watches the attempt's folder; a waiting job has nothing to save. The
 * script writes slurm-job when it begins, which may be before Slurm's list shows it. */
static void slurm_stop_attempt(struct launch_process *process, const char *attempt_dir,
                               enum launch_stop how)
{
    struct slurm_status status;

    slurm_read(process->slurm, &status);
    if (how != LAUNCH_STOP_AFTER_STEP ||
        (status.phase != SLURM_RUNNING && !attempt_file_is_filled(attempt_dir, "slurm-job")))
        slurm_cancel(process->slurm);
}

static int slurm_survivors(struct launch_process *process, const char *attempt_dir)
{
    struct slurm_status status;

    (void)attempt_dir;
    slurm_read(process->slurm, &status);
    return status.phase < SLURM_ENDED;
}

const struct launcher launcher_slurm = {.name = "slurm",
                                        .start = slurm_start_attempt,
                                        .stop = slurm_stop_attempt,
                                        .survivors = slurm_survivors};
