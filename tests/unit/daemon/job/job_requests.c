/* Submission and cancelling of what has not started; the running side is tests/api's. */
#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/job/job_document.h"
#include "common/json.h"
#include "common/plan/plan_build.h"
#include "common/system/file.h"
#include "daemon/job/job.h"
#include "daemon/job/job_manager.h"
#include "daemon/job/job_queue.h"
#include "daemon/job/job_requests.h"
#include "daemon/job/job_resources.h"
#include "daemon/job/run_dir.h"
#include "daemon/store/store_open.h"

static char folder[64], jobs_dir[256];
static struct store *store;
static struct job_manager *manager;
static struct job_spec *spec;
static struct plan *plan;
static struct error e;

static void parse_cluster(const char *cluster)
{
    char text[512];
    struct problems problems = {0};
    struct plan_inputs inputs = {.train_images = 64};

    snprintf(text, sizeof text,
             "{\"name\":\"a\",\"data\":{\"train\":\"synthetic\",\"train_images\":64},"
             "\"batch_per_worker\":1,\"steps\":4,\"cluster\":{%s}}",
             cluster);
    json_t *document = json_document_parse(text, strlen(text), &e);
    cr_assert_not_null(document, "%s", e.text);
    job_spec_destroy(spec);
    plan_destroy(plan);
    spec = job_spec_parse(document, NULL, NULL, &problems);
    cr_assert_not_null(spec, "%s", problems.count ? problems.items[0].message : "");
    plan = plan_make(spec, &inputs, &problems);
    cr_assert_not_null(plan, "%s", problems.count ? problems.items[0].message : "");
    json_decref(document);
}

static void set_up(void)
{
    char database[PATH_MAX];
    strcpy(folder, "/tmp/traind-job.XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(database, sizeof database, "%s/traind.db", folder);
    snprintf(jobs_dir, sizeof jobs_dir, "%s/jobs", folder);
    struct job_manager_config config = {.jobs_dir = jobs_dir,
                                        .slots = 4,
                                        .limits = {.cancel_grace_seconds = -1},
                                        .mpirun = "/bin/true",
                                        .worker = "/bin/true"};
    cr_assert_eq(store_open(database, &store, &e), 0, "%s", e.text);
    cr_assert_eq(job_manager_create(&config, store, &manager, &e), 0, "%s", e.text);
    parse_cluster("\"workers_per_node\":2,\"threads_per_worker\":1");
}

static void tear_down(void)
{
    job_spec_destroy(spec);
    plan_destroy(plan);
    job_manager_destroy(manager);
    store_close(store);
    file_remove_tree(folder, NULL);
}

TestSuite(submit_key, .init = set_up, .fini = tear_down);

static int64_t slots(const char *cluster, int64_t total)
{
    parse_cluster(cluster);
    return job_slots_needed(spec, total);
}

Test(submit_key, counts_slots)
{
    cr_assert_eq(slots("\"workers_per_node\":2,\"threads_per_worker\":3", 64), 6);
    cr_assert_eq(slots("\"workers_per_node\":2,\"threads_per_worker\":0", 64), 64);
    cr_assert_eq(slots("\"workers_per_node\":3,\"threads_per_worker\":0", 64), 63);
    cr_assert_eq(slots("\"workers_per_node\":4,\"threads_per_worker\":0", 2), 4,
                 "a worker takes one at least");
}

static int submit_key(const char *key, const char *digest, int64_t *id, bool *existed)
{
    struct job_submission s = {spec, plan, key, digest, "somebody"};
    struct problems problems = {0};
    int status = job_submit(manager, &s, &problems, id, existed, &e);

    problems_clear(&problems);
    return status;
}

Test(submit_key, makes_the_row)
{
    int64_t id;
    bool existed;
    struct store_job job;

    cr_assert_eq(submit_key(NULL, NULL, &id, &existed), 0, "%s", e.text);
    cr_assert_not(existed);
    cr_assert_eq(store_job_get(store, id, &job, &e), 0);
    cr_assert_eq(job.state, JOB_QUEUED);
    cr_assert_str_eq(job.submitted_by, "somebody");
    cr_assert_eq(job.slots, 2);
    cr_assert_eq(job.train_steps, 4);
    store_job_clear(&job);
}

Test(submit_key, the_run_directory_is_made_of_the_row)
{
    int64_t id;
    char path[PATH_MAX];
    struct store_job job;

    cr_assert_eq(submit_key(NULL, NULL, &id, NULL), 0, "%s", e.text);
    cr_assert_eq(store_job_get(store, id, &job, &e), 0);
    cr_assert_eq(run_dir_prepare(store, &job, &e), 0, "%s", e.text);
    snprintf(path, sizeof path, "%s/%lld/job.json", jobs_dir, (long long)id);
    json_t *written = json_document_load(path, &e), *wanted = job_spec_to_json(spec);
    cr_assert_not_null(written, "%s", e.text);
    cr_assert(json_equal(written, wanted));
    json_decref(written);
    json_decref(wanted);
    snprintf(path, sizeof path, "%s/%lld/plan.json", jobs_dir, (long long)id);
    cr_assert_eq(access(path, F_OK), 0);
    store_job_clear(&job);
}

Test(submit_key, refuses_what_can_never_fit_with_the_numbers)
{
    int64_t id;
    parse_cluster("\"workers_per_node\":3,\"threads_per_worker\":2");
    cr_assert_eq(submit_key(NULL, NULL, &id, NULL), -ERR_INVALID);
    cr_assert_not_null(strstr(e.text, "3 x 2 = 6 slots"), "%s", e.text);
    cr_assert_not_null(strstr(e.text, "this node has 4"), "%s", e.text);
}

Test(submit_key, a_key_gives_one_job)
{
    int64_t first, second;
    bool existed;
    cr_assert_eq(submit_key("key", "d1", &first, &existed), 0, "%s", e.text);
    cr_assert_eq(submit_key("key", "d1", &second, &existed), 0, "%s", e.text);
    cr_assert(existed);
    cr_assert_eq(first, second);
    cr_assert_eq(submit_key("key", "d2", &second, &existed), -ERR_CONFLICT);
}

Test(submit_key, a_run_directory_that_cannot_be_made_fails_the_job_at_its_start)
{
    int64_t id;
    struct store_job job;
    cr_assert_eq(submit_key(NULL, NULL, &id, NULL), 0, "%s", e.text);
    file_remove_tree(jobs_dir, NULL);
    cr_assert_eq(file_write_atomic(jobs_dir, "x", 1, &e), 0, "a file in its place");
    job_queue_start(manager);
    cr_assert_eq(store_job_get(store, id, &job, &e), 0);
    cr_assert_eq(job.state, JOB_FAILED);
    cr_assert_not_null(strstr(job.reason, jobs_dir), "%s", job.reason);
    store_job_clear(&job);
}

Test(submit_key, cancels_a_queued_job_once)
{
    int64_t id;
    struct store_job job;
    cr_assert_eq(submit_key(NULL, NULL, &id, NULL), 0);
    cr_assert_eq(job_cancel(manager, id, "user:a", &e), 0, "%s", e.text);
    cr_assert_eq(store_job_get(store, id, &job, &e), 0);
    cr_assert_eq(job.state, JOB_CANCELLED);
    store_job_clear(&job);
    cr_assert_eq(job_cancel(manager, id, "user:a", &e), -ERR_CONFLICT);
    cr_assert_not_null(strstr(e.text, "been cancelled"), "%s", e.text);
    cr_assert_eq(job_cancel(manager, 999, NULL, &e), -ERR_NOT_FOUND);
}
