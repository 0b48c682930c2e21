#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"

/* The known answers of Random123 (kat_vectors, philox4x32 10). */
Test(rng, is_philox)
{
    static const struct {
        uint32_t counter[4], key[2], answer[4];
    } known[] = {
        {{0, 0, 0, 0},                                     {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}                                                          },
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}                                                          },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t out[4];
        rng_philox(known[i].key, known[i].counter, out);
        cr_assert_arr_eq(out, known[i].answer, sizeof out);
    }
}

Test(rng, streams_repeat_and_differ_by_each_part_of_their_name)
{
    struct rng streams[] = {
        rng_stream(1, 2, 3, RNG_AUGMENT),         rng_stream(1, 2, 3, RNG_AUGMENT),
        rng_stream(2, 2, 3, RNG_AUGMENT),         rng_stream(1, 3, 3, RNG_AUGMENT),
        rng_stream(1, 2, 4, RNG_AUGMENT),         rng_stream(1, 2, 3, RNG_SHUFFLE),
        rng_stream(1, 2, 1LL << 33, RNG_AUGMENT), rng_stream(1LL << 33 | 1, 2, 3, RNG_AUGMENT),
    };
    const int n = sizeof streams / sizeof *streams;
    uint64_t first[sizeof streams / sizeof *streams];
    for (int i = 0; i < n; i++)
        first[i] = (uint64_t)rng_u32(&streams[i]) << 32 | rng_u32(&streams[i]);
    cr_assert_eq(first[0], first[1]);
    for (int i = 1; i < n; i++)
        for (int j = i + 1; j < n; j++)
            cr_expect_neq(first[i], first[j], "streams %d and %d", i, j);
}

Test(rng, numbers_are_uniform)
{
    struct rng r = rng_stream(7, 0, 0, RNG_AUGMENT);
    double sum = 0, squares = 0;
    int counts[7] = {0};
    const int n = 70000;
    for (int i = 0; i < n; i++) {
        double u = rng_unit(&r);
        cr_assert(u >= 0 && u < 1);
        sum += u;
        squares += u * u;
        counts[rng_below(&r, 7)]++;
    }
    cr_expect_float_eq(sum / n, 0.5, 0.005);
    cr_expect_float_eq(squares / n, 1.0 / 3, 0.005);
    for (int i = 0; i < 7; i++)
        cr_expect(abs(counts[i] - n / 7) < 400, "%d: %d", i, counts[i]);
    cr_expect_eq(rng_below(&r, 1), 0);
}

static void check_permutation(int64_t n, int64_t epoch)
{
    struct rng_permutation p = rng_permutation(n, rng_stream(1, epoch, 0, RNG_SHUFFLE));
    char *seen = calloc((size_t)n, 1);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = rng_permutation_at(&p, i);
        cr_assert(at >= 0 && at < n && !seen[at], "n %ld, position %ld", (long)n, (long)i);
        seen[at] = 1;
    }
    free(seen);
}

Test(rng, permutation_visits_everything_once)
{
    for (int64_t n = 1; n <= 300; n++)
        check_permutation(n, n);
    check_permutation(60000, 0);
    check_permutation(65536, 1);
    check_permutation(65537, 2);
}

/* A shuffle has one fixed point on average; neighbours do not stay neighbours; epochs are
 * unrelated. */
Test(rng, permutation_shuffles)
{
    const int n = 50000;
    int fixed = 0, neighbours = 0, same = 0;
    double covariance = 0;
    struct rng_permutation a = rng_permutation(n, rng_stream(1, 0, 0, RNG_SHUFFLE));
    struct rng_permutation b = rng_permutation(n, rng_stream(1, 1, 0, RNG_SHUFFLE));
    for (int i = 0; i < n; i++) {
        int64_t at = rng_permutation_at(&a, i);
        fixed += at == i;
        same += at == rng_permutation_at(&b, i);
        neighbours += i > 0 && llabs(at - rng_permutation_at(&a, i - 1)) == 1;
        covariance += ((double)at / n - 0.5) * ((double)i / n - 0.5);
    }
    cr_expect_lt(fixed, 10);
    cr_expect_lt(same, 10);
    cr_expect_lt(neighbours, 15);
    cr_expect_lt(fabs(12 * covariance / n), 0.02);
}
