#include "tests/unit/daemon/job/fixture.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/job/job_document.h"
#include "common/json.h"
#include "common/plan/plan_build.h"
#include "common/system/file.h"
#include "daemon/job/job_requests.h"
#include "daemon/job/run_dir.h"
#include "daemon/store/attempt.h"
#include "daemon/store/job_change.h"

static char folder[64];
char jobs_dir[256];
struct store *jobs_store;
struct job_manager *jobs_manager;
struct job_spec *jobs_spec;
struct plan *jobs_plan;

void jobs_parse(const char *cluster)
{
    char text[512];
    struct problems problems = {0};
    struct plan_inputs inputs = {.train_images = 64};
    struct error e;

    snprintf(text, sizeof text,
             "{\"name\":\"a\",\"data\":{\"train\":\"synthetic\",\"train_images\":64},"
             "\"batch_per_worker\":1,\"steps\":4,\"cluster\":{%s}}",
             cluster);
    json_t *document = json_document_parse(text, strlen(text), &e);
    cr_assert_not_null(document, "%s", e.text);
    job_spec_destroy(jobs_spec);
    plan_destroy(jobs_plan);
    jobs_spec = job_spec_parse(document, NULL, NULL, &problems);
    cr_assert_not_null(jobs_spec, "%s", problems.count ? problems.items[0].message : "");
    jobs_plan = plan_make(jobs_spec, &inputs, &problems);
    cr_assert_not_null(jobs_plan, "%s", problems.count ? problems.items[0].message : "");
    json_decref(document);
}

void jobs_open(void)
{
    char database[PATH_MAX];
    struct error e;

    strcpy(folder, "/tmp/traind-job.XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(database, sizeof database, "%s/traind.db", folder);
    snprintf(jobs_dir, sizeof jobs_dir, "%s/jobs", folder);
    struct job_manager_config config = {.jobs_dir = jobs_dir,
                                        .slots = 4,
                                        .limits = {.cancel_grace_seconds = -1},
                                        .mpirun = "/bin/true",
                                        .worker = "/bin/true"};
    cr_assert_eq(store_open(database, &jobs_store, &e), 0, "%s", e.text);
    cr_assert_eq(job_manager_create(&config, jobs_store, &jobs_manager, &e), 0, "%s", e.text);
    jobs_parse("\"workers_per_node\":2,\"threads_per_worker\":1");
}

void jobs_close(void)
{
    job_spec_destroy(jobs_spec);
    plan_destroy(jobs_plan);
    job_manager_destroy(jobs_manager);
    store_close(jobs_store);
    file_remove_tree(folder, NULL);
}

int64_t jobs_submit(void)
{
    struct job_submission submission = {
        .spec = jobs_spec, .plan = jobs_plan, .submitted_by = "somebody"};
    struct problems problems = {0};
    struct error e;
    int64_t id;

    cr_assert_eq(job_submit(jobs_manager, &submission, &problems, &id, NULL, &e), 0, "%s", e.text);
    return id;
}

struct store_job jobs_get(int64_t id)
{
    struct store_job job;
    struct error e;

    cr_assert_eq(store_job_get(jobs_store, id, &job, &e), 0, "%s", e.text);
    return job;
}

enum job_state jobs_state(int64_t id)
{
    struct store_job job = jobs_get(id);
    enum job_state state = job.state;

    store_job_clear(&job);
    return state;
}

void jobs_begin(int64_t id)
{
    struct store_state_change change = {.to = JOB_STARTING, .now = clock_now()};
    struct store_job job = jobs_get(id);
    struct error e;
    int64_t attempt;

    cr_assert_eq(run_dir_prepare(jobs_store, &job, &e), 0, "%s", e.text);
    cr_assert_eq(store_job_begin_attempt(jobs_store, id, &change, 0, &attempt, &e), 0, "%s",
                 e.text);
    store_job_clear(&job);
}

void jobs_set_state(int64_t id, enum job_state state)
{
    struct store_state_change change = {.to = state, .now = clock_now()};
    struct error e;

    cr_assert_eq(store_job_set_state(jobs_store, id, &change, &e), 0, "%s", e.text);
}

void jobs_write(int64_t id, const char *name, const char *text)
{
    char path[PATH_MAX];
    struct error e;

    snprintf(path, sizeof path, "%s/%lld/%s", jobs_dir, (long long)id, name);
    *strrchr(path, '/') = '\0';
    cr_assert_eq(file_make_dirs_unsynced(path, &e), 0, "%s", e.text);
    snprintf(path, sizeof path, "%s/%lld/%s", jobs_dir, (long long)id, name);
    cr_assert_eq(file_write_atomic(path, text, strlen(text), &e), 0, "%s", e.text);
}

void jobs_write_checkpoint(int64_t id, int64_t step)
{
    char name[64], text[128];

    snprintf(name, sizeof name, "checkpoints/step-%08lld/state.json", (long long)step);
    snprintf(text, sizeof text, "{\"step\":%lld,\"epoch_number\":0,\"epoch_images\":%lld}",
             (long long)step, (long long)step);
    jobs_write(id, name, text);
}
