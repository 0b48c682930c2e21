/* How even the threads' shares are, counted by the code that shares. tests/bench/shares prints the
 * same for all networks, weighted by measured times. */
#include <criterion/criterion.h>

#include "common/job/recipe/optimizers.h"
#include "common/plan/predict.h"
#include "tests/bench/shares.h"
#include "tests/unit/worker/compare.h"
#include "worker/team/parallel.h"
#include "worker/layers/conv.h"
#include "worker/optim/optimizer.h"

/* The engines whose shares are counted, on any of their processors: floats of a vector, and how far
 * below the counts a plan in fp32 may be: it was fitted to those of AVX-512's tile. Fewer of a
 * smaller tile are filled in part, so other processors lose less than planned. bf16 has the same
 * blocks everywhere. */
static const struct shares_engine {
    const char *name;
    size_t vec;
    double below_counts;
} engines[] = {
    {"SSE",     4,  0.12},
    {"AVX2",    8,  0.12},
    {"AVX-512", 16, 0.08},
};
enum { ENGINES = sizeof engines / sizeof engines[0], AVX512 = ENGINES - 1 };

/* The planner's formula, which was fitted with Winograd, against the counts. */
static void check_plan(const struct shares_case *c, const struct shares_engine *engine, int batch,
                       int threads, double counted)
{
    struct job_spec spec = shares_spec(c);
    bool half = c->precision == JOB_PRECISION_BF16;
    double planned = plan_threads_keep(&spec, threads, batch);

    cr_expect(planned >= counted - (half ? 0.05 : engine->below_counts) &&
                  planned <= counted + (half ? 0.05 : 0.08),
              "%s at %d with %s, %d images on %d threads: %.3f planned, %.3f counted", c->arch,
              c->image_size, engine->name, batch, threads, planned, counted);
}

/* By work that is counted; with times as weights a step keeps about half a percent less. */
static void check_step(const struct shares_case *of, int engine, int batch, int threads,
                       double wanted)
{
    static int cases;
    struct shares_case c = *of;

    if (cases++ % ONE_OF)
        return;
    struct shares_step *one = malloc(sizeof *one), *all = malloc(sizeof *all);

    c.vec = engines[engine].vec;
    shares_run(&c, batch, 1, true, 1, one);
    shares_run(&c, batch, threads, true, 1, all);
    double efficiency = shares_efficiency(one, all, threads, NULL);
    cr_expect_geq(efficiency, wanted, "%s with %s, %d images on %d threads: %.3f", c.arch,
                  engines[engine].name, batch, threads, efficiency);
    check_plan(&c, &engines[engine], batch, threads, efficiency);
    free(one);
    free(all);
}

static void check_nodes(const char *arch, enum conv_winograd m, int engine)
{
    struct shares_case c = {arch, 224, JOB_STEM_IMAGENET, m, JOB_PRECISION_FP32, 0};

    check_step(&c, engine, 48, 22, 0.955);
    check_step(&c, engine, 48, 24, 0.955);
    check_step(&c, engine, 48, 48, 0.91);
    check_step(&c, engine, 16, 22, 0.91);
    check_step(&c, engine, 1, 8, 0.855);
}

Test(shares, of_bf16_equal_the_plan)
{
    struct shares_case half = {"resnet50",         224, JOB_STEM_IMAGENET, CONV_NO_WINOGRAD,
                               JOB_PRECISION_BF16, 0};
    struct shares_case groups = half;

    groups.arch = "resnext50_32x4d";
    check_step(&half, AVX512, 48, 7, 0.98);
    check_step(&half, AVX512, 48, 22, 0.96);
    check_step(&half, AVX512, 48, 24, 0.97);
    check_step(&half, AVX512, 48, 48, 0.945);
    check_step(&half, AVX512, 1, 8, 0.815);
    check_step(&half, AVX512, 16, 4, 0.98);
    check_step(&groups, AVX512, 48, 22, 0.95);
}

/* Its 32 and 64 channels are one and two panels of AVX-512's tile, so there is less to share out.
 */
Test(shares, of_the_small_network_equal_the_plan)
{
    struct shares_case cnn = {"cnn", 28, JOB_STEM_IMAGENET, CONV_NO_WINOGRAD, JOB_PRECISION_FP32,
                              0};

    for (int e = 0; e < ENGINES; e++) {
        check_step(&cnn, e, 48, 22, 0.93);
        check_step(&cnn, e, 100, 48, e == AVX512 ? 0.92 : 0.93);
    }
}

Test(shares, steps_keep_their_threads_busy)
{
    struct shares_case small = {"resnet50",         64, JOB_STEM_IMAGENET, CONV_WINOGRAD_4,
                                JOB_PRECISION_FP32, 0};

    for (int e = 0; e < ENGINES; e++) {
        check_nodes("resnet50", CONV_WINOGRAD_4, e);
        check_nodes("resnet50", CONV_NO_WINOGRAD, e);
        check_nodes("resnet18", CONV_WINOGRAD_2, e);
        check_nodes("resnext50_32x4d", CONV_WINOGRAD_4, e);
        check_step(&small, e, 48, 22, 0.85);
        check_step(&small, e, 48, 48, 0.74);
    }
}

/* Of the update alone, and of the norms before it, which are made of larger pieces. */
static void check_update(enum job_optimizer name, int threads, double wanted)
{
    static struct shares_step step;
    struct job_spec spec = {
        .optimizer = {.name = name, .momentum = 0.9}
    };
    struct model_config config = {.arch = arch_find("resnet18"),
                                  .classes = 1000,
                                  .image_size = 32,
                                  .batch = 1,
                                  .threads = threads};
    struct team_watch watch = {true, shares_add, &step};
    struct optimizer *o;
    struct model *m;
    struct error e;

    cr_assert_eq(model_create(&config, &m, &e), 0);
    cr_assert_eq(optimizer_create(m, &spec, 0.1, &o, &e), 0);
    step = (struct shares_step){.flops = shares_flops[JOB_PRECISION_FP32]};
    team_watch = &watch;
    optimizer_step(o, 0.1);
    team_watch = NULL;
    for (int i = 0; i < step.count; i++) {
        const struct shares_team *t = &step.team[i];
        cr_expect_leq(t->most_bytes * threads / t->bytes, wanted, "%s on %d threads: %.3f",
                      optimizer_kind_at((size_t)name)->name, threads,
                      t->most_bytes * threads / t->bytes);
    }
    /* Weights, gradients and momentum, of which two are written; the norms read two. */
    cr_expect_eq(step.count, name == JOB_OPTIMIZER_LARS ? 2 : 1);
    cr_expect_float_eq(step.team[step.count - 1].bytes / (double)model_param_count(m), 20, 0.02);
    optimizer_destroy(o);
    model_destroy(m);
}

Test(shares, updates_are_even)
{
    check_update(JOB_OPTIMIZER_SGD, 7, 1.01);
    check_update(JOB_OPTIMIZER_SGD, 22, 1.02);
    check_update(JOB_OPTIMIZER_SGD, 48, 1.03);
    check_update(JOB_OPTIMIZER_LARS, 22, 1.25);
}

/* ---- one convolution */

struct pass {
    const struct conv *c;
    int images;
    bool back;
    float *own[96];
};

static float nowhere[1]; /* a dry run touches nothing */

static void run_pass(struct parallel_share share, void *context)
{
    struct pass *p = context;
    struct conv_memory memory = {nowhere, p->own, SIZE_MAX, SIZE_MAX, share.parts};
    struct conv_backward b = {
        .w = nowhere, .x = nowhere, .dz = nowhere, .dx = nowhere, .dw = nowhere};

    if (p->back)
        conv_backward(p->c, &b, p->images, share, &memory);
    else
        conv_forward(p->c, nowhere, nowhere, nowhere, p->images, share, &memory, NULL, NULL);
}

/* The sum of the phases' largest shares of products over the mean share. */
static double largest_share(const struct conv *c, int images, int threads, bool back)
{
    static struct shares_step step;
    struct team_watch watch = {true, shares_add, &step};
    struct pass p = {c, images, back, {nowhere}};

    for (int i = 0; i < threads; i++)
        p.own[i] = nowhere;
    step = (struct shares_step){.flops = shares_flops[JOB_PRECISION_FP32]};
    team_watch = &watch;
    parallel_team(threads, run_pass, &p);
    team_watch = NULL;
    return step.team[0].most_flops * threads / step.team[0].flops;
}

/* Rows of 14 pixels (AVX-512; fewer otherwise, so there are more) by panels, of z and dx; of dw. */
static size_t register_tiles(const struct conv *c, int images)
{
    const struct window *w = &c->window;
    size_t panel = 2 * dry_run_vec, n = (size_t)images;
    size_t z = (n * (size_t)(w->out * w->out) + 13) / 14 * ((size_t)c->out_channels / panel);
    size_t dx = (n * (size_t)(w->in * w->in) + 13) / 14 * ((size_t)w->channels / panel);
    size_t dw =
        (conv_weights(c) / (size_t)c->out_channels + 13) / 14 * ((size_t)c->out_channels / panel);
    size_t least = z < dx ? z : dx;
    return least < dw ? least : dw;
}

static int checked;

static void check_conv(const struct conv *c)
{
    static const int batches[] = {1, 2, 3, 5, 16, 31, 48, 96, 100, 256};
    static const int threads[] = {2, 3, 5, 7, 8, 11, 22, 23, 24, 48, 56, 95, 96};

    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++)
        for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++)
            for (int back = 0; back < 2; back++) {
                if (register_tiles(c, batches[i]) < 36 * (size_t)threads[t])
                    continue;
                double share = largest_share(c, batches[i], threads[t], back);
                checked++;
                cr_expect_leq(
                    share, 1.03,
                    "(%d, %d, %d) -> %d, kernel %d, stride %d, %d images, %d threads, %s, "
                    "vectors of %zu: the largest share is %.3f times the mean",
                    c->window.in, c->window.in, c->window.channels, c->out_channels,
                    c->window.kernel, c->window.stride, batches[i], threads[t],
                    back ? "backward" : "forward", dry_run_vec, share);
            }
}

static void check_layer(const struct arch_conv *a, void *context)
{
    (void)context;
    struct conv c = conv_make(a->in_size, a->in_channels, a->out_channels, a->kernel, a->stride,
                              a->padding, a->groups);
    conv_choose_gemm(&c, JOB_GEMM_OWN);
    if (a->in_channels % (int)(2 * dry_run_vec) == 0)
        check_conv(&c);
}

Test(shares, are_even_for_any_batch_where_there_are_enough_register_tiles)
{
    struct arch_shape shape = {.arch = arch_find("resnet50"), .classes = 1000, .image_size = 224};

    for (int e = 0; e < ENGINES; e++) {
        checked = 0;
        dry_run_vec = engines[e].vec;
        arch_each_conv(&shape, check_layer, NULL);
        cr_assert_gt(checked, 3000, "%d were checked with %s", checked, engines[e].name);
    }
    dry_run_vec = 0;
}
