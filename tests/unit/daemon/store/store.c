/* The store: migrations, strictness, submissions once, events once, states derived from events. */
#include <criterion/criterion.h>
#include <limits.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/attempt.h"
#include "daemon/store/event.h"
#include "daemon/store/ingest.h"
#include "daemon/store/job_change.h"
#include "daemon/store/job_insert.h"
#include "daemon/store/job_removal.h"
#include "daemon/store/job_row.h"
#include "daemon/store/job_search.h"
#include "daemon/store/metric.h"
#include "daemon/store/migrate.h"
#include "daemon/store/speed.h"
#include "daemon/store/store.h"
#include "tests/unit/daemon/store.h"

static char path[PATH_MAX];

static void set_up(void)
{
    make_store();
    strcpy(path, in_folder("traind.db"));
}

TestSuite(store, .init = set_up, .fini = remove_store);

static const struct store_job_new example = {
    .name = "a",
    .spec = "{\"mode\":\"train\",\"precision\":\"fp32\",\"model\":{\"arch\":\"resnet50\","
            "\"image_size\":32},\"cluster\":{\"nodes\":1,\"workers_per_node\":2,"
            "\"threads_per_worker\":1}}",
    .plan = "{\"train_steps\":4}",
    .size = {.slots = 2, .train_steps = 4},
    .reason = "waits for its turn",
    .now = 1000.5,
};

static int64_t submit_stored(void)
{
    int64_t id = 0;
    bool existed;
    cr_assert_eq(store_job_insert(store, &example, &id, &existed, &e), 0, "%s", e.text);
    cr_assert(!existed);
    return id;
}

/* Numbers of one row from the database as another program sees it. */
static void look_up_in(sqlite3 *db, const char *sql, int columns, double *values)
{
    sqlite3_stmt *row;
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    bool found = sqlite3_step(row) == SQLITE_ROW;
    for (int i = 0; i < columns; i++)
        values[i] = found ? sqlite3_column_double(row, i) : (double)NAN;
    sqlite3_finalize(row);
}

static void look_up_numbers(const char *sql, int columns, double *values)
{
    sqlite3 *db;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    look_up_in(db, sql, columns, values);
    sqlite3_close(db);
}

static double look_up(const char *sql)
{
    double value;
    look_up_numbers(sql, 1, &value);
    return value;
}

static int set_job_state(int64_t id, enum job_state to, double now)
{
    struct store_state_change change = {to, "because", now, NULL};
    return store_job_set_state(store, id, &change, &e);
}

Test(store, a_submitted_job_is_read_back)
{
    struct store_job job;
    int64_t id = submit_stored();

    cr_assert_eq(store_job_get(store, id, &job, &e), 0);
    cr_assert_eq(job.id, 1);
    cr_assert_str_eq(job.name, "a");
    cr_assert_eq(job.state, JOB_QUEUED);
    cr_assert_str_eq(job.run_dir, "jobs/1");
    cr_assert_str_eq(job.spec, example.spec);
    cr_assert_eq(job.created_at, 1000.5);
    cr_assert_eq(job.started_at, 0);
    cr_assert_eq(job.exit_code, STORE_NO_EXIT);
    cr_assert(isnan(job.loss));
    store_job_clear(&job);
    cr_assert_eq(store_set_jobs_dir(store, "/s/jobs", &e), 0);
    cr_assert_eq(store_job_get(store, id, &job, &e), 0);
    cr_assert_str_eq(job.run_dir, "/s/jobs/1");
    store_job_clear(&job);
    cr_assert_eq(store_job_get(store, 2, &job, &e), -ERR_NOT_FOUND);
}

Test(store, the_same_key_gives_the_same_job_and_another_body_a_conflict)
{
    struct store_job_new job = example;
    int64_t first, second;
    bool existed;

    job.idempotency_key = "k";
    job.request_digest = "d1";
    cr_assert_eq(store_job_insert(store, &job, &first, &existed, &e), 0);
    cr_assert_eq(store_job_insert(store, &job, &second, &existed, &e), 0);
    cr_assert(existed);
    cr_assert_eq(first, second);
    job.request_digest = "d2";
    cr_assert_eq(store_job_insert(store, &job, &second, &existed, &e), -ERR_CONFLICT);
    cr_assert_eq(look_up("select count(*) from job"), 1);
}

Test(store, the_keys_of_users_are_independent)
{
    struct store_job_new job = example;
    struct store_key key = {"k", "d", "token:eve"};
    int64_t ids[3], found;
    bool existed;

    job.idempotency_key = "k";
    job.request_digest = "d";
    for (int i = 0; i < 3; i++) {
        job.submitted_by = i == 0 ? NULL : i == 1 ? "token:eve" : "token:bob";
        cr_assert_eq(store_job_insert(store, &job, &ids[i], &existed, &e), 0, "%s", e.text);
        cr_assert(!existed);
    }
    cr_assert_eq(store_job_find_key(store, &key, &found, &e), 0);
    cr_assert_eq(found, ids[1]);
    key.by = "token:ann";
    cr_assert_eq(store_job_find_key(store, &key, &found, &e), 0);
    cr_assert_eq(found, 0);
    key.by = NULL;
    cr_assert_eq(store_job_find_key(store, &key, &found, &e), 0);
    cr_assert_eq(found, ids[0]);
}

/* Of that version, filled by the text, and then brought to the last one. */
static sqlite3 *migrated_database(int version, const char *fill)
{
    sqlite3 *db;

    cr_assert_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
    cr_assert_eq(store_migrate(db, store_migrations, version, &e), 0, "%s", e.text);
    cr_assert_eq(sqlite3_exec(db, fill, NULL, NULL, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    cr_assert_eq(store_migrate(db, store_migrations, store_migration_count, &e), 0, "%s", e.text);
    return db;
}

static int count_kept_keys(void *count, int columns, char **values, char **names)
{
    (void)columns, (void)values, (void)names;
    ++*(int *)count;
    return 0;
}

Test(store, keys_of_an_older_database_become_their_users)
{
    int count = 0;
    sqlite3 *db = migrated_database(
        27, "insert into job (name, state, spec, plan, run_dir, created_at, slots, "
            "train_steps, idempotency_key, submitted_by) values "
            "('a', 'queued', '{}', '{}', '', 1, 1, 1, 'k', 'token:eve'),"
            "('b', 'queued', '{}', '{}', '', 1, 1, 1, 'n', null),"
            "('c', 'queued', '{}', '{}', '', 1, 1, 1, null, 'token:eve'),"
            "('d', 'queued', '{}', '{}', '', 1, 1, 1, char(1) || 'sweep-1-0-0', 'sweep 1')");
    cr_assert_eq(sqlite3_exec(db,
                              "select 1 from job where idempotency_key is case name "
                              "when 'a' then char(2) || 'token:eve' || char(2) || 'k' "
                              "when 'b' then 'n' when 'd' then char(1) || 'sweep-1-0-0' end",
                              count_kept_keys, &count, NULL),
                 SQLITE_OK);
    cr_assert_eq(count, 4);
    sqlite3_close(db);
}

Test(store, a_change_of_state_writes_its_event_and_a_wrong_one_nothing)
{
    int64_t id = submit_stored(), attempt;
    struct store_job job;

    cr_assert_eq(store_job_begin_attempt(
                     store, id, &(struct store_state_change){JOB_STARTING, NULL, 1001, NULL}, 0,
                     &attempt, &e),
                 0, "%s", e.text);
    cr_assert_eq(attempt, 1);
    cr_assert_eq(set_job_state(id, JOB_RUNNING, 1002), 0, "%s", e.text);
    cr_assert_eq(set_job_state(id, JOB_SUCCEEDED, 1009), 0, "%s", e.text);
    cr_assert_eq(set_job_state(id, JOB_RUNNING, 1010), -ERR_CONFLICT);
    cr_assert_eq(store_job_begin_attempt(
                     store, id, &(struct store_state_change){JOB_STARTING, NULL, 1011, NULL}, 0,
                     &attempt, &e),
                 -ERR_CONFLICT);
    cr_assert_eq(look_up("select count(*) from job_event where type = 'state'"), 4);
    cr_assert_eq(look_up("select count(*) from job, job_event where job_event.type = 'state' and "
                         "job_event.id = (select max(id) from job_event where type = 'state') and "
                         "json_extract(body, '$.state') = state"),
                 1);
    cr_assert_eq(store_job_get(store, id, &job, &e), 0);
    cr_assert_eq(job.attempt, 1, "a refused attempt must not be counted");
    cr_assert_eq(job.started_at, 1001);
    cr_assert_eq(job.finished_at, 1009);
    store_job_clear(&job);
    cr_assert_eq(set_job_state(77, JOB_RUNNING, 1), -ERR_NOT_FOUND);
}

Test(store, jobs_are_listed_newest_first_and_queued_by_priority)
{
    struct store_job_new job = example;
    struct store_jobs jobs;
    int64_t id;
    bool existed;

    for (int i = 0; i < 5; i++) {
        job.priority = i == 3 ? 9 : 0;
        cr_assert_eq(store_job_insert(store, &job, &id, &existed, &e), 0);
    }
    struct store_job_filter newest = {.after = 5, .limit = 2};
    cr_assert_eq(store_job_list(store, &newest, &jobs, &e), 0);
    cr_assert_eq(jobs.count, 2);
    cr_assert_eq(jobs.items[0].id, 4);
    cr_assert_eq(jobs.items[1].id, 3);
    cr_assert_null(jobs.items[0].spec);
    store_jobs_clear(&jobs);

    cr_assert_eq(set_job_state(2, JOB_CANCELLED, 1), 0, "%s", e.text);
    struct store_job_filter queue = {.states = 1u << JOB_QUEUED,
                                     .order = STORE_QUEUE_ORDER,
                                     .priority_seconds = 3600,
                                     .documents = true};
    cr_assert_eq(store_job_list(store, &queue, &jobs, &e), 0);
    cr_assert_eq(jobs.count, 4);
    cr_assert_eq(jobs.items[0].id, 4);
    cr_assert_eq(jobs.items[1].id, 1);
    cr_assert_eq(jobs.items[2].id, 3);
    cr_assert_str_eq(jobs.items[0].plan, example.plan);
    store_jobs_clear(&jobs);

    struct store_job_filter ended = {.states = 1u << JOB_CANCELLED};
    cr_assert_eq(store_job_list(store, &ended, &jobs, &e), 0);
    cr_assert_eq(jobs.count, 1);
    store_jobs_clear(&jobs);
}

static int change_waiting(int64_t id, int what, double now)
{
    struct store_waiting_change change = {.now = now, .by = "user:eve", .priority = 7};

    change.what = what;
    return store_job_change_waiting(store, id, &change, &e);
}

Test(store, a_held_job_is_in_no_queue_and_begins_nothing)
{
    static const struct store_job_filter queue = {
        .states = 1u << JOB_QUEUED, .order = STORE_QUEUE_ORDER, .launcher = STORE_LOCAL};
    struct store_state_change start = {JOB_STARTING, NULL, 1300, NULL};
    struct store_waiting waits = {1, "waits", 5000};
    int64_t id = submit_stored(), other = submit_stored(), attempt;
    struct store_jobs jobs;
    struct store_job job;

    cr_assert_eq(change_waiting(id, STORE_RELEASE, 1100), -ERR_CONFLICT);
    cr_assert_eq(change_waiting(id, STORE_HOLD, 1100), 0, "%s", e.text);
    cr_assert_eq(change_waiting(id, STORE_HOLD, 1150), -ERR_CONFLICT);
    cr_assert_eq(store_job_list(store, &queue, &jobs, &e), 0, "%s", e.text);
    cr_assert(jobs.count == 1 && jobs.items[0].id == other);
    store_jobs_clear(&jobs);
    cr_assert_eq(store_job_begin_attempt(store, id, &start, 0, &attempt, &e), -ERR_CONFLICT);
    cr_assert_eq(store_jobs_wait(store, &waits, 1, &e), 0);
    cr_assert_eq(change_waiting(id, STORE_PRIORITY, 1200), 0, "%s", e.text);
    cr_assert_eq(store_job_get(store, id, &job, &e), 0);
    cr_expect(job.held_at == 1100 && job.priority == 7 && job.estimated_start == 0);
    cr_expect_str_eq(job.reason, "held until it is released; priority 7, was 0");
    store_job_clear(&job);
    cr_expect_eq(look_up("select json_extract(spec, '$.priority') from job where id = 1"), 7);
    cr_assert_eq(change_waiting(id, STORE_RELEASE, 1250), 0, "%s", e.text);
    cr_expect_eq(look_up("select queued_at from job where id = 1"), 1000.5 + 150);
    cr_assert_eq(change_waiting(id, STORE_HOLD, 1260), 0, "%s", e.text);
    cr_assert_eq(set_job_state(id, JOB_CANCELLED, 1270), 0, "%s", e.text);
    cr_expect_eq(look_up("select held_at is null from job where id = 1"), 1);
    cr_assert_eq(change_waiting(id, STORE_HOLD, 1280), -ERR_CONFLICT);
    cr_assert_eq(change_waiting(99, STORE_HOLD, 1280), -ERR_NOT_FOUND);
    cr_expect_eq(look_up("select count(*) from job_event where json_extract(body, '$.by') = "
                         "'user:eve' and json_extract(body, '$.state') = 'queued'"),
                 4);
}

/* Ten jobs in each state, in turn; ids rise from 1. */
static void submit_in_all_states(void)
{
    char sql[120];
    sqlite3 *db;

    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    for (int i = 0; i < 10 * JOB_STATE_COUNT; i++) {
        snprintf(sql, sizeof sql, "update job set state = '%s' where id = %d",
                 job_state_name((enum job_state)(i % JOB_STATE_COUNT)), (int)submit_stored());
        cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    }
    sqlite3_close(db);
}

Test(store, the_newest_jobs_of_any_states_are_listed)
{
    struct store_jobs jobs;

    submit_in_all_states();
    for (unsigned states = 1; states < 1u << JOB_STATE_COUNT; states++) {
        struct store_job_filter filter = {.states = states, .after = 60, .limit = 12};
        cr_assert_eq(store_job_list(store, &filter, &jobs, &e), 0, "%s", e.text);
        size_t listed = 0;
        for (int64_t id = 59; id >= 1 && listed < 12; id--)
            if (states & 1u << (id - 1) % JOB_STATE_COUNT)
                cr_assert_eq(jobs.items[listed++].id, id, "states %x", states);
        cr_assert_eq(jobs.count, listed, "states %x", states);
        store_jobs_clear(&jobs);
    }
}

/* ---------------------------------------------------------------- events */

static struct store_event event_of(json_t *body)
{
    struct store_event event = {
        .seq = json_integer_value(json_object_get(body, "seq")),
        .t = json_number_value(json_object_get(body, "t")),
        .type = event_type_of(json_string_value(json_object_get(body, "type"))),
        .body = body,
    };
    store_step_of(body, &event.step);
    return event;
}

static json_t *step_body(int seq, int step, double loss)
{
    return json_pack("{s:i, s:f, s:s, s:i, s:f, s:f, s:f, s:f}", "seq", seq, "t", 2000.0 + seq,
                     "type", "step", "step", step, "epoch", 0.5, "loss", loss, "lr", 0.1,
                     "images_per_sec", 40.0);
}

Test(store, a_batch_read_twice_counts_once)
{
    int64_t id = submit_stored(), at;
    json_t *bodies[2] = {step_body(1, 1, 2.5), step_body(2, 2, 2.25)};
    struct store_event events[2] = {event_of(bodies[0]), event_of(bodies[1])};
    struct store_batch batch = {
        .job_id = id, .attempt = 1, .from_bytes = 0, .to_bytes = 100, .events = events, .count = 2};

    cr_assert_eq(store_ingest(store, &batch, &e), 0, "%s", e.text);
    cr_assert_eq(store_ingest(store, &batch, &e), -ERR_CONFLICT, "the position has moved");
    batch.from_bytes = 100; /* the same lines once more, as after a file was written twice */
    batch.to_bytes = 200;
    cr_assert_eq(store_ingest(store, &batch, &e), 0);
    cr_assert_eq(look_up("select count(*) from job_event where type = 'step'"), 2);
    cr_assert_eq(look_up("select count(*) from step_metric"), 2);
    cr_assert_eq(look_up("select loss from job"), 2.25);
    cr_assert_eq(look_up("select step from job"), 2);
    cr_assert_eq(store_ingest_position(store, id, 1, &at, &e), 0);
    cr_assert_eq(at, 200);
    cr_assert_eq(store_ingest_position(store, id, 2, &at, &e), 0);
    cr_assert_eq(at, 0);
    json_decref(bodies[0]);
    json_decref(bodies[1]);
}

Test(store, a_batch_whose_state_is_impossible_leaves_nothing_behind)
{
    int64_t id = submit_stored(), at;
    json_t *body = step_body(1, 1, 2.5);
    struct store_event event = event_of(body);
    struct store_state_change change = {JOB_SUCCEEDED, NULL, 1, NULL};
    struct store_batch batch = {id, 1, 0, 50, &event, 1, &change};

    cr_assert_eq(store_ingest(store, &batch, &e), -ERR_CONFLICT, "queued cannot become succeeded");
    cr_assert_eq(look_up("select count(*) from step_metric"), 0);
    cr_assert_eq(look_up("select count(*) from job_event where type = 'step'"), 0);
    cr_assert_eq(store_ingest_position(store, id, 1, &at, &e), 0);
    cr_assert_eq(at, 0);
    json_decref(body);
}

static void ingest_text(int64_t id, int attempt, const char *lines)
{
    json_t *bodies = json_loads(lines, 0, NULL), *body;
    struct store_event events[8];
    size_t i;

    cr_assert_leq(json_array_size(bodies), 8);
    json_array_foreach (bodies, i, body)
        events[i] = event_of(body);
    struct store_batch batch = {
        .job_id = id, .attempt = attempt, .to_bytes = 10, .events = events, .count = i};
    store_ingest_position(store, id, attempt, &batch.from_bytes, &e);
    batch.to_bytes += batch.from_bytes;
    cr_assert_eq(store_ingest(store, &batch, &e), 0, "%s", e.text);
    json_decref(bodies);
}

#define STEP_LINE(seq, step, ms, rate)                                                             \
    "{\"seq\":" #seq ",\"t\":1,\"type\":\"step\",\"step\":" #step ",\"step_ms\":" #ms              \
    ",\"images_per_sec\":" #rate "}"

Test(store, the_speed_of_several_attempts_is_that_of_the_steps_that_count)
{
    int64_t id = submit_stored();
    double speed;

    ingest_text(id, 1,
                "[" STEP_LINE(1, 1, 100, 40) "," STEP_LINE(2, 2, 100, 40) "," STEP_LINE(
                    3, 3, 100, 40) "," STEP_LINE(4, 4, 100, 40) "]");
    cr_assert_eq(store_steps_speed(store, id, 1, &speed, &e), 0, "%s", e.text);
    cr_expect_float_eq(speed, 40, 1e-9);
    ingest_text(id, 2,
                "[{\"seq\":1,\"t\":2,\"type\":\"run_start\",\"resumed_step\":2}," STEP_LINE(
                    2, 3, 400, 20) "]");
    cr_assert_eq(store_steps_speed(store, id, 2, &speed, &e), 0, "%s", e.text);
    cr_expect_float_eq(speed, (4 + 4 + 8) / 0.6, 1e-9, "the third step once, and not the fourth");
    ingest_text(id, 2, "[{\"seq\":3,\"t\":3,\"type\":\"run_stop\",\"images_per_sec\":null}]");
    cr_assert_eq(store_steps_speed(store, id, 2, &speed, &e), 0, "%s", e.text);
    cr_expect_float_eq(speed, 16 / 0.6, 1e-9, "the worker did not know it");
    ingest_text(id, 2, "[{\"seq\":4,\"t\":3,\"type\":\"run_stop\",\"images_per_sec\":26.5}]");
    cr_assert_eq(store_steps_speed(store, id, 2, &speed, &e), 0, "%s", e.text);
    cr_expect(isnan(speed), "what the worker said stays");
    cr_expect_eq(look_up("select images_per_sec from job"), 26.5);
}

Test(store, the_speeds_in_an_older_database_become_those_of_the_whole_run)
{
    double speeds[3];
    sqlite3 *db = migrated_database(
        32, "insert into job (id, state, spec, plan, run_dir, created_at, slots, "
            "train_steps, step, attempt, images_per_sec) values "
            "(1, 'succeeded', '{}', '{}', '', 1, 1, 3, 3, 2, 20),"
            "(2, 'succeeded', '{}', '{}', '', 1, 1, 3, 3, 1, 20),"
            "(3, 'failed', '{}', '{}', '', 1, 1, 3, 2, 1, 20);"
            "insert into step_metric (job_id, step, t, step_ms, images_per_sec) "
            "select job.id, value, 1, 100 * value, 60 / value from job, json_each('[1,2,3]')");
    look_up_in(db,
               "select max(iif(id = 1, images_per_sec, 0)), "
               "max(iif(id = 2, images_per_sec, 0)), "
               "max(iif(id = 3, images_per_sec, 0)) from job",
               3, speeds);
    cr_expect_float_eq(speeds[0], 18 / 0.6, 1e-9, "three steps of 6 images");
    cr_expect_eq(speeds[1], 20, "one attempt was right");
    cr_expect_float_eq(speeds[2], 12 / 0.3, 1e-9, "the steps that it made");
    sqlite3_close(db);
}

Test(store, data_seen_by_nodes_of_an_older_database_are_found)
{
    double found[3];
    sqlite3 *db = migrated_database(
        37, "insert into node (name, kind, cores, verdict, checked_at, report) values "
            "('a', 'x', 1, 'fine', 8, '{\"data\": [7, null, [], {\"path\": \"/no\", "
            "\"ok\": false}, {\"path\": \"/d\", \"ok\": true}]}'),"
            "('b', 'x', 1, 'fine', 9, '{\"data\": \"text\"}'),"
            "('c', 'x', 1, 'fine', 9, '[{\"path\": \"/d\", \"ok\": true}]'),"
            "('d', 'x', 1, 'fine', 9, '7')");
    look_up_in(db, "select count(*), max(node = 'a' and path = '/d'), max(seen_at) from node_data",
               3, found);
    cr_expect_eq(found[0], 1);
    cr_expect_eq(found[1], 1);
    cr_expect_eq(found[2], 8);
    sqlite3_close(db);
}

static bool take_one_event(void *context, const struct store_event_row *row)
{
    (void)row;
    ++*(int *)context;
    return false;
}

Test(store, results_of_a_run_reach_the_job_row_and_the_listing)
{
    int64_t id = submit_stored();
    json_t *bodies[2] = {json_pack("{s:i, s:f, s:s, s:i, s:f, s:f, s:f, s:f, s:i}", "seq", 1, "t",
                                   3000.0, "type", "eval", "step", 4, "epoch", 1.0, "top1", 0.5,
                                   "top5", 0.75, "loss", 1.5, "images", 10000),
                         json_pack("{s:i, s:f, s:s, s:s, s:f, s:f, s:f, s:f}", "seq", 2, "t",
                                   3001.0, "type", "run_stop", "status", "success", "ttt_seconds",
                                   12.5, "images_per_sec", 216.0, "top1", 0.5, "top5", 0.75)};
    struct store_event events[2] = {event_of(bodies[0]), event_of(bodies[1])};
    struct store_batch batch = {
        .job_id = id, .attempt = 1, .to_bytes = 10, .events = events, .count = 2};
    json_t *list;

    cr_assert_eq(store_ingest(store, &batch, &e), 0, "%s", e.text);
    cr_assert_eq(look_up("select ttt_seconds from job"), 12.5);
    cr_assert_eq(look_up("select images_per_sec from job"), 216.0);
    cr_assert_eq(look_up("select top5 from job"), 0.75);
    cr_assert_eq(store_eval_list(store, id, &list, &e), 0);
    cr_assert_eq(json_array_size(list), 1);
    cr_assert_eq(json_integer_value(json_object_get(json_array_get(list, 0), "images")), 10000);
    json_decref(list);
    cr_assert_eq(store_event_list(store, &(struct store_event_range){.job_id = id}, &list, &e), 0);
    cr_assert_eq(json_array_size(list), 3);
    const json_t *last = json_array_get(list, 2);
    cr_assert_str_eq(json_string_value(json_object_get(last, "type")), "run_stop");
    cr_assert_eq(json_real_value(json_object_get(last, "ttt_seconds")), 12.5);
    json_decref(list);
    int seen = 0;
    cr_assert_eq(store_event_each(store, &(struct store_event_range){.job_id = id}, take_one_event,
                                  &seen, &e),
                 0);
    cr_assert_eq(seen, 1, "a visit that returns false is the last: %d", seen);
    cr_assert_eq(store_event_list(store,
                                  &(struct store_event_range){.job_id = id, .after = 2, .limit = 1},
                                  &list, &e),
                 0);
    cr_assert_eq(json_array_size(list), 1);
    json_decref(list);
    json_decref(bodies[0]);
    json_decref(bodies[1]);
}

Test(store, speeds_are_kept_by_kind_and_processor)
{
    struct store_speed speed = {
        "a-t1", "cpu", 1, {0.25, 0.5, 0.125, 2, 16},
           NULL
    };
    struct plan_sample found[2];
    size_t count;

    cr_assert_eq(store_speed_add(store, &speed, NULL, &e), 0, "%s", e.text);
    speed.cpu = "another";
    cr_assert_eq(store_speed_add(store, &speed, NULL, &e), 0);
    speed.cpu = "cpu";
    speed.sample.batch = 32;
    cr_assert_eq(store_speed_add(store, &speed, NULL, &e), 0);
    cr_assert_eq(store_speed_find(store, "a-t1", "cpu", NULL, found, 2, &count, &e), 0);
    cr_assert_eq(count, 2);
    cr_assert_eq(found[0].batch, 32, "the newest comes first");
    cr_assert_eq(found[1].batch, 16);
    cr_assert_eq(found[1].image_seconds, 0.25);
    cr_assert_eq(found[1].exchange_seconds, 0.125);
    cr_assert_eq(store_speed_find(store, "b-t1", "cpu", NULL, found, 2, &count, &e), 0);
    cr_assert_eq(count, 0);
}

Test(store, the_newest_speeds_of_a_kind_are_kept)
{
    struct store_speed speed = {
        "a-t1", "cpu", 1, {0.25, 0.5, 0.125, 2, 16},
           NULL
    };

    for (int i = 0; i < 120; i++) {
        speed.cpu = i % 2 ? "cpu" : "another";
        speed.sample.batch = i;
        cr_assert_eq(store_speed_add(store, &speed, NULL, &e), 0, "%s", e.text);
    }
    cr_assert_eq(look_up("select count(*) from speed"), 120, "60 of each are fewer than are kept");
    for (int i = 120; i < 300; i++) {
        speed.cpu = "cpu";
        speed.sample.batch = i;
        cr_assert_eq(store_speed_add(store, &speed, NULL, &e), 0, "%s", e.text);
    }
    cr_assert_eq(look_up("select count(*) from speed where cpu = 'cpu'"), 100);
    cr_assert_eq(look_up("select min(batch) from speed where cpu = 'cpu'"), 200);
    cr_assert_eq(look_up("select count(*) from speed where cpu = 'another'"), 60);
    speed.owner = "token:eve";
    for (int i = 0; i < 120; i++)
        cr_assert_eq(store_speed_add(store, &speed, NULL, &e), 0, "%s", e.text);
    cr_assert_eq(look_up("select min(batch) from speed where cpu = 'cpu' and owner is null"), 200,
                 "nobody displaces what is everybody's");
    cr_assert_eq(look_up("select count(*) from speed where owner is not null"), 100);
}

/* The batch of the newest that this user's plans know; 0: none. */
static int64_t known_batch(const char *by)
{
    struct plan_sample found[4];
    size_t count;

    cr_assert_eq(store_speed_find(store, "a-t1", "cpu", by, found, 4, &count, &e), 0, "%s", e.text);
    return count ? found[0].batch : 0;
}

Test(store, a_speed_is_private_until_it_is_shared)
{
    struct store_speed speed = {
        "a-t1", "cpu", 1, {0.25, 0.5, 0.125, 2, 16},
           NULL
    };

    speed.owner = "token:eve";
    cr_assert_eq(store_speed_add(store, &speed, NULL, &e), 0, "%s", e.text);
    cr_assert_eq(known_batch("token:eve"), 16);
    cr_assert_eq(known_batch("user:eve"), 0);
    cr_assert_eq(known_batch(NULL), 0);
    speed.owner = "";
    speed.sample.batch = 17;
    cr_assert_eq(store_speed_add(store, &speed, NULL, &e), 0);
    cr_assert_eq(known_batch(NULL), 17, "who is not named knows what nobody named sent");
    cr_assert_eq(known_batch("token:eve"), 16);
    speed.owner = NULL;
    speed.sample.batch = 18;
    cr_assert_eq(store_speed_add(store, &speed, NULL, &e), 0);
    cr_assert_eq(known_batch("token:eve"), 18);
    cr_assert_eq(known_batch("user:bob"), 18);
}

/* An earlier version took any number above 0. */
Test(store, a_stored_speed_beyond_the_bounds_is_left_out)
{
    struct store_speed speed = {
        "a-t1", "cpu", 1, {0.25, 0.5, 0.125, 2, 16},
           NULL
    };
    static const struct plan_sample beyond[] = {
        {1e308,    0,     0,  1,    99   },
        {1e-320,   0,     0,  1,    99   },
        {INFINITY, 0,     0,  1,    99   },
        {1,        1e308, 0,  1,    99   },
        {1,        0,     -1, 1,    99   },
        {1,        0,     0,  2000, 99   },
        {1,        0,     0,  1,    70000},
    };

    cr_assert_eq(store_speed_add(store, &speed, NULL, &e), 0, "%s", e.text);
    for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
        speed.sample = beyond[i];
        cr_assert_eq(store_speed_add(store, &speed, NULL, &e), 0, "%s", e.text);
        cr_assert_eq(known_batch(NULL), 16, "%zu", i);
    }
}

static void count_one_row(void *context, const struct store_metric_part *part)
{
    double *sum = context;
    cr_assert_eq(part->t, 2000.0 + (double)part->step);
    sum[0] += (double)part->rows;
    sum[1] += part->of[0].sum;
    cr_assert_eq(part->of[3].count, 0, "step_ms was not in the event");
}

Test(store, every_metric_of_the_table_has_its_column)
{
    char sql[128];
    double sum[2] = {0, 0};
    int64_t id = submit_stored();
    json_t *bodies[3] = {step_body(1, 1, 3), step_body(2, 2, 2), step_body(3, 3, 1)};
    struct store_event events[3] = {event_of(bodies[0]), event_of(bodies[1]), event_of(bodies[2])};
    struct store_batch batch = {
        .job_id = id, .attempt = 1, .to_bytes = 10, .events = events, .count = 3};
    int count = 0;

    for (; event_metric_at((size_t)count); count++) {
        snprintf(sql, sizeof sql,
                 "select name = '%s' from pragma_table_info('step_metric') where cid = %d",
                 event_metric_at((size_t)count)->name, count + 4);
        cr_assert_eq(look_up(sql), 1, "column %s", event_metric_at((size_t)count)->name);
    }
    cr_assert_eq(look_up("select count(*) from pragma_table_info('step_metric')"), count + 4);
    cr_assert_eq(store_ingest(store, &batch, &e), 0);
    cr_assert_eq(store_metric_each(store, id, 2, 100, count_one_row, sum, &e), 0);
    cr_assert_eq(sum[0], 2);
    cr_assert_eq(sum[1], 3);
    for (int i = 0; i < 3; i++)
        json_decref(bodies[i]);
}

/* Stores steps [from, to), every `stride`th, with loss = step x factor. */
static void store_steps(int64_t id, int64_t *place, int from, int to, int stride, double factor)
{
    struct store_event events[1024];
    struct store_batch batch = {.job_id = id, .attempt = 1, .events = events};
    static int seq;

    for (int step = from; step < to;) {
        batch.count = 0;
        for (; step < to && batch.count < 700; step += stride)
            events[batch.count++] = event_of(step_body(++seq, step, step * factor));
        batch.from_bytes = *place;
        batch.to_bytes = *place += 100;
        cr_assert_eq(store_ingest(store, &batch, &e), 0, "%s", e.text);
        for (size_t i = 0; i < batch.count; i++)
            json_decref((json_t *)events[i].body);
    }
}

static void fold(void *context, const struct store_metric_part *part)
{
    struct store_metric_part *all = context;
    cr_assert(all->rows == 0 || part->step > all->step, "parts are in order");
    store_metric_fold(all, part);
}

/* The parts of [from, to) say together what the rows say. */
static void check_metric_parts(int64_t id, int64_t from, int64_t to, int64_t parts)
{
    char sql[200];
    double wanted[4];
    struct store_metric_part all = {0};
    cr_assert_eq(store_metric_parts(store, id, from, to, parts, fold, &all, &e), 0, "%s", e.text);
    static const char *const columns[] = {"count(*)", "sum(loss)", "min(loss)", "max(loss)"};
    double got[] = {(double)all.rows, all.of[0].sum, all.of[0].min, all.of[0].max};
    snprintf(sql, sizeof sql,
             "select %s, %s, %s, %s from step_metric where step >= %d and step < %d", columns[0],
             columns[1], columns[2], columns[3], (int)from, (int)to);
    look_up_numbers(sql, 4, wanted); /* null, of no row, as 0 */
    for (int i = 0; i < 4; i++)
        cr_assert_float_eq(got[i], wanted[i], 1e-6, "%s of [%d, %d): %g", columns[i], (int)from,
                           (int)to, got[i]);
}

Test(store, buckets_equal_the_aggregates_of_their_steps)
{
    int64_t id = submit_stored(), place = 0;

    store_steps(id, &place, 1, 3000, 1, 1);
    store_steps(id, &place, 5000, 9000, 7, 1);  /* with gaps */
    store_steps(id, &place, 2500, 5600, 1, -2); /* done again after a resume */
    cr_assert_gt(look_up("select count(*) from metric_bucket where level = 1"), 600);
    for (int64_t parts = 1; parts < 3000; parts *= 3)
        for (int64_t from = 0; from < 9000; from += 977) {
            check_metric_parts(id, from, 9001, parts);
            check_metric_parts(id, from, from + 70, parts);
            check_metric_parts(id, 0, from, parts);
        }
}

Test(store, the_first_step_since_a_time_is_found)
{
    int64_t id = submit_stored(), place = 0, least;
    struct store_metric_ends ends;
    char sql[120];

    cr_assert_eq(store_metric_ends_since(store, id, 0, &ends, &e), 0, "%s", e.text);
    cr_assert_eq(ends.rows, 0, "there is none");
    store_steps(id, &place, 1, 300, 1, 1);
    store_steps(id, &place, 900, 2000, 7, 1);
    double first = look_up("select min(t) from step_metric"),
           last = look_up("select max(t) from step_metric");
    for (double t = first - 3; t <= last; t += 1.5) {
        snprintf(sql, sizeof sql, "select min(step) from step_metric where t >= %.1f", t);
        least = (int64_t)look_up(sql);
        cr_assert_eq(store_metric_ends_since(store, id, t, &ends, &e), 0, "%s", e.text);
        cr_assert_eq(ends.rows, 1);
        cr_assert_eq(ends.first_step, least, "since %.1f: %lld, not %lld", t,
                     (long long)ends.first_step, (long long)least);
    }
    cr_assert_eq(store_metric_ends_since(store, id, last + 0.5, &ends, &e), 0, "%s", e.text);
    cr_assert_eq(ends.rows, 0, "all are older");
}

Test(store, a_database_without_buckets_gets_them_when_it_is_opened)
{
    sqlite3 *db;
    int64_t id = submit_stored(), place = 0;

    store_steps(id, &place, 0, 2000, 1, 1);
    store_close(store);
    store = NULL;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db,
                              "delete from metric_bucket; insert into metric_unfilled values (1)",
                              NULL, NULL, NULL),
                 SQLITE_OK);
    sqlite3_close(db);
    cr_assert_eq(store_open(path, &store, &e), 0, "%s", e.text);
    cr_assert_eq(look_up("select count(*) from metric_unfilled"), 0);
    cr_assert_eq(look_up("select count(*) from metric_bucket where level = 1"), 250);
    check_metric_parts(id, 0, 2000, 3);
}

/* ---------------------------------------------------------------- removal */

static int64_t removal_rows(int64_t id)
{
    char sql[300];

    snprintf(sql, sizeof sql,
             "select (select count(*) from job_event where job_id = %d) + "
             "(select count(*) from step_metric where job_id = %d) + "
             "(select count(*) from metric_bucket where job_id = %d)",
             (int)id, (int)id, (int)id);
    return (int64_t)look_up(sql);
}

/* What is left of it cannot be read. */
static void check_is_gone(int64_t id)
{
    struct store_event_range all = {.job_id = STORE_ALL_JOBS}, its = {.job_id = id};
    struct store_metric_part part = {0};
    struct store_metric_ends ends;
    struct store_job job;
    json_t *events, *event;
    size_t i;

    cr_assert_eq(store_job_get(store, id, &job, &e), -ERR_NOT_FOUND);
    cr_assert_eq(store_event_list(store, &its, &events, &e), 0, "%s", e.text);
    cr_assert_eq(json_array_size(events), 0);
    json_decref(events);
    cr_assert_eq(store_event_list(store, &all, &events, &e), 0, "%s", e.text);
    json_array_foreach (events, i, event)
        cr_assert_neq(json_integer_value(json_object_get(event, "job")), id);
    json_decref(events);
    cr_assert_eq(store_metric_ends(store, id, 0, 10000, 10, &ends, &e), 0);
    cr_assert_eq(ends.rows, 0);
    cr_assert_eq(store_metric_parts(store, id, 0, 10000, 3, fold, &part, &e), 0);
    cr_assert_eq(store_metric_each(store, id, 0, 10000, fold, &part, &e), 0);
    cr_assert_eq(part.rows, 0);
    cr_assert_eq(store_event_add(store, id, 1, "warning", NULL, 3000, &e), -ERR_NOT_FOUND,
                 "nothing is added to it");
}

Test(store, a_removed_job_is_gone_at_once_and_its_rows_later)
{
    int64_t id = submit_stored(), other = submit_stored(), place[2] = {0}, left = 0;
    bool rows_left = true;
    int turns = 0;

    store_steps(id, &place[0], 1, 1000, 1, 1);
    store_steps(other, &place[1], 1, 300, 1, 1);
    int64_t all = removal_rows(id), of_other = removal_rows(other);
    cr_assert_eq(store_job_delete(store, id, &e), -ERR_CONFLICT, "it has not ended");
    cr_assert_eq(set_job_state(id, JOB_CANCELLED, 3000), 0, "%s", e.text);
    cr_assert_eq(store_job_delete(store, id, &e), 0, "%s", e.text);
    check_is_gone(id);
    cr_assert_eq(removal_rows(id), all + 1, "its state was the last event");
    cr_assert_eq(look_up("select count(*) from ingest_position"), 1, "what is small goes at once");
    while (rows_left) {
        int64_t before = removal_rows(id);
        if (++turns % 5 == 0) {
            store_close(store); /* the next daemon goes on */
            cr_assert_eq(store_open(path, &store, &e), 0, "%s", e.text);
        }
        cr_assert_eq(store_removal_go_on(store, 0, &left, &rows_left, &e), 0, "%s", e.text);
        cr_assert_eq(left, id);
        cr_assert(removal_rows(id) >= before - 100, "more than a little in one turn");
        check_is_gone(id);
    }
    cr_assert_gt(turns, 20);
    cr_assert_eq(removal_rows(id), 0);
    cr_assert_eq(store_removal_set(store, id, false, &e), 0, "%s", e.text);
    cr_assert_eq(store_removal_go_on(store, 1, &left, &rows_left, &e), 0, "%s", e.text);
    cr_assert(left == 0 && !rows_left);
    cr_assert_eq(removal_rows(other), of_other);
    cr_assert_eq(submit_stored(), other + 1);
}

/* What is not deleted by store_removal_go_on must go with the job's row. */
Test(store, all_that_belongs_to_a_job_is_removed_with_it)
{
    cr_assert_eq(look_up("select count(*) from sqlite_schema s join pragma_table_info(s.name) c "
                         "where s.type = 'table' and c.name = 'job_id' and s.name not in "
                         "('job_event', 'step_metric', 'metric_bucket', 'confusion', 'removal', "
                         "'notice', 'node_check', 'sweep_trial') and not exists (select 1 from "
                         "pragma_foreign_key_list(s.name) where \"table\" = 'job' and "
                         "on_delete = 'CASCADE')"),
                 0);
}

/* ---------------------------------------------------------------- the schema */

Test(store, tables_are_strict)
{
    sqlite3 *db;
    cr_assert_eq(look_up("select count(*) from pragma_table_list where schema = 'main' and "
                         "type = 'table' and name not like 'sqlite_%' and strict = 0"),
                 0);
    submit_stored();
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, "update job set step = 'three'", NULL, NULL, NULL),
                 SQLITE_CONSTRAINT);
    cr_assert_eq(sqlite3_exec(db, "update job set spec = '{'", NULL, NULL, NULL),
                 SQLITE_CONSTRAINT);
    sqlite3_close(db);
}

static void check_leftover(size_t wanted, int64_t first)
{
    int64_t ids[4];
    size_t count;

    cr_assert_eq(store_leftover_list(store, ids, 4, &count, &e), 0, "%s", e.text);
    cr_assert_eq(count, wanted);
    cr_assert(count == 0 || ids[0] == first);
}

Test(store, leftovers_of_a_run_are_known_after_reopening)
{
    int64_t id = submit_stored();

    check_leftover(0, 0);
    for (int again = 0; again < 2; again++)
        cr_assert_eq(store_leftover_set(store, id, true, &e), 0, "%s", e.text);
    cr_assert_eq(store_leftover_set(store, id + 1, true, &e), 0, "a job that is not there");
    store_close(store);
    cr_assert_eq(store_open(path, &store, &e), 0, "%s", e.text);
    check_leftover(1, id);
    cr_assert_eq(store_leftover_set(store, id, false, &e), 0, "%s", e.text);
    check_leftover(0, 0);
}

Test(store, reopening_finds_everything)
{
    struct store_job job;
    int64_t id = submit_stored();
    store_close(store);
    cr_assert_eq(store_open(path, &store, &e), 0, "%s", e.text);
    cr_assert_eq(store_job_get(store, id, &job, &e), 0);
    store_job_clear(&job);
    cr_assert_eq(look_up("pragma user_version"), store_migration_count);
}

Test(store, the_log_of_a_removed_database_is_not_applied_to_a_new_one)
{
    char log[PATH_MAX + 8], kept[PATH_MAX + 8];

    submit_stored();
    snprintf(log, sizeof log, "%s-wal", path);
    snprintf(kept, sizeof kept, "%s/kept", folder);
    cr_assert_eq(link(log, kept), 0);
    cr_assert_eq(truncate(path, 0), 0); /* or closing would write the log back */
    cr_assert_eq(unlink(path), 0);
    store_close(store);
    store = NULL;
    unlink(log);
    cr_assert_eq(rename(kept, log), 0);
    struct stat st;
    cr_assert(stat(log, &st) == 0 && st.st_size > 0);
    cr_assert_eq(store_open(path, &store, &e), 0, "%s", e.text);
    cr_assert_eq(look_up("select count(*) from job"), 0);
    cr_assert_eq(
        look_up("select count(*) from pragma_integrity_check where integrity_check = 'ok'"), 1);
}

Test(store, a_newer_or_foreign_database_is_left_alone)
{
    char *before, *after, *sql = NULL;
    size_t bytes, bytes_after;
    sqlite3 *db;
    struct store *other;

    store_close(store);
    store = NULL;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert(asprintf(&sql, "pragma user_version = %d", store_migration_count + 1) > 0);
    sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_close(db);
    free(sql);
    cr_assert_eq(file_read(path, 1 << 24, &before, &bytes, &e), 0);
    cr_assert_eq(store_open(path, &other, &e), -ERR_CONFLICT);
    cr_assert_not_null(strstr(e.text, "newer"), "%s", e.text);
    cr_assert_eq(file_read(path, 1 << 24, &after, &bytes_after, &e), 0);
    cr_assert(bytes == bytes_after && memcmp(before, after, bytes) == 0);
    free(before);
    free(after);

    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_exec(db, "pragma user_version = 0; pragma application_id = 7", NULL, NULL, NULL);
    sqlite3_close(db);
    cr_assert_eq(store_open(path, &other, &e), -ERR_CONFLICT);
    cr_assert_not_null(strstr(e.text, "another program"), "%s", e.text);
}

static void change_and_open(const char *sql, enum error_code code, const char *words)
{
    sqlite3 *db;
    struct store *other = NULL;

    store_close(store);
    store = NULL;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    sqlite3_close(db);
    cr_assert_eq(store_open(path, &other, &e), -(int)code, "%s", e.text);
    cr_assert_not_null(strstr(e.text, words), "%s", e.text);
    cr_assert_not_null(strstr(e.text, "put a backup of"), "%s", e.text);
}

Test(store, a_version_below_0_is_refused)
{
    change_and_open("pragma user_version = -1", ERR_CORRUPT, "schema version -1");
}

Test(store, a_missing_table_is_named)
{
    change_and_open("drop table job", ERR_CORRUPT, "the table job is missing");
}

Test(store, a_missing_index_is_named)
{
    change_and_open("drop index job_by_queue", ERR_CORRUPT, "the index job_by_queue is missing");
}

Test(store, a_state_that_is_not_known_is_refused)
{
    submit_stored();
    change_and_open("update job set state = 'resting'", ERR_CORRUPT,
                    "job 1 is in the unknown state \"resting\"");
}

Test(store, only_a_regular_file_is_opened)
{
    struct store *other;

    store_close(store);
    store = NULL;
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_eq(store_open(path, &other, &e), -ERR_INVALID);
    cr_assert_not_null(strstr(e.text, "not a database"), "%s", e.text);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(mkdir(path, 0700), 0);
    cr_assert_eq(store_open(path, &other, &e), -ERR_INVALID);
    cr_assert_not_null(strstr(e.text, "not a database"), "%s", e.text);
    cr_assert_eq(rmdir(path), 0);
}

Test(store, new_ids_start_above_a_given_number)
{
    cr_assert_eq(store_job_ids_above(store, 41, &e), 0, "%s", e.text);
    cr_assert_eq(submit_stored(), 42);
    cr_assert_eq(store_job_ids_above(store, 7, &e), 0, "%s", e.text);
    cr_assert_eq(submit_stored(), 43);
}

Test(store, a_database_keeps_its_name_and_another_has_another)
{
    char before[33], another[PATH_MAX + 8];
    struct store *other;

    snprintf(before, sizeof before, "%s", store_identity(store)->uuid);
    cr_assert_eq(strlen(before), 32);
    store_close(store);
    cr_assert_eq(store_open(path, &store, &e), 0, "%s", e.text);
    cr_assert_str_eq(store_identity(store)->uuid, before);
    snprintf(another, sizeof another, "%s-2", path);
    cr_assert_eq(store_open(another, &other, &e), 0, "%s", e.text);
    cr_assert_str_neq(store_identity(other)->uuid, before);
    store_close(other);
}

Test(store, a_damaged_file_is_reported_as_damaged)
{
    char junk[4096];
    struct store *other;

    store_close(store);
    store = NULL;
    memset(junk, 'x', sizeof junk);
    cr_assert_eq(file_write_atomic(path, junk, sizeof junk, &e), 0);
    cr_assert_eq(store_open(path, &other, &e), -ERR_CORRUPT);
    cr_assert_not_null(strstr(e.text, "backup"), "%s", e.text);
}

/* ---------------------------------------------------------------- migrations in general */

Test(store, migrations_lead_from_every_version_to_the_last)
{
    static const struct store_migration steps[] = {
        {"0001_a.sql", "create table a (x integer) strict"                                },
        {"0002_b.sql", "alter table a add column y text; insert into a values (1, 'kept')"},
        {"0003_c.sql", "create table c (z integer) strict"                                },
    };
    for (int from = 0; from <= 3; from++) {
        sqlite3 *db;
        cr_assert_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
        cr_assert_eq(store_migrate(db, steps, from, &e), 0, "%s", e.text);
        cr_assert_eq(store_migrate(db, steps, 3, &e), 0, "%s", e.text);
        cr_assert_eq(
            sqlite3_exec(db, "insert into c select x from a where y = 'kept'", NULL, NULL, NULL),
            SQLITE_OK);
        cr_assert_eq(sqlite3_changes(db), 1, "from version %d", from);
        sqlite3_close(db);
    }
}

/* A new database stays empty, one in use at the last version that it reached. */
Test(store, a_failed_migration_is_named_and_rolled_back)
{
    static const struct store_migration steps[] = {
        {"0001_a.sql", "create table a (x integer) strict"        },
        {"0002_b.sql", "create table b (x integer) strict"        },
        {"0003_c.sql", "create table c (x integer) strict; wrong;"},
    };
    for (int from = 0; from <= 1; from++) {
        sqlite3 *db;
        cr_assert_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
        cr_assert_eq(store_migrate(db, steps, from, &e), 0, "%s", e.text);
        cr_expect_lt(store_migrate(db, steps, 3, &e), 0);
        cr_expect_not_null(strstr(e.text, "0003_c.sql"), "%s", e.text);
        double whole = from == 0 ? 0 : 2, there[2];
        look_up_in(db, "select (select * from pragma_user_version), count(*) from sqlite_schema", 2,
                   there);
        cr_expect_eq(there[0], whole);
        cr_expect_eq(there[1], whole, "c must be rolled back");
        sqlite3_close(db);
    }
}

Test(store, the_real_migrations_lead_from_every_version_to_the_last)
{
    for (int from = 0; from <= store_migration_count; from++) {
        sqlite3 *db;
        cr_assert_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
        cr_assert_eq(store_migrate(db, store_migrations, from, &e), 0, "%s", e.text);
        cr_assert_eq(store_migrate(db, store_migrations, store_migration_count, &e), 0, "%s",
                     e.text);
        cr_assert_eq(sqlite3_exec(db,
                                  "select id, name, state, ttt_seconds, images_per_sec, top1, "
                                  "top5 from job",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
        sqlite3_close(db);
    }
}

/* What SQLite says of the way of a query, as by "explain query plan". */
struct query_way {
    const char *words;
    bool said;
};

static int query_way_row(void *context, int columns, char **values, char **names)
{
    struct query_way *way = context;

    (void)names;
    way->said = way->said || (columns == 4 && strstr(values[3], way->words));
    return 0;
}

static bool query_goes(const char *query, const char *words)
{
    struct query_way way = {words, false};
    char explain[400];
    sqlite3 *db;

    snprintf(explain, sizeof explain, "explain query plan %s", query);
    cr_assert_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
    cr_assert_eq(store_migrate(db, store_migrations, store_migration_count, &e), 0, "%s", e.text);
    cr_assert_eq(sqlite3_exec(db, explain, query_way_row, &way, NULL), SQLITE_OK, "%s",
                 sqlite3_errmsg(db));
    sqlite3_close(db);
    return way.said;
}

Test(store, launched_jobs_are_listed_from_the_index_alone)
{
    cr_assert(query_goes("select id, attempt > 0 from job order by id", "USING COVERING INDEX"),
              "100,000 jobs have a gigabyte of documents");
}

Test(store, events_of_a_type_are_found_without_a_look_at_the_steps)
{
    cr_assert(query_goes("select body from job_event indexed by job_event_of_kind where job_id = 1 "
                         "and id > 5 and type <> 'step' and instr(',eval,', ',' || type || ',') "
                         "order by id limit 10",
                         "USING INDEX job_event_of_kind (job_id=? AND id>?)"),
              "a job of weeks has half a million steps");
}

static int64_t total_of(unsigned states)
{
    struct store_job_filter filter = {.states = states, .limit = 1};
    struct store_jobs jobs;
    int64_t total = -1;
    char *next;

    cr_assert_eq(store_job_search(store, &filter, &jobs, &total, &next, &e), 0, "%s", e.text);
    store_jobs_clear(&jobs);
    free(next);
    return total;
}

Test(store, the_total_of_a_page_follows_each_change)
{
    cr_expect_eq(total_of(0), 0);
    int64_t id = submit_stored();
    cr_expect_eq(total_of(0), 1);
    cr_expect_eq(total_of(0), 1, "asked again");
    cr_expect_eq(total_of(1u << JOB_QUEUED), 1, "in other states");
    cr_expect_eq(total_of(1u << JOB_STARTING), 0);
    cr_assert_eq(set_job_state(id, JOB_STARTING, 1002), 0, "%s", e.text);
    cr_expect_eq(total_of(1u << JOB_STARTING), 1, "after a change");
    cr_expect_eq(total_of(1u << JOB_QUEUED), 0);
}
