/* Jobs are found by what people write on them and by their documents, and stand in groups; the best
 * evaluation is that of the table. */
#include <criterion/criterion.h>
#include <limits.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/job_spec.h"
#include "daemon/store/event.h"
#include "daemon/store/ingest.h"
#include "daemon/store/job_change.h"
#include "daemon/store/job_insert.h"
#include "daemon/store/job_label.h"
#include "daemon/store/job_row.h"
#include "daemon/store/job_search.h"
#include "daemon/store/migrate.h"
#include "daemon/store/store.h"
#include "tests/unit/daemon/store.h"

TestSuite(job_search, .init = make_store, .fini = remove_store);

static int64_t find_submit(const char *name, const char *by, const char *optimizer, const char *tag)
{
    char spec[256];
    struct store_job_new job = {
        .name = name,
        .submitted_by = by,
        .spec = spec,
        .plan = "{}",
        .tags = &tag,
        .tag_count = tag ? 1 : 0,
        .size = {.slots = 1, .train_steps = 4, .global_batch = 8},
        .reason = "r",
        .now = 1
    };
    int64_t id = 0;
    bool existed;

    snprintf(spec, sizeof spec,
             "{\n  \"name\": \"%s\",\n  \"optimizer\": {\"name\": \"%s\", \"momentum\": 0.9}\n}",
             name, optimizer);
    cr_assert_eq(store_job_insert(store, &job, &id, &existed, &e), 0, "%s", e.text);
    return id;
}

/* jansson's words for the change. */
static int find_label(int64_t id, const char *change)
{
    json_t *parsed = json_loads(change, 0, NULL);
    int status = store_job_label(store, id, parsed, "user:eve", 2, &e);

    json_decref(parsed);
    return status;
}

/* "3 1" : ids as they come; from another page if there is one. */
static const char *find_ids(struct store_job_filter filter)
{
    static char text[256];
    struct store_jobs jobs;
    int64_t total = 0;
    char *next = NULL, *after = NULL;
    size_t used = 0, seen = 0;

    text[0] = '\0';
    filter.limit = filter.limit ? filter.limit : 2;
    do {
        free(after);
        after = next;
        filter.after = after ? strtoll(after, NULL, 10) : 0;
        filter.after_key = after && strchr(after, ',') ? strchr(after, ',') + 1 : NULL;
        cr_assert_eq(store_job_search(store, &filter, &jobs, &total, &next, &e), 0, "%s", e.text);
        for (size_t i = 0; i < jobs.count; i++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", used ? " " : "",
                                     (long long)jobs.items[i].id);
        seen += jobs.count;
        store_jobs_clear(&jobs);
    } while (next);
    free(after);
    cr_expect_eq((int64_t)seen, total, "the total is that of all pages");
    return text;
}

static void find_evaluate(int64_t id, int64_t step, double top1)
{
    int64_t at = 0;
    json_t *body = json_pack("{s:s, s:I, s:f, s:f, s:f}", "type", "eval", "step", step, "epoch",
                             (double)step / 10, "top1", top1, "top5", 1.0);
    struct store_event event = {
        .seq = step, .t = 100 + (double)step, .type = EVENT_EVAL, .body = body};
    cr_assert_eq(store_ingest_position(store, id, 1, &at, &e), 0);
    struct store_batch batch = {.job_id = id,
                                .attempt = 1,
                                .from_bytes = at,
                                .to_bytes = at + 1,
                                .events = &event,
                                .count = 1};

    static int64_t seq;
    event.seq = ++seq;
    cr_assert_eq(store_ingest(store, &batch, &e), 0, "%s", e.text);
    json_decref(body);
}

Test(job_search, jobs_are_found_by_tags_user_words_and_keys_in_pages)
{
    for (int i = 0; i < 3; i++)
        find_submit("plain", "user:eve", "sgd", "all");
    find_submit("other", "token:eve", "lars", "all");
    find_submit("third", "user:bob", "sgd", NULL);
    cr_assert_eq(find_label(2, "{\"add_tags\": [\"b\", \"a:1/x\"]}"), 0, "%s", e.text);
    cr_assert_eq(find_label(4, "{\"note\": \"a Word of\\nadvice\"}"), 0);

    cr_expect_str_eq(find_ids((struct store_job_filter){.tags = "all"}), "4 3 2 1");
    cr_expect_str_eq(find_ids((struct store_job_filter){.tags = "b,all"}), "2");
    cr_expect_str_eq(find_ids((struct store_job_filter){.tags = "b,none"}), "");
    cr_expect_str_eq(find_ids((struct store_job_filter){.tags = "al"}), "", "a part of a tag");
    cr_expect_str_eq(find_ids((struct store_job_filter){.user = "eve"}), "4 3 2 1");
    cr_expect_str_eq(find_ids((struct store_job_filter){.user = "user:eve"}), "3 2 1");
    cr_expect_str_eq(find_ids((struct store_job_filter){.text = "word"}), "4", "in a note");
    cr_expect_str_eq(find_ids((struct store_job_filter){.text = "A:1"}), "2", "in a tag");
    cr_expect_str_eq(
        find_ids((struct store_job_filter){.key = "$.optimizer.name", .value = "\"lars\""}), "4");
    cr_expect_str_eq(
        find_ids((struct store_job_filter){.key = "$.optimizer.momentum", .value = "0.9"}),
        "5 4 3 2 1");
    cr_expect_str_eq(find_ids((struct store_job_filter){.key = "$.tags", .value = "null"}), "5 3 1",
                     "what an old document lacks is null");
    cr_expect_str_eq(
        find_ids((struct store_job_filter){.tags = "all", .user = "eve", .name = "oth"}), "4");
    cr_expect_str_eq(find_ids((struct store_job_filter){.tags = "all", .states = 1u << JOB_FAILED}),
                     "");
}

Test(job_search, jobs_are_found_by_the_time_of_their_end)
{
    struct store_groups groups;
    struct store_job_filter filter = {.finished_after = 100};

    for (int i = 0; i < 4; i++)
        find_submit("a", i ? "user:eve" : NULL, "sgd", "t");
    for (int64_t id = 1; id <= 3; id++)
        cr_assert_eq(store_job_cancel_waiting(store, id, NULL, NULL, 99.5 + (double)id / 2, &e), 0);
    cr_expect_str_eq(find_ids(filter), "3 2",
                     "not the one that ended then, nor the one that waits");
    filter.sort = STORE_SORT_FINISHED;
    cr_expect_str_eq(find_ids(filter), "3 2");
    filter = (struct store_job_filter){.finished_after = 100, .states = 1u << JOB_FAILED};
    cr_expect_str_eq(find_ids(filter), "");
    filter = (struct store_job_filter){.finished_after = 100, .user = "eve"};
    cr_expect_str_eq(find_ids(filter), "3 2");
    filter = (struct store_job_filter){.finished_after = 100, .limit = 5};
    cr_assert_eq(store_job_groups(store, &filter, NULL, &groups, &e), 0, "%s", e.text);
    cr_expect_eq(groups.items[0].jobs, 2);
    store_groups_clear(&groups);
}

Test(job_search, the_best_evaluation_is_that_of_the_table)
{
    struct store_job job;

    for (int i = 0; i < 3; i++)
        find_submit("a", NULL, "sgd", "t");
    find_evaluate(1, 10, 0.5);
    find_evaluate(1, 20, 0.75);
    find_evaluate(1, 30, 0.75);
    find_evaluate(1, 40, 0.25);
    find_evaluate(3, 10, 0.6);
    cr_assert_eq(store_job_get(store, 1, &job, &e), 0);
    cr_expect_eq(job.best_top1, 0.75);
    cr_expect_eq(job.best_top1_step, 20, "the first of those that are equal");
    cr_expect_eq(job.best_top1_epoch, 2);
    cr_expect_eq(job.best_top1_at, 120);
    cr_expect_eq(job.top1, 0.25, "the last stays the last");
    store_job_clear(&job);
    cr_expect_str_eq(find_ids((struct store_job_filter){.sort = STORE_SORT_BEST_TOP1, .limit = 1}),
                     "1 3 2", "the one without any is last");
    find_evaluate(1, 20, 0.1); /* again, after a resume from an earlier checkpoint */
    cr_assert_eq(store_job_get(store, 1, &job, &e), 0);
    cr_expect_eq(job.best_top1, 0.75);
    cr_expect_eq(job.best_top1_step, 30);
    store_job_clear(&job);
}

Test(job_search, labels_change_independently_and_make_one_event)
{
    struct store_job job;
    int64_t id = find_submit("before", "user:eve", "sgd", "old");

    cr_assert_eq(find_label(id, "{\"name\": null, \"tags\": [\"z\", \"b\"], \"add_tags\": [\"c\"], "
                                "\"remove_tags\": [\"z\", \"absent\"]}"),
                 0, "%s", e.text);
    cr_assert_eq(find_label(id, "{\"note\": \"n\"}"), 0);
    cr_assert_eq(find_label(id, "{\"add_tags\": [\"b\"]}"), 0, "nothing differs");
    cr_assert_eq(store_job_get(store, id, &job, &e), 0);
    cr_expect_null(job.name);
    cr_expect_str_eq(job.tags, "[\"b\",\"c\"]");
    cr_expect_str_eq(job.note, "n");
    cr_expect_eq(job.state, JOB_QUEUED);
    json_t *spec = json_loads(job.spec, 0, NULL);
    cr_expect_eq(json_array_size(json_object_get(spec, "tags")), 2, "the document follows");
    cr_expect(json_is_null(json_object_get(spec, "name")));
    cr_expect_eq(json_number_value(json_object_get(json_object_get(spec, "optimizer"), "momentum")),
                 0.9);
    json_decref(spec);
    store_job_clear(&job);

    json_t *events;
    struct store_event_range range = {.job_id = id, .types = "labels"};
    cr_assert_eq(store_event_list(store, &range, &events, &e), 0);
    cr_expect_eq(json_array_size(events), 2);
    cr_expect_str_eq(json_string_value(json_object_get(json_array_get(events, 1), "note")), "n");
    cr_expect_str_eq(json_string_value(json_object_get(json_array_get(events, 1), "by")),
                     "user:eve");
    cr_expect_null(json_object_get(json_array_get(events, 1), "tags"), "they did not change");
    json_decref(events);
    cr_expect_eq(find_label(77, "{}"), -ERR_NOT_FOUND);
}

Test(job_search, too_many_tags_change_nothing)
{
    char change[512] = "{\"name\": \"other\", \"add_tags\": [\"t0\"";
    struct store_job job;
    int64_t id = find_submit("a", NULL, "sgd", "old");

    for (int i = 1; i < JOB_TAGS_MAX; i++)
        snprintf(change + strlen(change), sizeof change - strlen(change), ", \"t%d\"", i);
    strcat(change, "]}");
    cr_expect_eq(find_label(id, change), -ERR_INVALID);
    cr_expect_not_null(strstr(e.text, "18 tags, but at most 17 are allowed"), "%s", e.text);
    cr_assert_eq(store_job_get(store, id, &job, &e), 0);
    cr_expect_str_eq(job.tags, "[\"old\"]");
    cr_expect_str_eq(job.name, "a");
    store_job_clear(&job);
}

Test(job_search, groups_by_tag_and_by_key)
{
    struct store_groups groups;

    find_submit("a", NULL, "sgd", "x");
    find_submit("b", NULL, "lars", "x");
    find_submit("c", NULL, "sgd", NULL);
    cr_assert_eq(find_label(1, "{\"add_tags\": [\"y\"]}"), 0);
    find_evaluate(1, 10, 0.5);
    find_evaluate(2, 20, 0.75);
    struct store_job_filter filter = {.limit = 10};
    cr_assert_eq(store_job_groups(store, &filter, NULL, &groups, &e), 0, "%s", e.text);
    cr_assert_eq(groups.count, 3);
    cr_expect_str_eq(groups.items[0].value, "\"x\"");
    cr_expect_eq(groups.items[0].jobs, 2);
    cr_expect_eq(groups.items[0].states[JOB_QUEUED], 2);
    cr_expect_eq(groups.items[0].best_id, 2);
    cr_expect_str_eq(groups.items[0].best_name, "b");
    cr_expect_eq(groups.items[0].best_top1, 0.75);
    cr_expect_eq(groups.items[0].best_step, 20);
    cr_expect_str_eq(groups.items[1].value, "\"y\"");
    cr_expect_str_eq(groups.items[2].value, "null");
    cr_expect_eq(groups.items[2].best_id, 0);
    cr_expect(isnan(groups.items[2].mean_ttt_seconds));
    store_groups_clear(&groups);

    filter.limit = 1;
    filter.sort = STORE_SORT_BEST_TOP1;
    cr_assert_eq(store_job_groups(store, &filter, "$.optimizer.name", &groups, &e), 0, "%s",
                 e.text);
    cr_assert_eq(groups.count, 1);
    cr_expect_eq(groups.total, 2, "more than were asked for");
    cr_expect_str_eq(groups.items[0].value, "\"lars\"");
    store_groups_clear(&groups);
}

static int find_plan(void *used, int columns, char **values, char **names)
{
    (void)names;
    if (columns == 4)
        snprintf(used, 256, "%s", values[3]);
    return 0;
}

Test(job_search, the_best_evaluation_of_an_older_database_is_found)
{
    static const char old[] =
        "insert into job (id, name, state, spec, plan, created_at, slots, run_dir, train_steps) "
        "values (1, 'a', 'succeeded', '{}', '{}', 1, 1, 'jobs/1', 4), "
        "(2, 'b', 'succeeded', '{}', '{}', 1, 1, 'jobs/2', 4);"
        "insert into eval (job_id, step, epoch, top1, t) values (1, 1, 0.5, 0.25, 11), "
        "(1, 2, 1, 0.5, 12), (1, 3, 1.5, 0.5, 13), (1, 4, 2, null, 14);";
    int before = 0;
    sqlite3 *db;
    sqlite3_stmt *row;

    while (!strstr(store_migrations[before].name, "labels"))
        before++;
    cr_assert_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
    cr_assert_eq(store_migrate(db, store_migrations, before, &e), 0, "%s", e.text);
    cr_assert_eq(sqlite3_exec(db, old, NULL, NULL, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    cr_assert_eq(store_migrate(db, store_migrations, store_migration_count, &e), 0, "%s", e.text);
    sqlite3_prepare_v2(db, "select best_top1, best_top1_step, best_top1_at from job", -1, &row,
                       NULL);
    cr_assert_eq(sqlite3_step(row), SQLITE_ROW);
    cr_expect_eq(sqlite3_column_double(row, 0), 0.5);
    cr_expect_eq(sqlite3_column_int(row, 1), 2);
    cr_expect_eq(sqlite3_column_double(row, 2), 12);
    cr_assert_eq(sqlite3_step(row), SQLITE_ROW);
    cr_expect_eq(sqlite3_column_type(row, 0), SQLITE_NULL);
    sqlite3_finalize(row);
    char used[256] = "";
    sqlite3_exec(db, "explain query plan select job_id from job_tag where tag = 'x'", find_plan,
                 used, NULL);
    cr_expect_not_null(strstr(used, "COVERING INDEX job_by_tag"), "%s", used);
    sqlite3_close(db);
}
