/*
 * A rank that waits where ranks share cores. Open MPI then calls sched_yield() between two looks at
 * what has arrived (mpi_yield_when_idle, which it sets itself on a node with more ranks than
 * slots). The kernel comes back to the rank within microseconds, however much others have to do:
 * one that waits for a straggler, or for rank 0's evaluation, took up to half of a core. This
 * sched_yield replaces libc's in train-worker: who has yielded for SPIN_SECONDS sleeps between two
 * looks. Where ranks have cores of their own, Open MPI does not yield, and nothing changes.
 */
#include <sched.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"

static const double SPIN_SECONDS = 500e-6; /* longer than most messages of a step take */
static const double SAME_WAIT = 300e-6;    /* at most, between two looks of one wait */
static const struct timespec REST = {.tv_nsec = 100 * 1000};

int sched_yield(void)
{
    static _Thread_local double began, last;
    double now = clock_monotonic();

    if (now - last > SAME_WAIT)
        began = now;
    bool rests = now - began > SPIN_SECONDS;
    int status = rests ? nanosleep(&REST, NULL) : (int)syscall(SYS_sched_yield);
    last = rests ? clock_monotonic() : now;
    return status;
}
