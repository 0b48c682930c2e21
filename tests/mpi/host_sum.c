/*
 * The sum of buckets through shared memory (worker/comm/host_sum.h), step by step, with the other
 * ranks at chosen places between two steps of one rank.
 */
#include "tests/mpi/tap.h"
/* libtraincomm does not export these functions. */
#include "worker/comm/comm.c"
#include "worker/comm/host_sum.c"
#undef LINE_FLOATS
#include "worker/comm/sums.c"

#define FLOATS  100
#define BUCKETS (2 * HOST_SUM_SLOTS)

static struct traincomm *comm;
static struct host_sum *sum;
static float numbers[BUCKETS][FLOATS];

static void meet(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void fill(void)
{
    for (unsigned b = 0; b < BUCKETS; b++)
        for (int i = 0; i < FLOATS; i++)
            numbers[b][i] = (float)(b * FLOATS) + (float)(i + comm->rank);
}

static bool is_sum(unsigned b)
{
    float ranks = (float)comm->size;

    for (int i = 0; i < FLOATS; i++)
        if (numbers[b][i] != ranks * ((float)(b * FLOATS) + (float)i) + ranks * (ranks - 1) / 2)
            return false;
    return true;
}

static void expose(unsigned b)
{
    host_sum_begin(sum, b, FLOATS, NULL, 0);
    while (!host_sum_expose(sum, b, numbers[b]))
        sched_yield();
}

static void add_and_publish(unsigned b)
{
    while (!host_sum_add(sum, b, numbers[b], numbers[b]))
        sched_yield();
    while (!host_sum_publish(sum, b, numbers[b]))
        sched_yield();
}

static void collect(unsigned b)
{
    while (!host_sum_collect(sum, b, numbers[b]))
        sched_yield();
}

/* A rank that tries the buckets in turn comes upon two that the others do not let it expose. Before
 * it tries the second, they make room for both. */
static void check_room_between_two_buckets(void)
{
    const unsigned next = HOST_SUM_SLOTS, after = next + 1;
    bool first = comm->rank == 0, early = false, late = false, right = true;

    for (unsigned b = 0; b < next; b++)
        expose(b);
    for (unsigned b = 0; b < next; b++)
        add_and_publish(b);
    for (unsigned b = 0; first && b < next; b++)
        collect(b);
    meet();
    host_sum_begin(sum, next, FLOATS, NULL, 0);
    if (first)
        early = comm->size > 1 && host_sum_expose(sum, next, numbers[next]);
    meet();
    for (unsigned b = 0; !first && b < next; b++)
        collect(b);
    meet();
    host_sum_begin(sum, after, FLOATS, NULL, 0);
    if (first)
        late = host_sum_expose(sum, after, numbers[after]);
    tap_check(!early, "a bucket whose slot another rank still reads is not exposed");
    tap_check(!late, "a bucket is not exposed before the previous one");
    if (tap_failed) /* the ranks would wait for each other for ever */
        return;
    for (unsigned b = next; b < BUCKETS; b++)
        expose(b);
    for (unsigned b = next; b < BUCKETS; b++)
        add_and_publish(b);
    for (unsigned b = next; b < BUCKETS; b++)
        collect(b);
    for (unsigned b = 0; b < BUCKETS; b++)
        right = right && is_sum(b);
    tap_check(right, "each rank has the sums of all buckets");
}

int main(void)
{
    if (traincomm_init(&comm) ||
        host_sum_create(comm, FLOATS, traincomm_host_size(comm), false, &sum))
        return 1;
    fill();
    check_room_between_two_buckets();
    host_sum_destroy(sum);
    int failed = tap_done();
    traincomm_finalize(comm);
    return failed;
}
