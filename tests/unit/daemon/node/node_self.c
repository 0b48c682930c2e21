/* This machine's own check: when the next one is due, by what the last one gave. */
#include "daemon/node/node_self.h"
#include "daemon/job/job_manager.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/system/file.h"
#include "tests/unit/daemon/store.h"

#define HOUR 3600.0
#define REPORT                                                                                     \
    "{\"kind\": \"CPU X\", \"cores\": 2, \"outcome\": \"fine\", \"t\": %lld, \"gflops\": 100}\n"

static struct job_manager *manager;

static void set_up(void)
{
    make_store();
    struct job_manager_config config = {
        .jobs_dir = in_folder("jobs"), .slots = 1, .mpirun = "/bin/true", .worker = "/bin/true"};
    cr_assert_eq(job_manager_create(&config, store, &manager, &e), 0, "%s", e.text);
}

static void tear_down(void)
{
    job_manager_destroy(manager);
    remove_store();
}

TestSuite(node_self, .init = set_up, .fini = tear_down, .timeout = 600);

/* After how many seconds the next check is due, behind one (or some at once) by this worker. */
static double due_after_script(const char *script)
{
    char worker[PATH_MAX];

    snprintf(worker, sizeof worker, "%s/worker", folder);
    cr_assert_eq(file_write_unsynced(worker, script, strlen(script), &e), 0, "%s", e.text);
    cr_assert_eq(chmod(worker, 0755), 0);
    struct node_self_settings settings = {
        .idle_seconds = 0.01, .limits = {0.15, 0.3}
    };
    struct node_self *self = node_self_create(store, manager, worker);
    double next;
    cr_assert_not_null(self);
    while ((next = node_self_round(self, &settings)) <= 1)
        usleep(10000);
    node_self_destroy(self);
    return next;
}

static double due_after(const char *printed)
{
    char script[1024];

    snprintf(script, sizeof script, "#!/bin/sh\ncat <<'END'\n%sEND\n", printed);
    return due_after_script(script);
}

Test(node_self, a_stored_check_is_valid_for_a_day)
{
    char report[512];

    snprintf(report, sizeof report, REPORT, (long long)time(NULL));
    cr_assert_gt(due_after(report), 20 * HOUR);
}

Test(node_self, a_check_under_load_is_repeated_until_the_load_ends)
{
    char script[1024];

    snprintf(script, sizeof script,
             "#!/bin/sh\n"
             "echo >>%s/looks\n"
             "[ $(wc -l <%s/looks) -ge 3 ] || load=', \"load\": 1'\n"
             "printf '{\"kind\": \"CPU X\", \"cores\": 2, \"outcome\": \"fine\", \"t\": %lld, "
             "\"gflops\": 100%%s}\\n' \"$load\"\n",
             folder, folder, (long long)time(NULL));
    cr_assert_gt(due_after_script(script), 20 * HOUR, "the third is good for a day");
}

Test(node_self, a_check_without_a_report_is_repeated_after_an_hour)
{
    cr_assert_leq(due_after(""), HOUR);
}

Test(node_self, a_check_with_an_invalid_report_is_repeated_after_an_hour)
{
    cr_assert_leq(due_after("{\"kind\": 7}\n"), HOUR);
}
