#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "common/system/process.h"
#include "common/system/spawn.h"

static struct spawn_request shell(char *const *argv)
{
    return (struct spawn_request){
        .argv = argv,
        .stream = {SPAWN_COLLECTED, SPAWN_COLLECTED},
        .limit_bytes = 100000,
        .seconds = 60
    };
}

#define SHELL(script) shell((char *const[]){"sh", "-c", (char *)(script), NULL})

Test(spawn, both_streams_and_the_status_are_collected)
{
    struct spawn_request r = SHELL("cat; echo out; echo err >&2; exit 3");
    struct spawn s;
    struct error e;

    cr_assert_eq(spawn_run(&r, &s, &e), 0);
    cr_expect_str_eq(s.text[SPAWN_OUT].data, "out\n");
    cr_expect_str_eq(s.text[SPAWN_ERR].data, "err\n");
    cr_expect_eq(WEXITSTATUS(s.status), 3);
    spawn_clear(&s);
}

Test(spawn, what_is_over_the_limit_is_dropped_and_it_goes_on)
{
    struct spawn_request r = SHELL("yes x | head -c 1000000; echo end >&2");
    struct spawn s;
    struct error e;

    r.limit_bytes = 1001;
    cr_assert_eq(spawn_run(&r, &s, &e), 0);
    cr_expect_eq(s.text[SPAWN_OUT].bytes, 1001);
    cr_expect_str_eq(s.text[SPAWN_ERR].data, "end\n");
    cr_expect_eq(s.status, 0);
    spawn_clear(&s);
}

Test(spawn, a_child_may_leave_a_core_dump_where_its_parent_may_not)
{
    struct spawn_request r = SHELL("ulimit -Sc");
    struct rlimit limit;
    struct spawn s;
    struct error e;

    getrlimit(RLIMIT_CORE, &limit);
    if (limit.rlim_max < 1 << 20)
        cr_skip_test("core dumps of this size are not allowed here");
    limit.rlim_cur = 1 << 20;
    setrlimit(RLIMIT_CORE, &limit);
    process_forbid_core_dump();
    getrlimit(RLIMIT_CORE, &limit);
    cr_expect_eq(limit.rlim_cur, 0);
    cr_assert_eq(spawn_run(&r, &s, &e), 0);
    cr_expect_str_eq(s.text[SPAWN_OUT].data, "2048\n"); /* of 512 bytes */
    spawn_clear(&s);
}

Test(spawn, its_environment_is_what_was_given)
{
    char *const environment[] = {"A=b", NULL};
    struct spawn_request r = SHELL("echo \"$A\" \"$HOME\"");
    struct spawn s;
    struct error e;

    r.environment = environment;
    cr_assert_eq(spawn_run(&r, &s, &e), 0);
    cr_expect_str_eq(s.text[SPAWN_OUT].data, "b \n");
    spawn_clear(&s);
}

Test(spawn, what_cannot_be_run_is_an_error)
{
    char *const argv[] = {"/none/such", NULL};
    struct spawn_request r = shell(argv);
    struct spawn s;
    struct error e;

    cr_assert_eq(spawn_run(&r, &s, &e), -ERR_NOT_FOUND);
    cr_expect(strstr(e.text, "cannot run /none/such"), "%s", e.text);
    cr_expect_eq(s.pid, 0);
    spawn_clear(&s);
}

Test(spawn, who_takes_too_long_or_is_not_wanted_any_more_is_killed)
{
    struct spawn_request r = SHELL("exec sleep 600");
    atomic_bool quit = false;
    struct spawn s;
    struct error e;

    r.seconds = 0.1;
    cr_assert_eq(spawn_run(&r, &s, &e), -ERR_UNREACHABLE);
    cr_expect_str_eq(e.text, "sh gave no answer within 0 s");
    pid_t pid = s.pid;
    spawn_clear(&s);
    cr_expect_eq(kill(pid, 0), -1, "reaped");

    quit = true;
    r.seconds = 600;
    r.quit = &quit;
    cr_assert_eq(spawn_run(&r, &s, &e), -ERR_UNREACHABLE);
    spawn_clear(&s);
}

Test(spawn, a_grandchild_that_keeps_the_streams_is_not_waited_for)
{
    struct spawn_request r = SHELL("sleep 600 & echo $!");
    double began = clock_monotonic();
    struct spawn s;
    struct error e;

    cr_assert_eq(spawn_run(&r, &s, &e), 0);
    cr_expect_lt(clock_monotonic() - began, 50);
    cr_expect_eq(s.status, 0);
    kill((pid_t)strtol(s.text[SPAWN_OUT].data, NULL, 10), SIGKILL);
    spawn_clear(&s);
}
