/*
 * Steps of data-parallel training with the real libtraincomm, in SimGrid's SMPI: agree, forward,
 * backward that reports gradients as the engine does, the sum, the update, the gather of what each
 * rank took. ResNet-50 computes for as long as it is told to, shared among its layers by their
 * floating-point operations and the bytes that pass through memory.
 *
 * usage: step images_per_second=N batch=N [NAME=VALUE]...      of one rank; see `settings`
 */
#include "tests/scale/shim.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "worker/comm/traincomm.h"

#define UNITS_MAX      64
#define UPDATE_SECONDS 10e-3 /* doc/engine-log.md: 10 ms of one rank */
#define STEPS_MAX      1000
#define REPORTS        3 /* of a unit: the two vectors of batch norm, then the kernel */

static struct {
    const char *name;
    double value;
} settings[] = {
    {"images_per_second", 0   }, /* of a rank */
    {"batch",             0   }, /* images of a rank and step */
    {"steps",             2   }, /* that are counted, after those in which the library tries */
    {"bf16",              0   }, /* 1: gradients are sent in bf16 */
    {"jitter",            0   }, /* standard deviation of a machine's step */
    {"slow",              0   }, /* one machine takes so much longer: 0.1: 10 % */
    {"threads",           1   }, /* of a rank, that add up */
    {"core",              12e9}, /* bytes per second that one of them moves through memory, */
    {"team",              12e9}, /* and all together */
    {"bucket",            0   }, /* bytes; 0: the library's own */
    {"after",             0   }, /* 1: everything is sent after backward */
    {"polls",             0   }, /* seconds between looks of a core of its own; 0: driven by calls */
    {"untried",           0   }, /* 1: the first steps that calls drive count, while it still tries */
    {"sums",              0   }, /* so many real numbers are summed instead, and compared */
};
enum setting {
    IMAGES_PER_SECOND,
    BATCH,
    STEPS,
    BF16,
    JITTER,
    SLOW,
    THREADS,
    CORE,
    TEAM,
    BUCKET,
    AFTER,
    POLLS,
    UNTRIED,
    SUMS,
    SETTINGS
};

static double step_setting(enum setting s)
{
    return settings[s].value;
}

static bool step_parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = strchr(argv[i], '=');
        size_t n = value ? (size_t)(value - argv[i]) : 0;
        int s = 0;
        while (s < SETTINGS && (strncmp(settings[s].name, argv[i], n) || settings[s].name[n]))
            s++;
        if (!value || s == SETTINGS)
            return false;
        settings[s].value = atof(value + 1);
    }
    return step_setting(SUMS) > 0 ||
           (step_setting(IMAGES_PER_SECOND) > 0 && step_setting(BATCH) > 0);
}

/* ---- the network: a convolution or the last layer, with its batch norm */

struct unit {
    double weight; /* of its share of the computing */
    size_t parameters, offset;
};

struct net {
    struct unit units[UNITS_MAX];
    int count;
    size_t parameters;
    double weight;
};

/* Batch norm and ReLU are a third of the time, by the bytes that they move. */
static void net_add(struct net *net, int in, int out, int kernel, int size, bool norm)
{
    double flops = 2.0 * in * out * kernel * kernel * size * size, bytes = 4.0 * out * size * size;
    size_t parameters = (size_t)in * (size_t)out * (size_t)(kernel * kernel);

    net->units[net->count] = (struct unit){.weight = flops + 150 * bytes,
                                           .parameters = parameters + (size_t)out * (norm ? 2 : 1),
                                           .offset = net->parameters};
    net->weight += net->units[net->count].weight;
    net->parameters += net->units[net->count++].parameters;
}

/* The v1.5: the 3x3 of a block has the stride. */
static void net_make_resnet50(struct net *net)
{
    static const int blocks[] = {3, 4, 6, 3};
    int in = 64, size = 56;

    net_add(net, 3, 64, 7, 112, true);
    for (int stage = 0; stage < 4; stage++)
        for (int block = 0; block < blocks[stage]; block++) {
            int middle = 64 << stage, out = 4 * middle;
            int half = block == 0 && stage > 0 ? size / 2 : size;
            net_add(net, in, middle, 1, size, true);
            net_add(net, middle, middle, 3, half, true);
            net_add(net, middle, out, 1, half, true);
            if (block == 0)
                net_add(net, in, out, 1, half, true);
            in = out;
            size = half;
        }
    net_add(net, 2048, 1000, 1, 1, false);
}

/* ---- chance: counted, so that every rank knows it of every machine */

static uint64_t chance_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static double chance_uniform(uint64_t at)
{
    return ((double)(chance_mix(at) >> 11) + 0.5) * 0x1p-53;
}

/* How many times as long as usual the machine takes in this step: lognormal. */
static double chance_times(int machine, int machines, int step)
{
    uint64_t at = chance_mix((uint64_t)step + 1) ^ (uint64_t)machine * 2;
    double normal = sqrt(-2 * log(chance_uniform(at))) * cos(2 * M_PI * chance_uniform(at + 1));
    double times = exp(step_setting(JITTER) * normal);

    return machine == machines / 2 ? times * (1 + step_setting(SLOW)) : times;
}

/* ---- a step */

struct trainer {
    struct traincomm *comm;
    struct traincomm_gradients *sum;
    const struct net *net;
    int machine, machines;
    double until; /* it has computed, but for what it waits for others */
};

/* Computes for so long. Where the library has a core of its own, that one looks for messages and
 * adds up meanwhile, which takes nothing of the others' time. */
static void step_compute(struct trainer *t, double seconds, size_t ready)
{
    double polls = step_setting(POLLS), now;

    if (polls <= 0) {
        scale_charge(seconds);
        return;
    }
    for (t->until += seconds; (now = MPI_Wtime()) < t->until;) {
        scale_charge(t->until - now < polls ? t->until - now : polls);
        if (ready <= t->net->parameters)
            traincomm_gradients_ready(t->sum, ready);
    }
}

static void step_backward(struct trainer *t, double seconds)
{
    size_t ready = t->net->parameters;

    for (int i = t->net->count; i-- > 0;) {
        const struct unit *u = &t->net->units[i];
        for (int k = REPORTS; k-- > 0;) {
            step_compute(t, seconds * u->weight / t->net->weight / REPORTS, ready);
            ready = u->offset + (k > 0 ? u->parameters - (size_t)(REPORTS - k) : 0);
            traincomm_gradients_ready(t->sum, ready);
        }
    }
}

struct took {
    double all, wait, busy;
};

static struct took step_run(struct trainer *t, int number, double *every)
{
    struct traincomm_failure failure = {0};
    double mine[10] = {0}, start = MPI_Wtime();
    bool stop = false;

    traincomm_agree(t->comm, &stop, &failure);
    t->until = MPI_Wtime();
    double compute = step_setting(BATCH) / step_setting(IMAGES_PER_SECOND) *
                     chance_times(t->machine, t->machines, number);
    step_compute(t, compute / 3, t->net->parameters + 1);
    step_backward(t, compute * 2 / 3);
    double wait = traincomm_gradients_wait(t->sum);
    scale_charge(UPDATE_SECONDS);
    traincomm_all_gather(t->comm, mine, sizeof mine, every);
    return (struct took){MPI_Wtime() - start, wait, compute};
}

/* What the step would take if nothing but the slowest machine's computing did. */
static double step_alone(const struct trainer *t, int number)
{
    double slowest = 0;

    for (int i = 0; i < t->machines; i++) {
        double times = chance_times(i, t->machines, number);
        slowest = times > slowest ? times : slowest;
    }
    return slowest * step_setting(BATCH) / step_setting(IMAGES_PER_SECOND) + UPDATE_SECONDS;
}

/* ---- the runs */

static bool run_counts(const struct trainer *t)
{
    struct traincomm_stats stats;
    char words[512];

    if (step_setting(UNTRIED) <= 0)
        return traincomm_gradients_describe(t->sum, words, sizeof words);
    traincomm_gradients_stats(t->sum, &stats);
    return stats.rounds > 0 && stats.drive == TRAINCOMM_DRIVE_CALLS;
}

/* Until so many steps have counted. Rank 0 prints a line. */
static void train_steps(struct trainer *t, double *every)
{
    double step = 0, wait = 0, alone = 0;
    char words[512];
    int steps = (int)step_setting(STEPS);

    traincomm_barrier(t->comm);
    for (int number = 0, counted = 0; counted < steps && number < STEPS_MAX; number++) {
        bool counts = run_counts(t);
        struct took took = step_run(t, number, every);
        if (!counts)
            continue;
        counted++;
        step += took.all;
        wait += took.wait;
        alone += step_alone(t, number);
    }
    if (traincomm_rank(t->comm) != 0)
        return;
    double ideal = step_setting(BATCH) / step_setting(IMAGES_PER_SECOND) + UPDATE_SECONDS;
    traincomm_gradients_describe(t->sum, words, sizeof words);
    printf("%.3f\t%.3f\t%.3f\t%.3f\n", 1e3 * ideal, 1e3 * alone / steps, 1e3 * step / steps,
           1e3 * wait / steps);
    fprintf(stderr, "step: %s\n", words);
}

/* The sum of value i of ranks [first, first + n), in pairs. */
static float run_pairs(size_t i, size_t count, uint64_t first, uint64_t n)
{
    uint64_t half = 1;

    if (n == 1)
        return (float)(chance_uniform(first * count + i) - 0.5);
    while (2 * half < n)
        half *= 2;
    return run_pairs(i, count, first, half) + run_pairs(i, count, first + half, n - half);
}

/* Real numbers, whose sums are compared bit by bit. Rank 0 prints how many are wrong on any rank.
 */
static void run_sums(struct trainer *t, float *gradients, size_t count)
{
    uint64_t ranks = (uint64_t)traincomm_size(t->comm), rank = (uint64_t)traincomm_rank(t->comm);
    double wrong = 0;

    for (size_t i = 0; i < count; i++)
        gradients[i] = run_pairs(i, count, rank, 1);
    traincomm_gradients_wait(t->sum);
    for (size_t i = 0; i < count; i++) {
        float expected = run_pairs(i, count, 0, ranks);
        wrong += memcmp(&expected, &gradients[i], sizeof expected) != 0;
    }
    traincomm_reduce(t->comm, TRAINCOMM_SUM, &wrong, 1);
    if (rank == 0)
        printf("%.0f of %zu sums are wrong\n", wrong, count);
}

static int run_all(struct trainer *t)
{
    static float *folded; /* of all ranks */
    const struct traincomm_options options = {.bucket_bytes = (size_t)step_setting(BUCKET),
                                              .no_overlap = step_setting(AFTER) > 0,
                                              .threads = (int)step_setting(THREADS),
                                              .dtype = step_setting(BF16) > 0 ? TRAINCOMM_BF16
                                                                              : TRAINCOMM_FP32};
    size_t count = step_setting(SUMS) > 0 ? (size_t)step_setting(SUMS) : t->net->parameters;
    int size = traincomm_size(t->comm);

    t->machines = size / traincomm_host_size(t->comm);
    t->machine = traincomm_rank(t->comm) / traincomm_host_size(t->comm);
    if (!folded && scale_folds)
        folded = scale_allocate(count * sizeof *folded, 64);
    float *gradients = scale_folds ? folded : scale_allocate(count * sizeof *folded, 64);
    double *every = malloc(sizeof(double) * 10 * (size_t)size);
    int status = traincomm_gradients_create(t->comm, gradients, count, &options, &t->sum);
    if (status) {
        fprintf(stderr, "step: %s\n", traincomm_strerror(status));
        return 1;
    }
    if (scale_folds)
        train_steps(t, every);
    else
        run_sums(t, gradients, count);
    traincomm_gradients_destroy(t->sum);
    free(every);
    return 0;
}

int main(int argc, char **argv)
{
    static struct net net;
    struct trainer t = {.net = &net};

    if (!step_parse(argc, argv)) {
        fprintf(stderr, "usage: step images_per_second=N batch=N [NAME=VALUE]...\n");
        return 2;
    }
    MPI_Init(&argc, &argv);
    scale_folds = step_setting(SUMS) <= 0;
    scale_memory = (struct scale_memory){step_setting(CORE), step_setting(TEAM)};
    if (net.count == 0)
        net_make_resnet50(&net);
    if (traincomm_init_from(MPI_COMM_WORLD, &t.comm))
        return 1;
    int status = run_all(&t);
    traincomm_finalize(t.comm);
    MPI_Finalize();
    return status;
}
