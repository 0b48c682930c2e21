/*
 * Agreement of all ranks: on an error one of them met, and on a request to stop. Collective: every
 * rank calls at the same point. So a rank that cannot read its data does not leave the others
 * waiting in an all-reduce, and rank 0 learns the reason in words.
 */
#ifndef TRAIND_WORKER_COMM_AGREE_H
#define TRAIND_WORKER_COMM_AGREE_H

#include <mpi.h>
#include <stdbool.h>

#include "common/error.h"

/* Where a failure came from: the fields of a `failed` event. */
struct failure_site {
    int rank;
    char host[64];
};

/* status: 0, or this rank's error with *e filled. Returns 0 if all ranks had 0, else the error of
 * the lowest failing rank, copied into *e and *site on every rank. */
int agree_on_error(MPI_Comm comm, int status, struct error *e, struct failure_site *site);

/* The same, and *stop becomes true on all ranks if it was on any. One collective when all is well.
 */
int agree_on_step(MPI_Comm comm, int status, bool *stop, struct error *e,
                  struct failure_site *site);

#endif
