/* The bytes that passes move at least: against a count by hand, and against the kernels' own counts
 * (team/dry_run.h) where these work on whole tensors. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/worker/compare.h"
#include "worker/model/forward_backward.h"
#include "worker/model/units.h"
#include "worker/team/dry_run.h"

enum { IMAGES = 3, TEAMS_MAX = 1024 };

struct counts {
    int teams;
    double kernels[TEAMS_MAX], products[TEAMS_MAX], moved[TEAMS_MAX];
    const struct model *m;
};

/* A team's pass is counted after the team has ended, so before the next one. */
static void count_team(int parts, const struct dry_run *shares, double seconds, void *context)
{
    struct counts *c = context;

    (void)seconds;
    cr_assert_lt(c->teams, TEAMS_MAX);
    c->moved[c->teams] = c->m->moved_bytes;
    for (int i = 0; i < parts; i++)
        for (int k = 0; k <= shares[i].phases; k++) {
            c->kernels[c->teams] += shares[i].phase[k].bytes;
            c->products[c->teams] += shares[i].phase[k].flops;
        }
    c->teams++;
}

/* A step whose kernels only count, or an evaluation. Returns the bytes of an image. */
static double count_step(const char *arch, int image_size, int threads,
                         enum job_precision precision, bool evaluates, struct counts *c)
{
    struct model_config config = {.arch = arch_find(arch),
                                  .stem = JOB_STEM_IMAGENET,
                                  .classes = 10,
                                  .image_size = image_size,
                                  .batch = IMAGES,
                                  .inference = evaluates,
                                  .threads = threads,
                                  .bn_momentum = 0.1,
                                  .precision = precision};
    struct team_watch watch = {true, count_team, c};
    static float logits[IMAGES * 10];
    int32_t labels[IMAGES] = {0};
    float *images = calloc((size_t)(IMAGES * image_size * image_size * 3), sizeof *images);
    struct model *m;
    struct error e;

    memset(c, 0, sizeof *c);
    team_watch = &watch;
    cr_assert_eq(model_create(&config, &m, &e), 0);
    c->m = m;
    cr_expect(isnan(model_bytes_per_image(m)), "without an image there is no mean");
    c->teams = 0;
    if (evaluates)
        model_predict(m, images, IMAGES, logits);
    else
        model_forward(m, images, labels, IMAGES, NULL);
    if (!evaluates)
        model_backward(m, 1, false, NULL, NULL);
    team_watch = NULL;
    double bytes = model_bytes_per_image(m);
    c->moved[c->teams] = m->moved_bytes;
    model_destroy(m);
    free(images);
    return bytes;
}

/* Batch norm's passes forward of a bottleneck network are those teams without products whose
 * kernels work on nothing twice. */
static void check_against_kernels(enum job_precision precision, int threads)
{
    static struct counts c;
    int equal = 0;

    count_step("resnet50", 64, threads, precision, false, &c);
    for (int i = 0; i < c.teams; i++) {
        double moved = c.moved[i + 1] - c.moved[i];
        cr_expect_gt(moved, 0, "team %d", i);
        equal += c.products[i] == 0 && moved == c.kernels[i];
    }
    cr_expect_geq(equal, 49, "%d", equal);
}

Test(traffic, of_batch_norm_is_what_its_kernels_move)
{
    for (int threads = 1; threads < 4; threads += 2) {
        check_against_kernels(JOB_PRECISION_FP32, threads);
        check_against_kernels(JOB_PRECISION_BF16, threads);
    }
}

/* The first two layers of a step by hand: conv1 reads images and weights and writes z; bn1 reads z
 * and writes y. */
Test(traffic, of_the_first_layers_by_hand)
{
    static struct counts c;
    double images = IMAGES * 64 * 64 * 3, z = IMAGES * 32 * 32 * 64, weights = 7 * 7 * 3 * 64;

    count_step("resnet18", 64, 1, JOB_PRECISION_FP32, false, &c);
    cr_expect_eq(c.moved[1] - c.moved[0], 4 * (images + z + weights));
    cr_expect_eq(c.moved[2] - c.moved[1], 4 * 2 * z);
    /* and the last one, backward: g, z and dz; images; the gradient of the weights */
    cr_expect_eq(c.moved[c.teams] - c.moved[c.teams - 1], 4 * (3 * z + images + weights));
    count_step("resnet18", 64, 1, JOB_PRECISION_BF16, false, &c);
    cr_expect_eq(c.moved[2] - c.moved[1], 2 * 2 * z);
}

Test(traffic, does_not_depend_on_threads_and_halves_with_bf16)
{
    static struct counts c;
    double one = count_step("resnet50", 224, 1, JOB_PRECISION_FP32, false, &c);
    double half = count_step("resnet50", 224, 1, JOB_PRECISION_BF16, false, &c);
    double evaluation = count_step("resnet50", 224, 1, JOB_PRECISION_FP32, true, &c);
    double weights = 4 * 3 * 23.5e6 / IMAGES; /* forward, for dx and their gradient */

    cr_expect_float_eq(count_step("resnet50", 224, 5, JOB_PRECISION_FP32, false, &c), one, 1);
    cr_expect_float_eq((half - weights) / (one - weights), 0.5, 0.01);
    cr_expect_lt(evaluation, one / 4);
    cr_expect_float_eq(one - weights, 0.554e9, 0.005e9, "doc/engine.md has %.0f", one - weights);
    cr_expect_float_eq(count_step("cnn", 28, 1, JOB_PRECISION_FP32, false, &c),
                       count_step("cnn", 28, 3, JOB_PRECISION_FP32, false, &c), 1);
}
