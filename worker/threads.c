#include "worker/threads.h"

#include <omp.h>

#include "common/system/placement.h"
#include "worker/data/helper_thread.h"

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

/* Ranks of a machine that may use the same CPUs each take another one. */
static int threads_spare_cpu(struct run *r, struct error *e)
{
    int me = traincomm_host_rank(r->comm), ranks = 0, rank = 0;
    struct traincomm_shared *shared;
    int status = traincomm_shared_create(r->comm, sizeof(cpu_set_t), &shared);

    if (status)
        return error_set(e, ERR_NO_MEMORY, "the CPUs of ranks: %s", traincomm_strerror(status));
    cpu_set_t *mine = traincomm_shared_part(shared, me);
    if (helper_thread_places(mine) == 0)
        sched_getaffinity(0, sizeof *mine, mine);
    traincomm_barrier(r->comm);
    for (int i = 0; i < traincomm_host_size(r->comm); i++) {
        bool same = CPU_EQUAL(mine, (cpu_set_t *)traincomm_shared_part(shared, i));
        ranks += same;
        rank += same && i < me;
    }
    r->comm_cpu = placement_spare_cpu("/sys", mine, ranks * r->threads, ranks, rank);
    traincomm_shared_destroy(shared);
    return 0;
}

int threads_choose_cpu(struct run *r, struct error *e)
{
    const struct job_spec *s = r->spec;
    cpu_set_t before, one;

    r->comm_cpu = -1;
    if (traincomm_host_size(r->comm) == r->world || s->mode == JOB_MODE_EVAL || !s->comm.overlap ||
        s->comm.core == JOB_CORE_NONE)
        return 0;
    if (s->comm.core == JOB_CORE_AUTO)
        return threads_spare_cpu(r, e);
    r->comm_cpu = (int)s->comm.core + traincomm_host_rank(r->comm);
    CPU_ZERO(&one);
    CPU_SET((size_t)r->comm_cpu, &one);
    sched_getaffinity(0, sizeof before, &before);
    if (sched_setaffinity(0, sizeof one, &one))
        return error_set(
            e, ERR_INVALID,
            "comm.core %lld: %s has no CPU %d, or not for this job; \"auto\" takes one "
            "that is free",
            (long long)s->comm.core, traincomm_host(r->comm, r->rank), r->comm_cpu);
    sched_setaffinity(0, sizeof before, &before);
    return 0;
}
