/* Internal definitions of libtraincomm */
#pragma once

#include <mpi.h>

#include "worker/comm/traincomm.h"

#define PIECE_BYTES_MAX ((size_t)1 << 30) /* MPI counts are int */

struct traincomm {
    MPI_Comm comm; /* a duplicate */
    MPI_Comm node; /* ranks of this machine */
    bool ends_mpi; /* traincomm_init started MPI */
    bool spins;    /* each rank of the machine has a core to spin on */
    int rank, size, host_rank, host_size;
    char (*hosts)[TRAINCOMM_HOST_BYTES]; /* (size) */
    traincomm_span *span;                /* may be NULL */
    void *span_context;
    traincomm_wait *wait; /* may be NULL */
    void *wait_context;
};

double comm_clock(void);

#define COMM_SPINS 2000 /* polls before yielding, if each rank has a core */

/* Call between two polls of a spinning loop. */
static inline void comm_pause(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#endif
}

/* Waits like MPI_Wait, but sleeps if it takes long, where MPI would spin on a core that the loader
 * or another rank needs. Not for large messages: they only progress in calls. */
void comm_wait_request(MPI_Request *request);

/* Call after `looks` unsuccessful polls: pauses or yields. */
void comm_back_off(const struct traincomm *c, int looks);

/* Waits for all ranks of comm, so that the MPI collective that follows does not wait. */
void comm_barrier(MPI_Comm comm);

static inline void comm_span(const struct traincomm *c, const char *what, int number, double start,
                             size_t bytes)
{
    if (c->span)
        c->span(c->span_context, what, number, start, comm_clock(), bytes);
}

/* Enclose everything that waits for other ranks. */
static inline void comm_wait_begins(const struct traincomm *c)
{
    if (c->wait)
        c->wait(c->wait_context, true);
}

static inline void comm_wait_ends(const struct traincomm *c)
{
    if (c->wait)
        c->wait(c->wait_context, false);
}
