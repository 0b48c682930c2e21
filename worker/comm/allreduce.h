/*
 * The sum of the gradients over all ranks, in buckets of comm.fusion_bytes that travel while
 * backward goes on (Horovod's tensor fusion, done on one flat buffer: a bucket is a range of it).
 *
 * Backward completes ranges from the end of the buffer to its beginning; a bucket is sent as soon
 * as it is full. MPI makes progress inside MPI_Test calls, which every later range gives it.
 *
 * Ranks that all share one machine have no network to wait for: there an all-reduce is memory
 * copies on the very cores that compute, so nothing can be hidden, and blocking calls on pieces
 * that stay in the cache are four times as fast as MPI_Iallreduce (102 MB, 2 ranks, Open MPI 4.1.4:
 * 28 ms in pieces of 1 to 4 MiB, 62 to 108 ms in one call, 100 to 150 ms non-blocking; `make
 * bench`, tests/bench/allreduce). That way is taken there.
 */
#ifndef TRAIND_WORKER_COMM_ALLREDUCE_H
#define TRAIND_WORKER_COMM_ALLREDUCE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct allreduce;

/* gradients (count) is borrowed. overlap false: everything is sent by allreduce_finish. */
int allreduce_create(MPI_Comm comm, float *gradients, size_t count, int64_t fusion_bytes,
                     bool overlap, struct allreduce **out, struct error *e);
void allreduce_destroy(struct allreduce *a); /* NULL is fine */

/* Takes the way of several machines on one, for tests and benchmarks. On all ranks or none. */
void allreduce_assume_network(struct allreduce *a);

/* A model_grads_ready callback; context is the struct allreduce. */
void allreduce_ready(size_t offset, size_t count, void *context);

/* Sends what is left and waits for all of it. Returns the seconds this took: the part of the
 * communication that was not hidden behind backward. */
double allreduce_finish(struct allreduce *a);

#endif
