#include "worker/threads.h"

#include <omp.h>

#include "common/system/placement.h"

int threads_of_rank(struct traincomm *comm, int wanted, bool smt)
{
    struct placement_machine mine, machine;

    placement_read_mine(&mine);
    placement_read("/sys", &machine);
    int64_t slots = placement_slots(&mine, smt);
    /* A rank that may use every core shares them with its neighbours. */
    if (mine.whole.cpus >= machine.whole.cpus)
        slots /= traincomm_host_size(comm);
    int threads = wanted > 0 ? wanted : (int)slots;
    if (threads < 1)
        threads = 1;
    omp_set_num_threads(threads);
    return threads;
}
