/* Internal definitions of libtraincomm */
#pragma once

#include <mpi.h>

#include "worker/comm/traincomm.h"

/* Like assert_always (common/assert_always.h), on which the library does not depend. */
#define comm_assert(condition)                                                                     \
    (__builtin_expect(!!(condition), 1) ? (void)0 : comm_assert_failed(#condition, __func__))
void comm_assert_failed(const char *condition, const char *function)
    __attribute__((noreturn, cold));

#define PIECE_BYTES_MAX ((size_t)1 << 30) /* limit of one message, because MPI counts are int */

#define COMM_MAGIC 0x434f4d4d
struct traincomm {
    unsigned magic;
    MPI_Comm comm; /* duplicate of the caller's communicator */
    MPI_Comm node; /* the ranks of this machine */
    bool ends_mpi; /* traincomm_init started MPI, so traincomm_finalize ends it */
    bool spins;    /* there is a core for each rank of the machine, so a rank may spin */
    int rank, size, host_rank, host_size;
    char (*hosts)[TRAINCOMM_HOST_BYTES]; /* (size) */
    traincomm_span *span;                /* may be NULL */
    void *span_context;
    traincomm_wait *wait; /* may be NULL */
    void *wait_context;
};

double comm_clock(void);

#define COMM_SPINS 2000 /* polls before yielding, if there is a core for each rank */

/* Call between two polls of a spinning loop. */
static inline void comm_pause(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#endif
}

/* Waits like MPI_Wait, but sleeps in long waits, because MPI would spin on a core that the loader
 * or another rank needs. Do not use it for large messages: they only progress during MPI calls. */
void comm_wait_request(MPI_Request *request);

/* Pauses or yields. Call it after a poll without success; polls: number of such polls so far. */
void comm_back_off(const struct traincomm *c, int polls);

/* Sleeps until all ranks have arrived, so that the MPI collective that follows need not spin. */
void comm_barrier(MPI_Comm comm);

static inline void comm_span(const struct traincomm *c, const char *what, int number, double start,
                             size_t bytes)
{
    if (c->span)
        c->span(c->span_context, what, number, start, comm_clock(), bytes);
}

/* Enclose every wait for other ranks in these two calls. */
static inline void comm_wait_begins(const struct traincomm *c)
{
    comm_assert(c && c->magic == COMM_MAGIC);
    if (c->wait)
        c->wait(c->wait_context, true);
}

static inline void comm_wait_ends(const struct traincomm *c)
{
    if (c->wait)
        c->wait(c->wait_context, false);
}
