/* The gradients' sum, whatever the buckets, the ranges backward reports, and the way taken. */
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

static int is_sum(const float *g, int world)
{
    for (size_t i = 0; i < COUNT; i++) {
        float sum = 0;
        for (int r = 0; r < world; r++)
            sum += value(r, i);
        if (g[i] != sum)
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

static int stats_are_right(const struct traincomm_gradients *a, enum traincomm_way way, int rounds,
                           bool overlap)
{
    struct traincomm_stats stats;

    traincomm_gradients_stats(a, &stats);
    return stats.way == way && stats.rounds == (uint64_t)rounds &&
           stats.bytes == (uint64_t)rounds * COUNT * sizeof(float) &&
           stats.buckets >= stats.rounds && stats.unhidden_seconds > 0 &&
           (overlap || stats.hidden_seconds == 0);
}

static void gradients_check(struct traincomm *c, size_t bucket_bytes, bool overlap,
                            enum traincomm_way way, const char *what)
{
    enum { ROUNDS = 5 };
    struct traincomm_options options = {
        .bucket_bytes = bucket_bytes, .no_overlap = !overlap, .way = way};
    struct traincomm_gradients *a = NULL;
    float *g = malloc(COUNT * sizeof *g);
    int right = traincomm_gradients_create(c, g, COUNT, &options, &a) == 0;

    for (int round = 0; right && round < ROUNDS; round++) {
        gradients_fill(g, traincomm_rank(c));
        report_ranges(a, traincomm_rank(c));
        traincomm_gradients_wait(a);
        right = is_sum(g, traincomm_size(c));
    }
    tap_check(right && stats_are_right(a, way, ROUNDS, overlap), what);
    traincomm_gradients_destroy(a);
    free(g);
}

/* Two networks (as of a GAN) whose rounds the ranks begin in another order. */
static void check_two(struct traincomm *c)
{
    struct traincomm_options options = {.bucket_bytes = 1 << 20, .way = TRAINCOMM_WAY_THREAD};
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
        right &= is_sum(g[i], traincomm_size(c));
    }
    tap_check(right, "two objects do not meet each other's buckets");
    for (int i = 0; i < 2; i++) {
        traincomm_gradients_destroy(a[i]);
        free(g[i]);
    }
}

/* Whatever way, the same bits: what one rank loses by rounding, all lose. */
static void check_same_bits(struct traincomm *c)
{
    struct traincomm_gradients *a = NULL;
    float *g = malloc(COUNT * sizeof *g), *first = malloc(COUNT * sizeof *g);
    int right = traincomm_gradients_create(c, g, COUNT, NULL, &a) == 0;

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
    tap_check(right, "the same bits on all ranks, and again");
    traincomm_gradients_destroy(a);
    free(first);
    free(g);
}

static void check_refusals(struct traincomm *c)
{
    struct traincomm_gradients *a = NULL;
    struct traincomm_stats stats;
    float g[4] = {1, 1, 1, 1};

    setenv("TRAINCOMM_WAY", "pigeon", 1);
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
    gradients_check(c, 1 << 20, true, TRAINCOMM_WAY_THREAD,
                    "a thread: buckets of 1 MiB behind backward");
    gradients_check(c, 100000, true, TRAINCOMM_WAY_THREAD, "a thread: odd buckets");
    gradients_check(c, 0, true, TRAINCOMM_WAY_THREAD,
                    "a thread: one bucket larger than the buffer");
    gradients_check(c, 100000, false, TRAINCOMM_WAY_THREAD, "a thread: buckets after backward");
    gradients_check(c, 1 << 20, true, TRAINCOMM_WAY_CALLS,
                    "calls: buckets of 1 MiB behind backward");
    gradients_check(c, 0, true, TRAINCOMM_WAY_CALLS, "calls: one bucket larger than the buffer");
    gradients_check(c, 100000, false, TRAINCOMM_WAY_CALLS, "calls: odd buckets after backward");
    check_two(c);
    check_same_bits(c);
    check_refusals(c);
    int failed = tap_done();
    traincomm_finalize(c);
    return failed;
}
