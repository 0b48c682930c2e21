#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/system/process.h"

Test(process_stat, names_may_hold_anything)
{
    static const char *const names[] = {"train-worker", "a b", "x) Z 1", "((", ")", "() T ("};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct process_stat s;
        char text[256];
        snprintf(text, sizeof text, "77 (%s) S 5 6 7 0 -1 1 2 3 4 5 6 7 8 9 20 0 1 0 4711 8 9\n",
                 names[i]);
        cr_assert(process_stat_parse(text, &s), "%s", names[i]);
        cr_assert_eq(s.state, 'S', "%s", names[i]);
        cr_assert_eq(s.parent, 5);
        cr_assert_eq(s.session, 7);
        cr_assert_eq(s.start, 4711);
    }
}

Test(process_stat, refuses_what_is_cut_off)
{
    struct process_stat s;

    cr_assert_not(process_stat_parse("", &s));
    cr_assert_not(process_stat_parse("77 (name", &s));
    cr_assert_not(process_stat_parse("77 (name)", &s));
    cr_assert_not(process_stat_parse("77 (name) S 5 6", &s));
    cr_assert_not(process_stat_read(0x7fffffff, &s));
}

Test(process_stat, a_living_process_with_a_bracket_is_not_dead)
{
    struct process_stat s;
    pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_NAME, "a) Z (b");
        raise(SIGSTOP);
        pause();
        _exit(0);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, WUNTRACED), child);
    cr_assert(process_stat_read(child, &s));
    cr_assert(process_is_stopped(&s), "its state is %c", s.state);
    cr_assert_not(process_has_ended(&s));
    cr_assert_eq(s.parent, getpid());
    kill(child, SIGKILL);
    siginfo_t info;
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    cr_assert(process_stat_read(child, &s));
    cr_assert(process_has_ended(&s));
    waitpid(child, NULL, 0);
    cr_assert_not(process_stat_read(child, &s));
}

Test(process_stat, reads_a_variable_of_the_environment_it_was_started_with)
{
    int ready[2];

    cr_assert_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        char *const environment[] = {"NAME_LONGER=no", "NAME=a=b", "EMPTY=", NULL};
        char *const arguments[] = {"cat", NULL};
        dup2(ready[0], STDIN_FILENO);
        close(ready[1]);
        execve("/bin/cat", arguments, environment);
        _exit(127);
    }
    close(ready[0]);
    char *value = NULL;
    for (int i = 0; i < 3000 && !value; i++) { /* until it is cat */
        value = process_variable(child, "NAME");
        usleep(10000);
    }
    cr_expect_not_null(value);
    cr_expect_str_eq(value, "a=b");
    char *empty = process_variable(child, "EMPTY");
    cr_expect_str_eq(empty, "");
    cr_expect_null(process_variable(child, "NAM"));
    close(ready[1]);
    waitpid(child, NULL, 0);
    cr_expect_null(process_variable(child, "NAME"), "it has ended");
    free(value);
    free(empty);
}
