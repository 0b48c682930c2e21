#include "worker/threads.h"

#include <omp.h>
#include <sched.h>
#include <unistd.h>

static int cores_allowed(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set))
        return 1;
    return CPU_COUNT(&set);
}

int threads_of_rank(struct traincomm *comm, int wanted)
{
    int cores = cores_allowed();
    long online = sysconf(_SC_NPROCESSORS_ONLN);

    /* A rank that may use every core shares them with its neighbours. */
    if (cores >= online)
        cores /= traincomm_host_size(comm);
    int threads = wanted > 0 ? wanted : cores;
    if (threads < 1)
        threads = 1;
    omp_set_num_threads(threads);
    return threads;
}
