/*
 * The schedule of libtraincomm's sum over n ranks (worker/comm/exchange.h), which predictions are
 * made from too. n is a product of digits of at most 16, or primes: a level for each, of messages
 * among so many ranks. So 256 ranks take 2 levels each way, of 15 messages.
 */
#pragma once

#include <stdbool.h>

enum {
    SUM_LEVELS_MAX = 12,    /* 2^31 ranks */
    SUM_LEVELS_BITS = 4,    /* of a digit of the power of two in n, at most */
    SUM_LEVELS_WINDOW = 32, /* messages each way at a time: more would meet at one rank's port */
    SUM_LEVELS_BUCKETS = 4  /* under way at a time */
};

/* The power of two first, in digits as equal as can be; an odd number below 16 as one, so that its
 * sums are in pairs too; the primes of a larger one, small ones together. Returns how many. */
static inline int sum_levels_find(int n, int digit[SUM_LEVELS_MAX])
{
    int bits = 0, odd = n, count = 0, most = 1 << SUM_LEVELS_BITS;

    for (; odd > 0 && odd % 2 == 0; odd /= 2)
        bits++;
    for (int all = (bits + SUM_LEVELS_BITS - 1) / SUM_LEVELS_BITS; count < all; count++)
        digit[count] = 1 << (bits * (all - count) / all - bits * (all - count - 1) / all);
    for (int f = odd < most ? odd : 3; odd > 1;)
        if (odd % f) {
            f = f * f > odd ? odd : f + 2;
        } else {
            odd /= f;
            if (count > 0 && digit[count - 1] % 2 && digit[count - 1] * f < most)
                digit[count - 1] *= f;
            else
                digit[count++] = f;
        }
    return count;
}

/* Rounds of messages, one behind the other. bf16: the first half is one level of all ranks. */
static inline int sum_levels_rounds(int n, bool bf16)
{
    int digit[SUM_LEVELS_MAX], count = sum_levels_find(n, digit), rounds = 0;

    for (int i = 0; i < count; i++)
        rounds += (digit[i] - 1 + SUM_LEVELS_WINDOW - 1) / SUM_LEVELS_WINDOW;
    return bf16 ? rounds + (n - 1 + SUM_LEVELS_WINDOW - 1) / SUM_LEVELS_WINDOW : 2 * rounds;
}
