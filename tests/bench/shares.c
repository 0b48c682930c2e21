/*
 * How even the threads' shares of a step are, counted: shares [ARCH [IMAGE_SIZE]]. For batches and
 * threads of real nodes a line each: the largest share over the mean, by products and by bytes
 * moved; barriers; and the share of their speed that so many threads keep: with each team weighted
 * by its time, measured with one thread; by counts alone; and by the planner's formula, which is
 * fitted to the counts. --bf16: with that precision. --layers: a line for each team too, those that
 * lose most of the step's time first. --json.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "common/plan/predict.h"
#include "tests/bench/shares.h"

static const struct node {
    int batch, threads;
    double wanted; /* 0: none stated */
} nodes[] = {
    {48,  22, 0.95},
    {48,  24, 0.95},
    {48,  48, 0.90},
    {96,  48, 0   },
    {16,  7,  0   },
    {16,  22, 0   },
    {128, 56, 0   },
    {8,   16, 0   },
    {1,   8,  0.85},
};

enum { MEASURED_IMAGES = 4 };

static const char *const archs[] = {"resnet18",  "resnet34",        "resnet50",         "resnet101",
                                    "resnet152", "resnext50_32x4d", "resnext101_32x4d", "cnn"};

/* The teams of a step by what they lose, the largest first. */
struct loss {
    int team;
    double lost, twice; /* of the step's time by one thread; part of it: work that is done twice */
};

static int by_loss(const void *a, const void *b)
{
    const struct loss *x = a, *y = b;
    return (x->lost < y->lost) - (x->lost > y->lost);
}

static void print_layers(const struct shares_step *one, const struct shares_step *all, int threads,
                         const double *seconds)
{
    static struct loss loss[SHARES_TEAMS];
    double step = 0;

    for (int i = 0; i < all->count; i++)
        step += seconds[i];
    for (int i = 0; i < all->count; i++) {
        double weight = seconds[i] / step / one->team[i].work;
        loss[i].team = i;
        loss[i].lost = (all->team[i].longest * threads - one->team[i].work) * weight;
        loss[i].twice = (all->team[i].work - one->team[i].work) * weight;
    }
    qsort(loss, (size_t)all->count, sizeof loss[0], by_loss);
    for (int i = 0; i < all->count; i++) {
        const struct shares_team *t = &all->team[loss[i].team];
        printf("    team %3d: lost %6.3f %%, %6.3f twice  %8.3f GFLOP %5.3f  %8.1f MB %5.3f  "
               "even %5.3f  %d barriers\n",
               loss[i].team, 100 * loss[i].lost, 100 * loss[i].twice, t->flops * 1e-9,
               t->flops > 0 ? t->most_flops * threads / t->flops : 1, t->bytes * 1e-6,
               t->bytes > 0 ? t->most_bytes * threads / t->bytes : 1,
               t->work / (t->longest * threads), t->barriers);
    }
}

static void print_node(const struct shares_case *c, const struct node *n,
                       const struct shares_step *one, const struct shares_step *all,
                       const double *seconds, bool json)
{
    struct shares_team sum = {0};
    struct job_spec spec = shares_spec(c);

    for (int i = 0; i < all->count; i++) {
        sum.most_flops += all->team[i].most_flops;
        sum.flops += all->team[i].flops;
        sum.most_bytes += all->team[i].most_bytes;
        sum.bytes += all->team[i].bytes;
        sum.barriers += all->team[i].barriers;
    }
    printf(json ? "{\"arch\": \"%s\", \"image_size\": %d, \"batch\": %d, \"threads\": %d, "
                  "\"largest_flops\": %.3f, \"largest_bytes\": %.3f, \"barriers\": %d, "
                  "\"efficiency\": %.3f, \"efficiency_by_counts\": %.3f, \"planned\": %.3f, "
                  "\"precision\": \"%s\", \"wanted\": %.2f}\n"
                : "%-17s %4d  %4d images %3d threads: largest share %.3f by FLOP, %.3f by bytes, "
                  "%4d barriers; efficiency %.3f by times, %.3f by counts, %.3f planned; %s "
                  "(%.2f wanted)\n",
           c->arch, c->image_size, n->batch, n->threads, sum.most_flops * n->threads / sum.flops,
           sum.most_bytes * n->threads / sum.bytes, sum.barriers,
           shares_efficiency(one, all, n->threads, seconds),
           shares_efficiency(one, all, n->threads, NULL),
           plan_threads_keep(&spec, n->threads, n->batch),
           c->precision == JOB_PRECISION_BF16 ? "bf16" : "fp32", n->wanted);
}

static void run(const struct shares_case *c, bool layers, bool json)
{
    static struct shares_step measured, one, all;

    shares_run(c, MEASURED_IMAGES, 1, false, 3, &measured);
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        shares_run(c, nodes[i].batch, 1, true, 1, &one);
        shares_run(c, nodes[i].batch, nodes[i].threads, true, 1, &all);
        print_node(c, &nodes[i], &one, &all, measured.seconds, json);
        if (layers)
            print_layers(&one, &all, nodes[i].threads, measured.seconds);
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"layers",     no_argument, NULL, 'l'},
        {"json",        no_argument, NULL, 'j'},
        {"bf16",            no_argument, NULL, 'b'},
        {0},
    };
    bool layers = false, json = false, bf16 = false;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        layers |= c == 'l';
        json |= c == 'j';
        bf16 |= c == 'b';
        if (c == '?')
            return 2;
    }
    if (optind < argc && !arch_find(argv[optind])) {
        fprintf(stderr, "shares: there is no network %s\n", argv[optind]);
        return 2;
    }
    int size = optind + 1 < argc ? atoi(argv[optind + 1]) : 0;
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) {
        bool cnn = !strcmp(archs[i], "cnn");
        int side = cnn ? 28 : 224;
        struct shares_case of = {.arch = archs[i],
                                 .image_size = size ? size : side,
                                 .stem = JOB_STEM_IMAGENET,
                                 .winograd = bf16 ? CONV_NO_WINOGRAD : CONV_WINOGRAD_4,
                                 .precision = bf16 ? JOB_PRECISION_BF16 : JOB_PRECISION_FP32};
        if ((optind == argc || !strcmp(archs[i], argv[optind])) && !(bf16 && cnn))
            run(&of, layers, json);
    }
    return 0;
}
