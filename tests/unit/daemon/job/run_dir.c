#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/system/file.h"
#include "daemon/job/run_dir.h"
#include "tests/unit/daemon/job/fixture.h"

static struct store_job job;
static struct error e;

static void set_up(void)
{
    jobs_open();
    job = jobs_get(jobs_submit());
}

static void tear_down(void)
{
    store_job_clear(&job);
    jobs_close();
}

TestSuite(run_dir, .init = set_up, .fini = tear_down);

static void write_owner(const char *text)
{
    jobs_write(job.id, "owner.json", text);
}

Test(run_dir, is_missing_until_it_is_claimed)
{
    cr_assert_eq(run_dir_look(jobs_store, &job, &e), RUN_DIR_MISSING);
    cr_assert_eq(e.code, ERR_NOT_FOUND);
    cr_assert_eq(run_dir_check(jobs_store, &job, &e), 0, "a job that was never launched has none");
    job.attempt = 1;
    cr_assert_eq(run_dir_check(jobs_store, &job, &e), -ERR_NOT_FOUND);
    cr_assert_eq(run_dir_claim(jobs_store, &job, &e), 0, "%s", e.text);
    cr_assert_eq(run_dir_look(jobs_store, &job, &e), RUN_DIR_OWN);
    cr_assert_eq(run_dir_claim(jobs_store, &job, &e), 0, "again");
    cr_assert_eq(run_dir_check(jobs_store, &job, &e), 0);
}

Test(run_dir, of_another_owner_is_left_alone)
{
    static const struct {
        const char *owner;
        enum run_dir found;
        const char *words;
    } rows[] = {
        {"{\"store\":\"x\",\"job\":7,\"created_at\":1e9}", RUN_DIR_FOREIGN,
         "belongs to another job 7, submitted 2001-09-09 01:46:40 UTC, of another database"             },
        {"{\"store\":\"x\",\"job\":1,\"created_at\":1e9}", RUN_DIR_FOREIGN,
         "belongs to another job 1"                                                                     },
        {"{\"job\":1}",                                    RUN_DIR_UNKNOWN, "cannot determine the owner"},
        {"no JSON",                                        RUN_DIR_UNKNOWN, "cannot determine the owner"},
        {NULL,                                             RUN_DIR_FOREIGN, "it has no owner.json"      },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        file_remove_tree(job.run_dir, NULL);
        jobs_write(job.id, "events.jsonl", "");
        if (rows[i].owner)
            write_owner(rows[i].owner);
        cr_expect_eq(run_dir_look(jobs_store, &job, &e), rows[i].found, "row %zu", i);
        cr_expect(strstr(e.text, rows[i].words), "%s", e.text);
        cr_expect_lt(run_dir_claim(jobs_store, &job, &e), 0, "row %zu", i);
        cr_expect_lt(run_dir_prepare(jobs_store, &job, &e), 0, "row %zu", i);
        cr_expect_eq(run_dir_mark(jobs_store, &job, &e), 0);
        cr_expect_eq(run_dir_look(jobs_store, &job, &e), RUN_DIR_OWN, "the caller knows better");
    }
}

Test(run_dir, documents_that_were_changed_are_written_again)
{
    char path[300], *text;
    size_t bytes;

    cr_assert_eq(run_dir_prepare(jobs_store, &job, &e), 0, "%s", e.text);
    jobs_write(job.id, "job.json", "{}");
    cr_assert_eq(run_dir_prepare(jobs_store, &job, &e), 0, "%s", e.text);
    snprintf(path, sizeof path, "%s/job.json", job.run_dir);
    cr_assert_eq(file_read(path, 1 << 20, &text, &bytes, &e), 0);
    cr_assert_str_eq(text, job.spec);
    free(text);
}

Test(run_dir, the_last_attempt_is_the_highest_number)
{
    cr_assert_eq(run_dir_last_attempt(job.run_dir), 0);
    jobs_write(job.id, "attempt-2/x", "");
    jobs_write(job.id, "attempt-10/x", "");
    jobs_write(job.id, "attempt-11.old/x", "");
    jobs_write(job.id, "attempt-9999999999999/x", "");
    cr_assert_eq(run_dir_last_attempt(job.run_dir), 10);
}

Test(run_dir, new_jobs_get_ids_above_all_directories)
{
    jobs_write(40, "x", "");
    char path[300];
    snprintf(path, sizeof path, "%s/.removed-50", jobs_dir);
    cr_assert_eq(file_make_dirs_unsynced(path, &e), 0);
    cr_assert_eq(run_dirs_survey(jobs_store, jobs_dir, &e), 0, "%s", e.text);
    cr_assert_eq(jobs_submit(), 51);
}
