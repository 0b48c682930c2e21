/* Resuming, with other workers or on fewer hosts. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/job/job_replan.h"
#include "daemon/job/job_requests.h"
#include "tests/unit/daemon/job/fixture.h"

static struct error e;
static struct problems problems;

static void tear_down(void)
{
    problems_clear(&problems);
    jobs_close();
}

TestSuite(job_replan, .init = jobs_open, .fini = tear_down);

static int resume(int64_t id, const char *changes)
{
    json_t *json = changes ? json_loads(changes, 0, NULL) : NULL, *answer;
    int status = job_resume(jobs_manager, id, json, "user:a", &problems, &answer, &e);

    json_decref(json);
    json_decref(answer);
    return status;
}

static int64_t failed_job(int64_t checkpoint)
{
    int64_t id = jobs_submit();

    jobs_begin(id);
    jobs_set_state(id, JOB_RUNNING);
    jobs_set_state(id, JOB_FAILED);
    if (checkpoint)
        jobs_write_checkpoint(id, checkpoint);
    return id;
}

Test(job_replan, a_failed_job_waits_again_to_continue_from_its_checkpoint)
{
    int64_t id = failed_job(2);

    cr_assert_eq(resume(id, NULL), 0, "%s", e.text);
    struct store_job job = jobs_get(id);
    cr_assert_eq(job.state, JOB_QUEUED);
    cr_assert_str_eq(job.reason, "resumed on request, from its checkpoint of step 2");
    cr_assert_eq(job.slots, 2);
    store_job_clear(&job);
    cr_assert_eq(resume(id, NULL), -ERR_CONFLICT);
}

Test(job_replan, what_cannot_be_resumed_says_why)
{
    int64_t queued = jobs_submit(), bare = failed_job(0), done = jobs_submit();

    jobs_begin(done);
    jobs_set_state(done, JOB_RUNNING);
    jobs_set_state(done, JOB_SUCCEEDED);
    const struct {
        int64_t id;
        enum error_code code;
        const char *words;
    } rows[] = {
        {queued, ERR_CONFLICT,  "only one that has failed or was cancelled"},
        {bare,   ERR_CONFLICT,  "has no checkpoint to resume from"         },
        {done,   ERR_CONFLICT,  "has succeeded: there is nothing to resume"},
        {99,     ERR_NOT_FOUND, "99"                                       },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_expect_eq(resume(rows[i].id, NULL), -(int)rows[i].code, "row %zu", i);
        cr_expect(strstr(e.text, rows[i].words), "%s", e.text);
    }
}

Test(job_replan, changes_are_checked_before_anything_is_stored)
{
    static const char *const wrong[] = {
        "{\"steps\":9}",
        "{\"cluster\":{\"workers_per_node\":0}}",
        "{\"cluster\":{\"workers_per_node\":64}}",
        "{\"cluster\":{\"wrong\":1}}",
    };
    int64_t id = failed_job(2);

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cr_expect_eq(resume(id, wrong[i]), -ERR_INVALID, "%s: %s", wrong[i], e.text);
        cr_expect_gt(problems.count, 0, "%s", wrong[i]);
        problems_clear(&problems);
    }
    cr_assert_eq(jobs_state(id), JOB_FAILED);
}

Test(job_replan, other_workers_make_another_plan)
{
    int64_t id = failed_job(2);

    cr_assert_eq(resume(id, "{\"cluster\":{\"workers_per_node\":1},\"priority\":7}"), 0, "%s",
                 problems.count ? problems.items[0].message : e.text);
    struct store_job job = jobs_get(id);
    cr_assert_eq(job.slots, 1);
    cr_assert_eq(job.priority, 7);
    cr_assert_eq(json_integer_value(json_object_get(store_job_plan(&job), "world_size")), 1);
    store_job_clear(&job);
}

Test(job_replan, a_job_too_large_for_the_node_continues_with_fewer_workers)
{
    jobs_parse("\"workers_per_node\":4,\"threads_per_worker\":1");
    int64_t id = failed_job(2);

    cr_assert_eq(resume(id, NULL), 0, "%s", e.text);
    jobs_manager->slots = 2; /* traind.conf has become smaller */
    cr_assert_eq(job_replan_for_slots(jobs_manager, id, &e), 0, "%s", e.text);
    struct store_job job = jobs_get(id);
    cr_assert_eq(job.state, JOB_QUEUED);
    cr_assert_leq(job.slots, 2);
    store_job_clear(&job);
}

/* ---- fewer hosts, and more again */

#define FOUR "\"nodes\":4,\"hosts\":[\"n[1-5]\"],\"workers_per_node\":1,\"threads_per_worker\":1"

/* The hosts of the job's document that answer, as its newest attempt found. */
static void lose_hosts(int64_t id, const char *answers)
{
    char attempt[512];

    jobs_write(id, "attempt-1/hosts.json", answers);
    snprintf(attempt, sizeof attempt, "%s/%lld/attempt-1", jobs_dir, (long long)id);
    job_replan_without_hosts(jobs_manager, id, attempt);
}

static int grow(int64_t id, const char *changes, bool stores)
{
    json_t *json = json_loads(changes, 0, NULL);
    int status = job_replan_grow(jobs_manager, id, json, stores, &e);

    json_decref(json);
    return status;
}

static void has_numbers(int64_t id, int64_t nodes, int64_t steps, const char *wanted)
{
    struct store_job job = jobs_get(id);
    const struct job_spec *spec = store_job_document(&job, &e);

    cr_assert_not_null(spec, "%s", e.text);
    cr_expect_eq(spec->cluster.nodes, nodes);
    cr_expect_eq(spec->steps, steps);
    cr_expect_eq(json_integer_value(json_object_get(store_job_plan(&job), "world_size")), nodes);
    if (wanted)
        cr_expect(job.grows_to && !strcmp(job.grows_to, wanted), "%s", job.grows_to);
    else
        cr_expect_null(job.grows_to);
    store_job_clear(&job);
}

#define HOST(name)    "{\"entry\":\"" name "\",\"name\":\"" name "\"}"
#define MISSING(name) "{\"entry\":\"" name "\",\"name\":\"" name "\",\"problem\":\"is away\"}"
#define ANSWERS(list) "{\"asked\":true,\"hosts\":[" list "]}"

Test(job_replan, a_job_that_lost_hosts_grows_to_what_it_was)
{
    jobs_parse(FOUR "},\"restart\":{\"grow\":true");
    int64_t id = failed_job(2);

    cr_assert_eq(resume(id, NULL), 0, "%s", e.text);
    cr_assert_eq(grow(id, "{}", false), -ERR_CONFLICT, "it has its nodes");
    lose_hosts(
        id, ANSWERS(HOST("n1") "," HOST("n2") "," HOST("n3") "," MISSING("n4") "," MISSING("n5")));
    has_numbers(id, 3, 5, "4");
    struct store_job job = jobs_get(id);
    cr_assert_str_eq(job.reason, "continues with 3 workers on 3 hosts and grows again when more "
                                 "answer: host n4 is away; host n5 is away");
    store_job_clear(&job);
    lose_hosts(id, ANSWERS(MISSING("n1") "," HOST("n2") "," MISSING("n3")));
    has_numbers(id, 1, 15, "4");

    const char *three = "{\"cluster\":{\"nodes\":3,\"hosts\":[\"n1\",\"n2\",\"n5\"]}}";
    cr_assert_eq(grow(id, three, false), 0, "%s", e.text);
    has_numbers(id, 1, 15, "4");
    cr_assert_eq(grow(id, three, true), 0, "%s", e.text);
    has_numbers(id, 3, 5, "4");
    cr_assert_eq(grow(id, "{\"cluster\":{\"nodes\":4,\"hosts\":[\"n[2-5]\"]}}", true), 0, "%s",
                 e.text);
    has_numbers(id, 4, 4, NULL);
    job = jobs_get(id);
    cr_assert_str_eq(job.reason, "grows to 4 workers on 4 hosts");
    store_job_clear(&job);
}

Test(job_replan, a_job_grows_only_if_its_document_says_so)
{
    jobs_parse(FOUR);
    int64_t id = failed_job(2);

    cr_assert_eq(resume(id, NULL), 0, "%s", e.text);
    lose_hosts(id, ANSWERS(HOST("n1") "," HOST("n2") "," MISSING("n3")));
    has_numbers(id, 2, 8, NULL);
}

Test(job_replan, a_batch_that_is_kept_is_shared_out_as_at_first)
{
    jobs_parse(FOUR "},\"restart\":{\"grow\":true,\"on_fewer_nodes\":\"keep_batch\"");
    int64_t id = failed_job(2);

    cr_assert_eq(resume(id, NULL), 0, "%s", e.text);
    lose_hosts(id, ANSWERS(HOST("n1") "," HOST("n2") "," MISSING("n3")));
    struct store_job job = jobs_get(id);
    cr_assert_eq(store_job_document(&job, &e)->accumulate_steps, 2);
    store_job_clear(&job);
    cr_assert_eq(grow(id, "{\"cluster\":{\"nodes\":3,\"hosts\":[\"n[1-3]\"]}}", true), -ERR_INVALID,
                 "4 images are not shared out over 3 workers");
    has_numbers(id, 2, 4, "4");
    cr_assert_eq(grow(id, "{\"cluster\":{\"nodes\":4,\"hosts\":[\"n[1-4]\"]}}", true), 0, "%s",
                 e.text);
    job = jobs_get(id);
    cr_assert_eq(store_job_document(&job, &e)->accumulate_steps, 1);
    store_job_clear(&job);
    has_numbers(id, 4, 4, NULL);
}

Test(job_replan, a_resume_with_another_cluster_replaces_what_it_grows_to)
{
    jobs_parse(FOUR "},\"restart\":{\"grow\":true");
    int64_t id = failed_job(2);

    cr_assert_eq(resume(id, NULL), 0, "%s", e.text);
    lose_hosts(id, ANSWERS(HOST("n1") "," HOST("n2") "," MISSING("n3")));
    jobs_begin(id);
    jobs_set_state(id, JOB_FAILED);
    cr_assert_eq(resume(id, "{\"restart\":{\"max\":5}}"), 0, "%s", e.text);
    has_numbers(id, 2, 8, "4");
    jobs_begin(id);
    jobs_set_state(id, JOB_FAILED);
    cr_assert_eq(resume(id, "{\"cluster\":{\"nodes\":1}}"), 0, "%s", e.text);
    has_numbers(id, 1, 16, NULL);
}
