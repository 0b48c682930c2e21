/* Schedule of libtraincomm's sum over n ranks (worker/comm/exchange.h), also used for predictions.
 * n is a product of digits, which are at most 16 or prime. Each digit is a level in which that many
 * ranks exchange messages: 256 ranks take 2 levels of 15 messages in each direction. */
#pragma once

#include <stdbool.h>

enum {
    SUM_LEVELS_MAX = 12,
    SUM_LEVELS_BITS = 4,    /* maximum size of a digit of the power of two */
    SUM_LEVELS_WINDOW = 32, /* concurrent messages each way; more would congest a rank's port */
    SUM_LEVELS_BUCKETS = 4  /* concurrent buckets */
};

/* Finds the digits: those of the power of two first, as equal as possible; then an odd factor below
 * 16 as one digit, so that its sums are pairwise too, or else its primes, of which small ones are
 * combined. Returns the number of digits. */
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

/* Number of consecutive rounds of messages. In bf16 the reduce-scatter is one level. */
static inline int sum_levels_rounds(int n, bool bf16)
{
    int digit[SUM_LEVELS_MAX], count = sum_levels_find(n, digit), rounds = 0;

    for (int i = 0; i < count; i++)
        rounds += (digit[i] - 1 + SUM_LEVELS_WINDOW - 1) / SUM_LEVELS_WINDOW;
    return bf16 ? rounds + (n - 1 + SUM_LEVELS_WINDOW - 1) / SUM_LEVELS_WINDOW : 2 * rounds;
}
