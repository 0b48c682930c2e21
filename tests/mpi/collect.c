/* libtraincomm: who is where, and the small things between ranks. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/mpi/tap.h"
#include "worker/comm/traincomm.h"

#define MANY ((size_t)40 << 20) /* bytes: more than one piece of a broadcast */

static void check_facts(struct traincomm *c)
{
    int rank, size;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    tap_check(traincomm_rank(c) == rank && traincomm_size(c) == size, "rank and size are MPI's");
    tap_check(traincomm_host_rank(c) == rank && traincomm_host_size(c) == size &&
                  strcmp(traincomm_host(c, 0), traincomm_host(c, size - 1)) == 0,
              "all ranks are on this machine");
}

static void check_broadcast(struct traincomm *c)
{
    int root = traincomm_size(c) - 1, right = 1;
    unsigned char *bytes = calloc(1, MANY);

    for (size_t i = 0; traincomm_rank(c) == root && i < MANY; i++)
        bytes[i] = (unsigned char)(i * 31 >> 3);
    traincomm_broadcast(c, bytes, MANY, root);
    for (size_t i = 0; i < MANY; i++)
        right &= bytes[i] == (unsigned char)(i * 31 >> 3);
    tap_check(right, "40 MiB of the last rank reach all");
    free(bytes);
}

static void check_numbers(struct traincomm *c)
{
    int rank = traincomm_rank(c), size = traincomm_size(c), right = 1;
    double sum[2] = {rank, 0.5}, least[1] = {rank + 3}, most[1] = {rank + 3};
    int *all = calloc((size_t)size, sizeof *all);

    traincomm_reduce(c, TRAINCOMM_SUM, sum, 2);
    traincomm_reduce(c, TRAINCOMM_MIN, least, 1);
    traincomm_reduce(c, TRAINCOMM_MAX, most, 1);
    tap_check(sum[0] == size * (size - 1) / 2.0 && sum[1] == size / 2.0, "sums of all ranks");
    tap_check(least[0] == 3 && most[0] == size + 2, "the least and the largest");
    rank = rank * 10 + 1;
    traincomm_all_gather(c, &rank, sizeof rank, all);
    for (int i = 0; i < size; i++)
        right &= all[i] == i * 10 + 1;
    tap_check(right, "each rank's bytes reach all");
    free(all);
}

static double clock_of(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Rank 0 comes a second later: the others have slept until then. */
static void check_waiting(struct traincomm *c)
{
    struct timespec second = {.tv_sec = 1};
    bool stop = false, slept = true;
    struct traincomm_failure failure = {0};

    for (int i = 0; i < 2; i++) {
        traincomm_barrier(c);
        double used = clock_of(CLOCK_THREAD_CPUTIME_ID), began = clock_of(CLOCK_MONOTONIC);
        if (traincomm_rank(c) == 0)
            nanosleep(&second, NULL);
        if (i == 0)
            traincomm_barrier(c);
        else
            traincomm_agree(c, &stop, &failure);
        used = clock_of(CLOCK_THREAD_CPUTIME_ID) - used;
        slept = slept && used < 0.3 * (clock_of(CLOCK_MONOTONIC) - began);
    }
    tap_check(slept, "a rank that waits leaves its core to others");
}

/* Rank r sends its letter r times; rank 0 sends nothing. */
static void check_gather(struct traincomm *c)
{
    int rank = traincomm_rank(c), size = traincomm_size(c), right = 1;
    size_t bytes, at = 0;
    char mine[64];
    void *all;

    memset(mine, 'a' + rank, sizeof mine);
    int status = traincomm_gather(c, mine, (size_t)rank, &all, &bytes);
    for (int i = 0; rank == 0 && i < size; i++)
        for (int j = 0; j < i; j++, at++)
            right &= at < bytes && ((char *)all)[at] == 'a' + i;
    tap_check(status == 0 && right && bytes == at && (rank == 0) == (all != NULL),
              "rank 0 gets the bytes of different length in the order of the ranks");
    free(all);

    status = traincomm_gather(c, mine, 3, &all, &bytes);
    right = bytes == (rank == 0 ? 3 * (size_t)size : 0);
    for (size_t i = 0; right && i < bytes; i++)
        right &= ((char *)all)[i] == 'a' + (int)i / 3;
    tap_check(status == 0 && right && (rank == 0) == (all != NULL), "and bytes of the same length");
    free(all);
}

static void check_host(struct traincomm *c)
{
    struct traincomm_shared *shared = NULL;
    double offset, error;
    int right = 1, size = traincomm_host_size(c);

    traincomm_clock_offset(c, &offset, &error);
    tap_check(error >= 0 && fabs(offset) <= error + 1e-6, "one machine has one clock");

    int status = traincomm_shared_create(c, sizeof(int), &shared);
    tap_check(status == 0 && *(int *)traincomm_shared_part(shared, 0) == 0,
              "shared memory is zeroed");
    *(int *)traincomm_shared_part(shared, traincomm_host_rank(c)) = traincomm_rank(c) + 5;
    traincomm_barrier(c);
    for (int i = 0; i < size; i++)
        right &= *(int *)traincomm_shared_part(shared, i) == i + 5;
    tap_check(right, "and seen by all ranks of the machine");
    for (int i = 0; i < size; i++)
        right &= (uintptr_t)traincomm_shared_part(shared, i) % 64 == 0;
    tap_check(right, "each part begins a cache line");
    traincomm_barrier(c);
    traincomm_shared_destroy(shared);
    traincomm_shared_destroy(NULL);
}

/* A communicator of the program's own: the even and the odd ranks by themselves. */
static void collect_check_part(void)
{
    struct traincomm *c = NULL;
    MPI_Comm part;
    int rank;
    double ones[1] = {1};

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);
    int status = traincomm_init_from(part, &c);
    traincomm_reduce(c, TRAINCOMM_SUM, ones, 1);
    tap_check(status == 0 && ones[0] == traincomm_size(c) && traincomm_rank(c) == rank / 2,
              "some of the ranks by themselves");
    traincomm_finalize(c);
    MPI_Comm_free(&part);
}

int main(void)
{
    struct traincomm *c;

    if (traincomm_init(&c))
        return 1;
    check_facts(c);
    check_broadcast(c);
    check_numbers(c);
    check_gather(c);
    check_host(c);
    check_waiting(c);
    collect_check_part();
    int failed = tap_done(), ended;
    traincomm_finalize(c);
    MPI_Finalized(&ended); /* who starts MPI ends it */
    traincomm_finalize(NULL);
    return failed || !ended;
}
