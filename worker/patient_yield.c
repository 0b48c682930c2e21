/*
 * A rank that waits where ranks share cores. Open MPI then calls sched_yield() between two looks at
 * what has arrived (mpi_yield_when_idle, which it sets itself on a node with more ranks than
 * slots). The kernel comes back to the rank within microseconds, however much others have to do:
 * one that waits for a straggler, or for rank 0's evaluation, took up to half of a core. This
 * sched_yield replaces libc's in train-worker: who has yielded for SPIN_SECONDS sleeps between two
 * looks, for an eighth of what it has waited so far. Where ranks have cores of their own, Open MPI
 * does not yield, and nothing changes.
 */
#include <math.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"

static const double SPIN_SECONDS = 500e-6;           /* longer than most messages of a step take */
static const double SAME_WAIT = 300e-6;              /* at most, between two looks of one wait */
static const double REST_SECONDS[] = {100e-6, 1e-3}; /* at least, at most */

static void patient_yield_rest(double waited)
{
    double seconds = fmin(fmax(waited / 8, REST_SECONDS[0]), REST_SECONDS[1]);
    nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * seconds)}, NULL);
}

int sched_yield(void)
{
    static _Thread_local double began, last;
    double now = clock_monotonic();

    if (now - last > SAME_WAIT)
        began = now;
    last = now;
    if (now - began <= SPIN_SECONDS)
        return (int)syscall(SYS_sched_yield);
    patient_yield_rest(now - began);
    last = clock_monotonic();
    return 0;
}
