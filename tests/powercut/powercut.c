/*
 * The store when the power goes. A daemon's life with the real store (submissions, changes of
 * state, events, removals) runs once; before each sync of a file the power is cut, in several ways,
 * and the store is opened from what the disk then holds. What was answered for must be there, once;
 * ids are not used again; the events can be read on, each once; and a job that is there has all its
 * events, while of one that was removed nothing stays.
 *
 *   powercut [--lives N] [--seed N]      TAP
 */
#include <limits.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "common/system/file.h"
#include "daemon/ingest/apply.h"
#include "daemon/store/attempt.h"
#include "daemon/store/ingest.h"
#include "daemon/store/job_change.h"
#include "daemon/store/job_insert.h"
#include "daemon/store/job_removal.h"
#include "daemon/store/job_row.h"
#include "daemon/store/attempt.h"
#include "daemon/store/ingest.h"
#include "daemon/store/job_change.h"
#include "daemon/store/job_insert.h"
#include "daemon/store/job_removal.h"
#include "daemon/store/job_row.h"
#include "daemon/store/attempt.h"
#include "daemon/store/ingest.h"
#include "daemon/store/job_change.h"
#include "daemon/store/job_insert.h"
#include "daemon/store/job_removal.h"
#include "daemon/store/job_row.h"
#include "daemon/store/store.h"
#include "daemon/store/store_open.h"
#include "tests/powercut/power_vfs.h"

#define JOBS_MAX       64
#define EVENTS         60  /* of the one attempt that writes any */
#define STEPS          110 /* of each job that ends: more than one turn of a removal deletes */
#define FINDINGS_SHOWN 10

/* What clients and workers were answered, or observed. */
struct life {
    char folder[64], live[96], after[96];
    struct store *store;
    struct ingest *ingest;
    uint64_t random;
    struct job {
        int64_t id;   /* 0: not answered yet */
        bool removed; /* answered */
        enum job_state state;
        bool state_doubtful; /* a change of it is under way */
    } jobs[JOBS_MAX];
    int asked;            /* submissions, also the one that has no answer yet */
    int64_t highest;      /* id that was answered */
    int events_written;   /* lines in the file */
    int64_t ingested_job; /* 0: no attempt yet */
    int removing;         /* place of the job whose removal has no answer yet; -1: none */
    bool verifying;
    long cuts, findings;
};

static struct error e;

static void power_found(struct life *l, enum power_loss loss, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void power_found(struct life *l, enum power_loss loss, const char *format, ...)
{
    va_list arguments;

    if (l->findings++ >= FINDINGS_SHOWN)
        return;
    printf("# cut %ld (%s): ", l->cuts, power_loss_names[loss]);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
}

static void must(int status, const char *what)
{
    if (status) {
        printf("Bail out! %s: %s\n", what, e.text);
        exit(1);
    }
}

/* ---- a job and its events */

static int submit_numbered(struct store *store, int number, int64_t *id, bool *existed)
{
    char key[32], spec[3000];

    snprintf(key, sizeof key, "key-%d", number);
    /* Of different sizes: some take a page of their own. */
    snprintf(spec, sizeof spec, "{\"name\":\"%0*d\"}", 1 + number * 389 % 2900, number);
    struct store_job_new job = {
        .name = key,
        .spec = spec,
        .plan = "{\"train_steps\":4}",
        .idempotency_key = key,
        .request_digest = "d",
        .size = {.launcher = "local", .slots = 1, .train_steps = EVENTS},
        .reason = "r",
        .now = 1000 + number
    };
    return store_job_insert(store, &job, id, existed, &e);
}

static void write_event(struct life *l)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/events.jsonl", l->folder);
    FILE *out = fopen(path, "ab");
    int n = ++l->events_written;
    fprintf(
        out,
        "{\"seq\": %d, \"t\": %d.5, \"type\": \"step\", \"step\": %d, \"epoch\": 0.1, \"loss\": "
        "2.5, \"lr\": 0.1, \"images_per_sec\": 10}\n",
        n, 2000 + n, n);
    fclose(out);
}

/* ---- checks after a cut */

static long power_look_up(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *row = NULL;
    long value = -1;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
        value = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    sqlite3_close(db);
    return value;
}

static void judge_job(struct life *l, struct store *store, int number, enum power_loss loss)
{
    const struct job *wanted = &l->jobs[number];
    struct store_job job;

    if (wanted->removed) {
        if (store_job_get(store, wanted->id, &job, &e) == 0)
            power_found(l, loss, "job %d was removed and is back", (int)wanted->id);
        return;
    }
    if (store_job_get(store, wanted->id, &job, &e)) {
        if (l->removing != number)
            power_found(l, loss, "job %d was answered for: %s", (int)wanted->id, e.text);
        return;
    }
    char name[32];
    snprintf(name, sizeof name, "key-%d", number);
    if (strcmp(job.name, name) != 0)
        power_found(l, loss, "job %d is %s, not %s", (int)wanted->id, job.name, name);
    if (job.state != wanted->state && !wanted->state_doubtful)
        power_found(l, loss, "job %d is %s, and was said to be %s", (int)wanted->id,
                    job_state_name(job.state), job_state_name(wanted->state));
    store_job_clear(&job);
}

/* Every submission comes again with its key. */
static void judge_again(struct life *l, struct store *store, enum power_loss loss)
{
    for (int i = 0; i < l->asked; i++) {
        const struct job *wanted = &l->jobs[i];
        int64_t id;
        bool existed;
        if (wanted->removed || l->removing == i)
            continue;
        if (submit_numbered(store, i, &id, &existed))
            power_found(l, loss, "submission %d is refused: %s", i, e.text);
        else if (wanted->id && (!existed || id != wanted->id))
            power_found(l, loss, "submission %d was job %d and is job %d", i, (int)wanted->id,
                        (int)id);
        else if (!existed && id <= l->highest)
            power_found(l, loss, "the id %d is used again", (int)id);
    }
}

static void judge_events(struct life *l, struct store *store, const char *path,
                         enum power_loss loss)
{
    struct ingest *ingest;
    char sql[128];

    if (!l->ingested_job)
        return;
    if (ingest_create(store, l->ingested_job, 1, l->folder, &ingest, &e) ||
        ingest_catch_up(ingest, &e)) {
        power_found(l, loss, "the events cannot be read on: %s", e.text);
        return;
    }
    ingest_destroy(ingest);
    snprintf(sql, sizeof sql, "select count(*) from job_event where job_id = %d and type = 'step'",
             (int)l->ingested_job);
    if (power_look_up(path, sql) != l->events_written)
        power_found(l, loss, "%ld events of %d", power_look_up(path, sql), l->events_written);
    snprintf(sql, sizeof sql, "select count(*) from step_metric where job_id = %d",
             (int)l->ingested_job);
    if (power_look_up(path, sql) != l->events_written)
        power_found(l, loss, "%ld steps of %d", power_look_up(path, sql), l->events_written);
}

/* Finish the removals; then only the ended jobs have events. */
static void judge_removals(struct store *store, struct life *l, const char *path,
                           enum power_loss loss)
{
    bool rows_left;
    int64_t id = 1;

    while (id)
        if (store_removal_go_on(store, 1, &id, &rows_left, &e) ||
            (id && !rows_left && store_removal_set(store, id, false, &e))) {
            power_found(l, loss, "a removal cannot go on: %s", e.text);
            return;
        }
    if (power_look_up(path, "select (select count(*) from job_event where job_id not in "
                            "(select id from job)) + (select count(*) from step_metric where "
                            "job_id not in (select id from job))") != 0)
        power_found(l, loss, "a removed job has left rows");
    if (power_look_up(path, "select count(*) from job where state = 'cancelled' and "
                            "(select count(*) from job_event where job_id = job.id and "
                            "type = 'step') + (select count(*) from step_metric where "
                            "job_id = job.id) <> 220") != 0)
        power_found(l, loss, "a job is there without all its events");
}

static void judge_cut(struct life *l, enum power_loss loss)
{
    struct store *store;
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/traind.db", l->after);
    if (store_open(path, &store, &e)) {
        power_found(l, loss, "the store cannot be opened: %s", e.text);
        return;
    }
    for (int i = 0; i < l->asked; i++)
        if (l->jobs[i].id)
            judge_job(l, store, i, loss);
    judge_removals(store, l, path, loss);
    judge_again(l, store, loss);
    judge_events(l, store, path, loss);
    if (power_look_up(path, "select count(*) - count(distinct name) from job") != 0)
        power_found(l, loss, "a submission is there twice");
    store_close(store);
    if (power_look_up(path,
                      "select count(*) from pragma_integrity_check where integrity_check <> 'ok'"))
        power_found(l, loss, "the database is damaged");
}

static void on_sync(void *context)
{
    struct life *l = context;

    if (l->verifying)
        return;
    l->verifying = true;
    for (int i = 0; i < 5; i++) { /* what is drawn is drawn twice */
        enum power_loss loss = i < POWER_LOSSES ? (enum power_loss)i : POWER_ANY_SECTOR;
        file_remove_tree(l->after, NULL);
        mkdir(l->after, 0700);
        l->cuts++;
        power_vfs_cut(l->after, loss, &l->random);
        judge_cut(l, loss);
    }
    l->verifying = false;
}

/* ---- a life */

static void live_submit(struct life *l)
{
    struct job *j = &l->jobs[l->asked];
    bool existed;
    int64_t id;

    if (l->asked == JOBS_MAX)
        return;
    l->asked++;
    must(submit_numbered(l->store, l->asked - 1, &id, &existed), "a submission");
    j->id = id;
    j->state = JOB_QUEUED;
    l->highest = id > l->highest ? id : l->highest;
}

static void change_state(struct life *l, struct job *j, enum job_state to)
{
    struct store_state_change change = {to, "because", 3000, NULL};

    j->state_doubtful = true;
    must(store_job_set_state(l->store, j->id, &change, &e), "a change of state");
    j->state = to;
    j->state_doubtful = false;
}

static void live_steps(struct life *l, const struct job *j)
{
    struct store_event events[STEPS];
    struct store_batch batch = {
        .job_id = j->id, .attempt = 1, .to_bytes = 1, .events = events, .count = STEPS};

    for (int i = 0; i < STEPS; i++) {
        json_t *body = json_pack("{s:i, s:f}", "step", i + 1, "loss", 2.5);
        events[i] =
            (struct store_event){.seq = i + 1, .t = 2000 + i, .type = EVENT_STEP, .body = body};
        store_step_of(body, &events[i].step);
    }
    must(store_ingest(l->store, &batch, &e), "steps");
    for (int i = 0; i < STEPS; i++)
        json_decref((json_t *)events[i].body);
}

static void live_end(struct life *l)
{
    struct job *j = &l->jobs[power_draw(&l->random, (uint64_t)l->asked)];

    if (j->id && !j->removed && j->id != l->ingested_job && j->state == JOB_QUEUED) {
        live_steps(l, j);
        change_state(l, j, JOB_CANCELLED);
    }
}

static void live_remove(struct life *l)
{
    int number = (int)power_draw(&l->random, (uint64_t)l->asked);

    while (number < l->asked && (l->jobs[number].removed || l->jobs[number].state != JOB_CANCELLED))
        number++;
    if (number == l->asked)
        return;
    l->removing = number;
    must(store_job_delete(l->store, l->jobs[number].id, &e), "a removal");
    l->jobs[number].removed = true;
    l->removing = -1;
}

static void live_go_on(struct life *l)
{
    bool rows_left;
    int64_t id;

    must(store_removal_go_on(l->store, 0, &id, &rows_left, &e), "a removal's next turn");
    if (id && !rows_left)
        must(store_removal_set(l->store, id, false, &e), "a removal's end");
}

static void live_start(struct life *l)
{
    struct store_state_change start = {JOB_STARTING, "r", 1500, NULL};
    struct job *j = &l->jobs[0];
    int64_t attempt;

    j->state_doubtful = true; /* from now on its events change it */
    must(store_job_begin_attempt(l->store, j->id, &start, 0, &attempt, &e), "an attempt");
    l->ingested_job = j->id;
    must(ingest_create(l->store, j->id, 1, l->folder, &l->ingest, &e), "its events");
}

static void live_events(struct life *l)
{
    for (uint64_t n = 1 + power_draw(&l->random, 5); n && l->events_written < EVENTS; n--)
        write_event(l);
    must(ingest_catch_up(l->ingest, &e), "events");
}

static void live_once(struct life *l)
{
    switch (power_draw(&l->random, 8)) {
    case 0:
    case 1:
    case 2:
        live_submit(l);
        break;
    case 3:
        live_end(l);
        break;
    case 4:
        live_remove(l);
        break;
    case 5:
        live_go_on(l);
        break;
    default:
        live_events(l);
    }
}

/* So that the log is taken into the database many times in a short life. */
static int take_log_often(sqlite3 *db, char **words, const void *api)
{
    (void)words;
    (void)api;
    return sqlite3_wal_autocheckpoint(db, 12);
}

static void life_begin(struct life *l, uint64_t seed)
{
    const char *below = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
    char path[PATH_MAX];

    *l = (struct life){.random = seed * 0x9e3779b97f4a7c15u + 1, .removing = -1};
    snprintf(l->folder, sizeof l->folder, "%s/traind-power.XXXXXX", below);
    if (!mkdtemp(l->folder))
        exit(1);
    snprintf(l->live, sizeof l->live, "%s/live", l->folder);
    snprintf(l->after, sizeof l->after, "%s/after", l->folder);
    mkdir(l->live, 0700);
    power_vfs_begin(l->live, on_sync, l);
    snprintf(path, sizeof path, "%s/traind.db", l->live);
    must(store_open(path, &l->store, &e), "a new store");
}

/* One process a life: the VFS remembers. */
static long one_life(uint64_t seed, long *cuts)
{
    struct life l;

    life_begin(&l, seed);
    live_submit(&l);
    live_start(&l);
    for (int i = 0; i < 60; i++)
        live_once(&l);
    while (l.events_written < EVENTS)
        live_events(&l);
    ingest_destroy(l.ingest);
    store_close(l.store);
    file_remove_tree(l.folder, NULL);
    *cuts = l.cuts;
    return l.findings;
}

int main(int count, char **words)
{
    uint64_t seed = 1;
    long lives = 1, cuts;

    for (int i = 1; i + 1 < count; i += 2)
        if (strcmp(words[i], "--lives") == 0)
            lives = strtol(words[i + 1], NULL, 10);
        else
            seed = strtoull(words[i + 1], NULL, 10);
    log_set_level(LOG_LEVEL_ERROR);
    sqlite3_auto_extension((void (*)(void))take_log_often);
    printf("1..%ld\n", lives);
    fflush(stdout);
    int failed = 0;
    for (long i = 0; i < lives; i++) {
        pid_t child = fork();
        if (child == 0) {
            long findings = one_life(seed + (uint64_t)i, &cuts);
            printf("%sok %ld - seed %llu: the power is cut %ld times, %ld findings\n",
                   findings || cuts < 100 ? "not " : "", i + 1,
                   (unsigned long long)(seed + (uint64_t)i), cuts, findings);
            fflush(stdout);
            _exit(findings || cuts < 100);
        }
        int status;
        waitpid(child, &status, 0);
        failed |= status;
    }
    return failed != 0;
}
