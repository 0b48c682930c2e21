#include <sched.h>
#include <time.h>

#include "worker/comm/internal.h"

#define SPIN_SECONDS  200e-6
#define SLEEP_SECONDS 1e-3

/* Sleeps an eighth of what it has waited so far: that much later than its spinning neighbour at
 * most. */
static void wait_sleep(double waited)
{
    double seconds = waited / 8 < SLEEP_SECONDS ? waited / 8 : SLEEP_SECONDS;
    nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * seconds)}, NULL);
}

void comm_wait_request(MPI_Request *request)
{
    double start = comm_clock(), waited;

    for (int ended = 0;;) {
        MPI_Test(request, &ended, MPI_STATUS_IGNORE);
        if (ended)
            return;
        waited = comm_clock() - start;
        if (waited > SPIN_SECONDS)
            wait_sleep(waited);
    }
}

void comm_look_again(const struct traincomm *c, int looks)
{
    if (c->spins && looks < COMM_SPINS)
        comm_pause();
    else
        sched_yield();
}

void comm_meet(MPI_Comm comm)
{
    MPI_Request request;

    MPI_Ibarrier(comm, &request);
    comm_wait_request(&request);
}
