/*
 * The sum of a range of gradients over several ranks by messages between any two of them, without
 * any collective operation of MPI: a reduce-scatter, after which each rank has the sum of a part,
 * and an all-gather of these (Thakur, Rabenseifner, Gropp 2005; generalised to mixed radices). Each
 * rank sends 2 (n - 1) / n times the bytes of the range, for any n.
 *
 * n is a product of digits (common/sum_levels.h): a level for each, with messages between the ranks
 * that differ in that digit alone. The nearest ranks come first, where parts are large. Sums are in
 * pairs in the order of the ranks, (0 + 1) + (2 + 3), as a binomial tree adds.
 *
 * In bf16 the reduce-scatter is one level of all ranks, so that each number is rounded once on each
 * way, and added in fp32.
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
    const void **from; /* (size) what is summed */
};

/* A range on its way. */
struct exchange_transfer {
    float *at; /* (n), the caller's: becomes the sum */
    size_t n;
    float *scratch; /* (exchange_scratch) */
    int tag;        /* from here on EXCHANGE_TAGS of them */
    int level;      /* below 0: done */
    bool gathers;
    int begun, open; /* messages to and from so many others; requests */
    MPI_Request requests[2 * SUM_LEVELS_WINDOW];
};
#define EXCHANGE_TAGS (2 * SUM_LEVELS_MAX)

/* comm becomes its own, for nothing else. 0, or -1: no memory, which leaves it to be freed. */
int exchange_create(struct exchange *x, MPI_Comm comm, bool narrow);
void exchange_free(struct exchange *x); /* zeroed is fine. Collective */

/* Floats that a transfer of n needs beside its own. */
size_t exchange_scratch(const struct exchange *x, size_t n);

/* Rounds of messages, one behind the other, until a range is summed. */
int exchange_rounds(const struct exchange *x);

/* at, n, scratch, tag are set. All ranks begin transfers with the same tags and n; in any order. */
void exchange_begin(const struct exchange *x, struct exchange_transfer *t);

/* Moves on what can be, without waiting. False: nothing did. */
bool exchange_advance(const struct exchange *x, struct exchange_transfer *t);

static inline bool exchange_done(const struct exchange_transfer *t)
{
    return t->level < 0;
}
