/* The gradients' sum, whatever the buckets, the ranges backward reports, and the way taken. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/mpi/tap.h"
#include "worker/comm/traincomm.h"

#define COUNT 1200007 /* more than two pieces, and no multiple of anything */

static float value(int rank, size_t i)
{
    return (float)((i * 7 + (size_t)rank * 13) % 1000) / 8; /* sums are exact in float */
}

static void gradients_fill(float *g, int rank)
{
    for (size_t i = 0; i < COUNT; i++)
        g[i] = value(rank, i);
}

/* To 8 bits, ties to even. */
static float to_bf16(float x)
{
    int exponent;
    double part = frexp(x, &exponent);
    return (float)ldexp(nearbyint(ldexp(part, 8)), exponent - 8);
}

static int is_sum(const float *g, int world, enum traincomm_dtype dtype)
{
    for (size_t i = 0; i < COUNT; i++) {
        float sum = 0;
        for (int r = 0; r < world; r++)
            sum += dtype == TRAINCOMM_BF16 ? to_bf16(value(r, i)) : value(r, i);
        if (g[i] != (dtype == TRAINCOMM_BF16 ? to_bf16(sum) : sum))
            return 0;
    }
    return 1;
}

/* Ranges of uneven sizes, from the end to the beginning, as backward reports them; another cut on
 * each rank. */
static void report_ranges(struct traincomm_gradients *g, int rank)
{
    size_t from = COUNT, n = (size_t)100 + (size_t)rank * 17;
    while (from > 0) {
        n = n * 2 < from ? n * 2 : from;
        from -= n;
        traincomm_gradients_ready(g, from);
    }
}

static int stats_are_right(const struct traincomm_gradients *a,
                           const struct traincomm_options *options, int rounds)
{
    uint64_t bytes = options->dtype == TRAINCOMM_BF16 ? 2 : sizeof(float);
    struct traincomm_stats stats;

    traincomm_gradients_stats(a, &stats);
    return stats.way == options->way && stats.rounds == (uint64_t)rounds &&
           stats.bytes == (uint64_t)rounds * COUNT * bytes && stats.buckets >= stats.rounds &&
           stats.unhidden_seconds > 0 && (!options->no_overlap || stats.hidden_seconds == 0);
}

static int says_overlap(const struct traincomm_gradients *a,
                        const struct traincomm_options *options)
{
    bool blocks = options->way == TRAINCOMM_WAY_PIECES || options->way == TRAINCOMM_WAY_SHARED;
    char text[256];

    return traincomm_gradients_describe(a, text, sizeof text) &&
           (strstr(text, "a step takes") != NULL) == (!blocks && !options->no_overlap) &&
           (strstr(text, "during backward") || strstr(text, "after backward"));
}

static void check_options(struct traincomm *c, struct traincomm_options options, const char *what)
{
    enum { ROUNDS = 8 }; /* the first 7 try to send behind backward and after it */
    struct traincomm_gradients *a = NULL;
    float *g = malloc(COUNT * sizeof *g);
    int right = traincomm_gradients_create(c, g, COUNT, &options, &a) == 0;

    for (int round = 0; right && round < ROUNDS; round++) {
        gradients_fill(g, traincomm_rank(c));
        report_ranges(a, traincomm_rank(c));
        traincomm_gradients_wait(a);
        right = is_sum(g, traincomm_size(c), options.dtype);
    }
    right = right && stats_are_right(a, &options, ROUNDS) && says_overlap(a, &options);
    tap_check(right, what);
    traincomm_gradients_destroy(a);
    free(g);
}

static void gradients_check(struct traincomm *c, size_t bucket_bytes, bool overlap,
                            enum traincomm_way way, const char *what)
{
    check_options(c,
                  (struct traincomm_options){
                      .bucket_bytes = bucket_bytes, .no_overlap = !overlap, .way = way},
                  what);
}

static void check_bf16(struct traincomm *c, size_t bucket_bytes, enum traincomm_way way,
                       const char *what)
{
    check_options(c,
                  (struct traincomm_options){
                      .bucket_bytes = bucket_bytes, .way = way, .dtype = TRAINCOMM_BF16},
                  what);
}

/* Fewer gradients than ranks, and no whole part for each of them. */
static void check_few(struct traincomm *c)
{
    struct traincomm_options options = {.way = TRAINCOMM_WAY_CALLS, .dtype = TRAINCOMM_BF16};
    int right = 1, world = traincomm_size(c);

    for (size_t count = 1; right && count < 8; count++) {
        struct traincomm_gradients *a = NULL;
        float g[8] = {1, 1, 1, 1, 1, 1, 1, 257}; /* 257 needs nine bits */
        right = traincomm_gradients_create(c, g + 8 - count, count, &options, &a) == 0;
        traincomm_gradients_wait(a);
        for (size_t i = 8 - count; i < 7; i++)
            right &= g[i] == (float)world;
        right &= g[7] == to_bf16(256 * (float)world);
        traincomm_gradients_destroy(a);
    }
    tap_check(right, "a few gradients in bf16");
}

/* Two networks (as of a GAN) whose rounds the ranks begin in another order. */
static void check_two(struct traincomm *c)
{
    struct traincomm_options options = {.bucket_bytes = 1 << 20, .way = TRAINCOMM_WAY_CALLS};
    struct traincomm_gradients *a[2] = {NULL};
    float *g[2];
    int right = 1, rank = traincomm_rank(c);

    for (int i = 0; i < 2; i++) {
        g[i] = malloc(COUNT * sizeof **g);
        gradients_fill(g[i], rank);
        right &= traincomm_gradients_create(c, g[i], COUNT, &options, &a[i]) == 0;
    }
    for (int i = 0; right && i < 2; i++)
        report_ranges(a[(i + rank) % 2], rank);
    for (int i = 0; right && i < 2; i++) {
        traincomm_gradients_wait(a[i]);
        right &= is_sum(g[i], traincomm_size(c), TRAINCOMM_FP32);
    }
    tap_check(right, "two objects do not meet each other's buckets");
    for (int i = 0; i < 2; i++) {
        traincomm_gradients_destroy(a[i]);
        free(g[i]);
    }
}

/* Whatever way, the same bits: what one rank loses by rounding, all lose. */
static void check_same_bits(struct traincomm *c, enum traincomm_dtype dtype, const char *what)
{
    struct traincomm_options options = {.dtype = dtype};
    struct traincomm_gradients *a = NULL;
    float *g = malloc(COUNT * sizeof *g), *first = malloc(COUNT * sizeof *g);
    int right = traincomm_gradients_create(c, g, COUNT, &options, &a) == 0;

    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT; i++)
            g[i] = 1.0f / (float)(i + 3 + (size_t)traincomm_rank(c));
        traincomm_gradients_wait(a);
        if (round == 0) {
            memcpy(first, g, COUNT * sizeof *g);
            traincomm_broadcast(c, first, COUNT * sizeof *g, 0);
        }
        right &= memcmp(first, g, COUNT * sizeof *g) == 0;
    }
    tap_check(right, what);
    traincomm_gradients_destroy(a);
    free(first);
    free(g);
}

static void check_refusals(struct traincomm *c)
{
    struct traincomm_gradients *a = NULL;
    struct traincomm_stats stats;
    float g[4] = {1, 1, 1, 1};

    setenv("TRAINCOMM_WAY", "thread", 1);
    int status = traincomm_gradients_create(c, g, 4, NULL, &a);
    tap_check(status == -TRAINCOMM_ERROR_ARGUMENT && !a && traincomm_strerror(status)[0],
              "an unknown TRAINCOMM_WAY is refused");
    setenv("TRAINCOMM_WAY", "calls", 1);
    status = traincomm_gradients_create(c, g, 4, NULL, &a);
    unsetenv("TRAINCOMM_WAY");
    traincomm_gradients_wait(a);
    traincomm_gradients_stats(a, &stats);
    tap_check(status == 0 && stats.way == TRAINCOMM_WAY_CALLS && g[0] == traincomm_size(c),
              "a known one is taken");
    traincomm_gradients_destroy(a);
    traincomm_gradients_destroy(NULL);
}

int main(void)
{
    struct traincomm *c;

    if (traincomm_init(&c))
        return 1;
    gradients_check(c, 0, true, TRAINCOMM_WAY_PIECES, "pieces");
    gradients_check(c, 1 << 20, true, TRAINCOMM_WAY_CALLS,
                    "calls: buckets of 1 MiB behind backward");
    gradients_check(c, 100000, true, TRAINCOMM_WAY_CALLS, "calls: odd buckets");
    gradients_check(c, 0, true, TRAINCOMM_WAY_CALLS, "calls: one bucket larger than the buffer");
    gradients_check(c, 100000, false, TRAINCOMM_WAY_CALLS, "calls: odd buckets after backward");
    gradients_check(c, 0, true, TRAINCOMM_WAY_SHARED, "memory of the machine");
    gradients_check(c, 100000, true, TRAINCOMM_WAY_LEADERS, "leaders: of one machine");
    check_two(c);
    check_bf16(c, 0, TRAINCOMM_WAY_SHARED, "memory of the machine, in bf16");
    check_bf16(c, 0, TRAINCOMM_WAY_PIECES, "pieces in bf16");
    check_bf16(c, 100000, TRAINCOMM_WAY_CALLS, "calls: odd buckets in bf16");
    check_few(c);
    check_same_bits(c, TRAINCOMM_FP32, "the same bits on all ranks, and again");
    check_same_bits(c, TRAINCOMM_BF16, "in bf16 too");
    check_refusals(c);
    int failed = tap_done();
    traincomm_finalize(c);
    return failed;
}
