/*
 * The gradients' sum, whatever the buckets, the ranges backward reports, what drives the buckets,
 * and how the ranks lie on machines (parts of this one that count as such).
 */
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "tests/mpi/tap.h"
#include "worker/comm/traincomm.h"

#define COUNT 400007 /* several buckets, and no multiple of anything */

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

/* In bf16 each rank's are rounded; those of several machines by machine, of host_ranks. */
static int is_sum(const float *g, int world, int host_ranks, enum traincomm_dtype dtype)
{
    int each = host_ranks < world ? host_ranks : 1;

    for (size_t i = 0; i < COUNT; i++) {
        float sum = 0, part = 0;
        for (int r = 0; r < world; r++) {
            part += value(r, i);
            if ((r + 1) % each > 0 && r + 1 < world)
                continue;
            sum += dtype == TRAINCOMM_BF16 ? to_bf16(part) : part;
            part = 0;
        }
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

static int stats_are_right(struct traincomm *c, const struct traincomm_gradients *a,
                           const struct traincomm_options *options, int rounds)
{
    uint64_t bytes = options->dtype == TRAINCOMM_BF16 ? 2 : sizeof(float);
    struct traincomm_stats stats;
    int hosts = traincomm_host_rank(c) == 0;

    MPI_Allreduce(MPI_IN_PLACE, &hosts, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    traincomm_gradients_stats(a, &stats);
    return stats.machines == hosts && stats.leaders > 0 && stats.rounds == (uint64_t)rounds &&
           stats.bytes == (uint64_t)rounds * COUNT * bytes && stats.buckets >= stats.rounds &&
           stats.unhidden_seconds > 0 &&
           (hosts == 1 || !options->no_overlap || stats.drive == TRAINCOMM_DRIVE_WAIT) &&
           (!options->no_overlap || stats.hidden_seconds == 0);
}

/* A sentence, with the times of what was tried. */
static int says_drive(const struct traincomm_gradients *a, const struct traincomm_options *options)
{
    struct traincomm_stats stats;
    char text[512];
    int said = traincomm_gradients_describe(a, text, sizeof text);

    traincomm_gradients_stats(a, &stats);
    if (stats.machines > 1 && !options->no_overlap) {
        said = said && strstr(text, "a step takes") && strstr(text, " by calls") != NULL;
        said = said && (strstr(text, " thread") != NULL) == options->thread;
    } else {
        said = said && strstr(text, ", after backward");
    }
    if (!said)
        printf("# %s\n", text);
    return said;
}

static void check_options(struct traincomm *c, struct traincomm_options options, int host_ranks,
                          const char *what)
{
    enum { ROUNDS = 11 }; /* the first 10 try what drives the buckets */
    struct traincomm_gradients *a = NULL;
    float *g = malloc(COUNT * sizeof *g);
    int right = traincomm_gradients_create(c, g, COUNT, &options, &a) == 0;

    for (int round = 0; right && round < ROUNDS; round++) {
        gradients_fill(g, traincomm_rank(c));
        report_ranges(a, traincomm_rank(c));
        traincomm_gradients_wait(a);
        right = is_sum(g, traincomm_size(c), host_ranks, options.dtype);
    }
    right = right && stats_are_right(c, a, &options, ROUNDS) && says_drive(a, &options);
    tap_check(right, what);
    traincomm_gradients_destroy(a);
    free(g);
}

/* Fewer gradients than ranks, and no whole part for each of them. */
static void check_few(struct traincomm *c, const char *name)
{
    struct traincomm_options options = {.dtype = TRAINCOMM_BF16};
    int right = 1, world = traincomm_size(c);
    char what[128];

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
    snprintf(what, sizeof what, "%s: a few gradients in bf16", name);
    tap_check(right, what);
}

/* Two networks (as of a GAN) whose rounds the ranks begin in another order. */
static void check_two(struct traincomm *c, const char *name)
{
    struct traincomm_options options = {.bucket_bytes = 1 << 20};
    struct traincomm_gradients *a[2] = {NULL};
    float *g[2];
    char what[128];
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
        right &= is_sum(g[i], traincomm_size(c), 1, TRAINCOMM_FP32);
    }
    snprintf(what, sizeof what, "%s: two objects do not meet each other's buckets", name);
    tap_check(right, what);
    for (int i = 0; i < 2; i++) {
        traincomm_gradients_destroy(a[i]);
        free(g[i]);
    }
}

/* Where backward is long enough, nothing of a sum is left behind it: in every second of the first
 * rounds, which try to send during backward. */
static void check_hidden(struct traincomm *c, const char *name)
{
    enum { BUCKET = 1 << 14, BUCKETS = 40, TRIES = 50 };
    struct traincomm_options options = {.bucket_bytes = BUCKET};
    struct traincomm_gradients *a = NULL;
    struct traincomm_stats stats = {0};
    float *g = calloc(BUCKETS, BUCKET);
    char what[128];
    int right = 1;

    if (traincomm_gradients_create(c, g, BUCKETS * BUCKET / sizeof *g, &options, &a))
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int round = 0; round < 7; round++) {
        uint64_t late = stats.late_buckets;
        for (int i = 0; i < TRIES; i++) { /* all ranks call it again after the others have */
            for (int k = 0; k < TRIES; k++)
                traincomm_gradients_ready(a, 0);
            traincomm_barrier(c);
        }
        traincomm_gradients_wait(a);
        traincomm_gradients_stats(a, &stats);
        late = stats.late_buckets - late;
        right = right && late == (round > 0 && round % 2 == 0 ? 0 : BUCKETS);
    }
    snprintf(what, sizeof what, "%s: nothing of a sum is left behind a long backward", name);
    tap_check(right, what);
    traincomm_gradients_destroy(a);
    free(g);
}

/* ---- ranks that share an update: values += sums, and state = -sums of what a rank updated */

enum { CUT = 3001 }; /* no multiple of a cache line */

struct shared_update {
    float *values, *state;
    double *updates; /* of each value */
    int cuts_are_right;
};

static size_t update_cut(void *context, size_t at)
{
    (void)context;
    size_t cut = (at + CUT - 1) / CUT * CUT;
    return cut < COUNT ? cut : COUNT;
}

static void update_range(void *context, size_t first, size_t end, float *sums)
{
    struct shared_update *u = context;

    u->cuts_are_right &= first < end && update_cut(u, first) == first && update_cut(u, end) == end;
    for (size_t i = first; i < end; i++) {
        u->values[i] += sums[i - first];
        u->state[i] = -sums[i - first];
        u->updates[i]++;
    }
}

static int update_once(struct traincomm *c, struct traincomm_gradients *a, float *g,
                       struct shared_update *u)
{
    struct traincomm_update how = {u->values, update_range, update_cut, u};
    struct traincomm_update gather = {.values = u->state, .cut = update_cut};
    int right = 1, rank = traincomm_rank(c), world = traincomm_size(c);

    gradients_fill(g, rank);
    for (size_t i = 0; i < COUNT; i++) {
        u->values[i] = (float)(i % 100);
        u->state[i] = (float)rank;
        u->updates[i] = 0;
    }
    right &= traincomm_gradients_update(a, &how) >= 0;
    traincomm_gradients_update(a, &gather);
    traincomm_reduce(c, TRAINCOMM_SUM, u->updates, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        u->values[i] -= (float)(i % 100); /* exact */
        u->state[i] = -u->state[i];
        right &= u->updates[i] == 1 && g[i] == value(rank, i);
    }
    return right && is_sum(u->values, world, world, TRAINCOMM_FP32) &&
           is_sum(u->state, world, world, TRAINCOMM_FP32);
}

static void check_update(struct traincomm *c, bool one_machine, const char *name)
{
    enum { ROUNDS = 3 };
    struct traincomm_gradients *a = NULL, *narrow = NULL;
    struct traincomm_options bf16 = {.dtype = TRAINCOMM_BF16};
    struct traincomm_stats stats;
    struct shared_update u = {malloc(COUNT * sizeof(float)), malloc(COUNT * sizeof(float)),
                              malloc(COUNT * sizeof(double)), 1};
    float *g = malloc(COUNT * sizeof *g);
    char what[128];
    int right = traincomm_gradients_create(c, g, COUNT, NULL, &a) == 0 &&
                traincomm_gradients_create(c, g, COUNT, &bf16, &narrow) == 0;

    right &= traincomm_gradients_can_update(a) == one_machine;
    right &= !traincomm_gradients_can_update(narrow);
    for (int round = 0; right && one_machine && round < ROUNDS; round++)
        right &= update_once(c, a, g, &u);
    traincomm_gradients_stats(a, &stats);
    if (one_machine)
        right &= stats.rounds == 2 * ROUNDS && stats.bytes == stats.rounds * COUNT * sizeof *g;
    snprintf(what, sizeof what, "%s: %s", name,
             one_machine ? "the ranks share an update" : "each rank updates all");
    tap_check(right && u.cuts_are_right, what);
    traincomm_gradients_destroy(a);
    traincomm_gradients_destroy(narrow);
    free(u.values);
    free(u.state);
    free(u.updates);
    free(g);
}

/* All checks with the ranks grouped into machines. */
static void check_layout(int ranks, const char *name)
{
    struct traincomm *c;
    char what[128], text[16];

    snprintf(text, sizeof text, "%d", ranks);
    setenv("TRAINCOMM_HOST_RANKS", text, 1);
    if (traincomm_init_from(MPI_COMM_WORLD, &c))
        MPI_Abort(MPI_COMM_WORLD, 1);
    unsetenv("TRAINCOMM_HOST_RANKS");
    const struct {
        struct traincomm_options options;
        const char *what;
    } cases[] = {
        {{0},                                                        "as it is chosen"           },
        {{.bucket_bytes = 1 << 20},                                  "buckets of 1 MiB"          },
        {{.bucket_bytes = 100000},                                   "odd buckets"               },
        {{.bucket_bytes = 100000, .no_overlap = true},               "odd buckets after backward"},
        {{.bucket_bytes = 100000, .thread = true, .thread_cpu = -1}, "by a thread, too"          },
        {{.bucket_bytes = 1 << 20, .thread = true, .thread_cpu = 0}, "by one that is bound"      },
        {{.dtype = TRAINCOMM_BF16},                                  "in bf16"                   },
        {{.bucket_bytes = 100000, .dtype = TRAINCOMM_BF16},          "odd buckets in bf16"       },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(what, sizeof what, "%s: %s", name, cases[i].what);
        check_options(c, cases[i].options, ranks, what);
    }
    check_few(c, name);
    check_two(c, name);
    check_update(c, ranks >= traincomm_size(c), name);
    if (ranks < traincomm_size(c))
        check_hidden(c, name);
    traincomm_finalize(c);
}

int main(void)
{
    int threads;

    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &threads))
        return 1;
    check_layout(1000, "one machine");
    check_layout(1, "machines of one rank");
    check_layout(2, "machines of two and one");
    traincomm_gradients_destroy(NULL);
    int failed = tap_done();
    MPI_Finalize();
    return failed;
}
