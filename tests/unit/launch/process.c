/* Which processes are an attempt's. */
#include "launch/launch.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/run/attempt.h"

static char attempt[64], mark[128]; /* of this test alone: others run beside it */

/* A process of the attempt, which has its mark alone. */
static pid_t start_marked(void)
{
    static char *const argv[] = {"sleep", "1000", NULL};
    char *const environment[] = {mark, NULL};
    int executed[2];
    char byte;

    snprintf(attempt, sizeof attempt, "/nowhere/%d/attempt-1", (int)getpid());
    snprintf(mark, sizeof mark, ATTEMPT_MARK "=%s", attempt);
    cr_assert_eq(pipe2(executed, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        execve("/bin/sleep", argv, environment);
        _exit(1);
    }
    close(executed[1]);
    cr_assert_eq(read(executed[0], &byte, 1), 0); /* it is sleep now */
    close(executed[0]);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static struct launch_process attempt_since(int64_t start)
{
    return (struct launch_process){.start = start, .pidfd = -1, .gate = -1};
}

static int survivors(struct launch_process *p)
{
    return launcher_local.survivors(p, attempt);
}

Test(process, marked_processes_younger_than_the_launcher_are_found)
{
    pid_t pid = start_marked();
    int64_t start = process_start(pid);
    struct launch_process unknown = attempt_since(0), its = attempt_since(start),
                          later = attempt_since(start + 1);

    cr_expect_eq(survivors(&unknown), 1);
    cr_expect_eq(survivors(&its), 1);
    cr_expect_eq(survivors(&later), 0);
    end(pid);
    cr_expect_eq(survivors(&its), 0);
    launch_process_close(&unknown);
    launch_process_close(&its);
    launch_process_close(&later);
}
