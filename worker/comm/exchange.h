/*
 * Sums a range of gradients over ranks with point-to-point messages: a reduce-scatter and an
 * all-gather (Thakur, Rabenseifner, Gropp 2005; generalised to mixed radices). Each of n ranks
 * sends 2 (n - 1) / n times the bytes of the range, for any n.
 *
 * n is a product of digits (common/sum_levels.h). Each digit is a level, in which ranks that differ
 * only in this digit exchange messages. The first levels, whose messages are the largest, are
 * between the nearest ranks. Sums are pairwise in the order of the ranks, (0 + 1) + (2 + 3).
 *
 * In bf16 the reduce-scatter is a single level of all ranks, added in fp32, so that each number is
 * rounded once in each direction.
 */
#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/sum_levels.h"

struct exchange {
    MPI_Comm comm;
    int rank, size;
    bool narrow;
    int levels, digit[SUM_LEVELS_MAX];
    const void **from; /* (size), scratch: the operands of a sum */
};

struct exchange_transfer {
    float *at; /* (n), the caller's buffer; becomes the sum */
    size_t n;
    float *scratch; /* (exchange_scratch floats) */
    int tag;        /* first of EXCHANGE_TAGS consecutive tags */
    int level;      /* current level; negative: done */
    bool gathers;
    int begun, open; /* number of partners messaged so far; number of pending requests */
    MPI_Request requests[2 * SUM_LEVELS_WINDOW];
};
#define EXCHANGE_TAGS (2 * SUM_LEVELS_MAX)

/* Takes ownership of comm. Returns -1 if out of memory; call exchange_free even then. */
int exchange_create(struct exchange *x, MPI_Comm comm, bool narrow);
void exchange_free(struct exchange *x); /* accepts a zeroed struct. Collective */

size_t exchange_scratch(const struct exchange *x, size_t n);

int exchange_rounds(const struct exchange *x);

/* The caller sets at, n, scratch and tag. All ranks use the same tags and n, in any order. */
void exchange_begin(const struct exchange *x, struct exchange_transfer *t);

/* Does what is possible without waiting. Returns false if that was nothing. */
bool exchange_advance(const struct exchange *x, struct exchange_transfer *t);

static inline bool exchange_done(const struct exchange_transfer *t)
{
    return t->level < 0;
}
