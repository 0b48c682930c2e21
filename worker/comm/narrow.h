/*
 * Gradients summed in bf16 (TRAINCOMM_BF16), in the memory where they lie: n floats become two
 * arrays of n bf16, what is sent and what is received, so nothing is allocated. Each rank sends
 * every other one its part of them (all-to-all), adds up its own part in fp32, in the order of the
 * ranks, and sends the sums to all (all-gather). So a number is rounded twice, whatever the number
 * of ranks, and the bits are the same on all ranks and for all buckets.
 */
#ifndef TRAINCOMM_NARROW_H
#define TRAINCOMM_NARROW_H

#include <stddef.h>
#include <stdint.h>

typedef uint16_t narrow_bf16 __attribute__((may_alias));

/* The floats of a range that are summed so: whole parts for all ranks. The others are summed in
 * fp32 and rounded before and after. */
static inline size_t narrow_whole(size_t n, int ranks)
{
    return n - n % (size_t)ranks;
}

static inline narrow_bf16 *narrow_sent(float *at)
{
    return (narrow_bf16 *)at;
}

static inline narrow_bf16 *narrow_received(float *at, size_t n)
{
    return (narrow_bf16 *)at + n;
}

/* To nearest even; a NaN stays one. */
void narrow(float *at, size_t n);
/* The same to other memory, or to the beginning of its own. */
void narrow_copy(const float *from, narrow_bf16 *to, size_t n);
void narrow_add(const narrow_bf16 *from, float *sum, size_t n);
/* The sums of what was received, into the rank's own part of what is sent. */
void narrow_sum(float *at, size_t n, int rank, int ranks);
void narrow_widen(float *at, size_t n);
void narrow_widen_copy(const narrow_bf16 *from, float *to, size_t n);
/* Rounds, and leaves them where they are. */
void narrow_round(float *at, size_t n);

#endif
