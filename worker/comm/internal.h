/* What the files of libtraincomm share. */
#pragma once

#include <mpi.h>

#include "worker/comm/traincomm.h"

#define PIECE_BYTES_MAX ((size_t)1 << 30) /* MPI counts are int */

struct traincomm {
    MPI_Comm comm; /* our own duplicate */
    MPI_Comm node; /* the ranks of this machine */
    bool ends_mpi; /* we started it */
    bool spins;    /* each rank of the machine has a core to wait on */
    int rank, size, host_rank, host_size;
    char (*hosts)[TRAINCOMM_HOST_BYTES]; /* (size) */
    traincomm_span *span;                /* NULL: nobody wants to know */
    void *span_context;
    traincomm_wait *wait; /* NULL: nobody wants to know */
    void *wait_context;
};

double comm_clock(void);

#define COMM_SPINS 2000 /* looks in a row, where each rank has a core, before it gives way */

/* Between two looks of a loop that spins. */
static inline void comm_pause(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#endif
}

/*
 * MPI's own waits spin, on a core that the loader or another rank could use. These sleep if it
 * takes long: wait.c. Between machines, what is sent moves only while somebody asks for it: there,
 * only for waits in which nothing large is under way.
 */
void comm_wait_request(MPI_Request *request);

/* The same for a loop of our own, which has looked so often in vain. */
void comm_look_again(const struct traincomm *c, int looks);

/* Until all ranks of comm are here: before a call that is to be MPI's own, which then does not
 * wait. */
void comm_meet(MPI_Comm comm);

static inline void comm_span(const struct traincomm *c, const char *what, int number, double start,
                             size_t bytes)
{
    if (c->span)
        c->span(c->span_context, what, number, start, comm_clock(), bytes);
}

/* Around all that waits for other ranks. */
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
