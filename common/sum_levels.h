/* The schedule of libtraincomm's sum over n ranks (worker/comm/exchange.h), also used for
 * predictions. n is a product of digits of at most 16, or primes, each a level of messages among
 * that many ranks: 256 ranks take 2 levels each way, of 15 messages. */
#pragma once

#include <stdbool.h>

enum {
    SUM_LEVELS_MAX = 12,
    SUM_LEVELS_BITS = 4,    /* of a digit of the power of two, at most */
    SUM_LEVELS_WINDOW = 32, /* concurrent messages each way: more would congest one rank's port */
    SUM_LEVELS_BUCKETS = 4  /* concurrent */
};

/* The power of two first, in digits as equal as possible; an odd number below 16 as one digit, so
 * that its sums are in pairs too; else its primes, small ones combined. Returns the count. */
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

/* Rounds of messages in sequence. bf16: the first half is one level of all ranks. */
static inline int sum_levels_rounds(int n, bool bf16)
{
    int digit[SUM_LEVELS_MAX], count = sum_levels_find(n, digit), rounds = 0;

    for (int i = 0; i < count; i++)
        rounds += (digit[i] - 1 + SUM_LEVELS_WINDOW - 1) / SUM_LEVELS_WINDOW;
    return bf16 ? rounds + (n - 1 + SUM_LEVELS_WINDOW - 1) / SUM_LEVELS_WINDOW : 2 * rounds;
}
