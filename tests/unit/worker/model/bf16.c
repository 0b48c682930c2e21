/* Models with precision bf16. tests/golden/bf16.sh compares their gradients with PyTorch's. */
#include "tests/unit/worker/compare.h"
#include "tests/unit/worker/tiny.h"
#include "worker/kernels/bf16.h"
#include "worker/model/forward_backward.h"
#include "worker/model/model.h"
#include "worker/model/weights.h"

enum { SIZE = TINY_SIZE, BATCH = TINY_BATCH, CLASSES = TINY_CLASSES };

/* Sanitizers see two stages of each, a tenth of the weights, with groups of two widths. */
enum { WHOLE = ONE_OF == 1 };
static const struct arch tiny_uneven =
    TINY_ARCH(.bottleneck = true, .blocks = {1, 2, WHOLE, WHOLE});
static const struct arch tiny_groups = {
    .name = "tiny_groups",
    .bottleneck = true,
    .blocks = {1, 1, WHOLE, WHOLE},
    .groups = 32,
    .width_per_group = 4
};

static struct model_config bf16_config_of(const struct arch *arch, int threads)
{
    struct model_config c = tiny_config(arch, threads);

    c.width = arch->groups == 1 ? 0.5 : 1; /* groups have no fewer than 4 channels */
    c.precision = JOB_PRECISION_BF16;
    return c;
}

/* Branches that add little: otherwise a random network amplifies every rounding. */
static void bf16_calm(struct model *m)
{
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const struct model_tensor *t = model_tensor(m, i);
        for (size_t k = 0; strstr(t->name, "bn3.weight") && k < t->count; k++)
            model_params(m)[t->offset + k] = 0.1f;
    }
}

/* Gradients and running statistics of a step; the caller frees them. */
struct step {
    double loss;
    float *gradients, *stats;
    size_t count, stat_count;
};

static struct step step_of(const struct model_config *c)
{
    struct model *m = tiny_model(c);
    size_t floats = (size_t)BATCH * SIZE * SIZE * 3;
    float *x = noise(floats, 4);
    bf16 *half = malloc(floats * sizeof *half);
    struct step s = {.count = model_param_count(m), .stat_count = model_stat_count(m)};

    bf16_calm(m);
    bf16_from_floats(x, floats, half);
    for (size_t i = 0; i < model_tensor_count(m); i++)
        for (size_t k = 0; k < model_tensor(m, i)->count; k++)
            model_grads(m)[model_tensor(m, i)->offset + k] = NAN;
    s.loss = model_forward(m, c->bf16_images ? (void *)half : x, tiny_labels, BATCH, NULL);
    model_backward(m, 1, false, NULL, NULL);
    s.gradients = copy_of(model_grads(m), s.count);
    s.stats = copy_of(model_stats(m), s.stat_count);
    free(half);
    free(x);
    model_destroy(m);
    return s;
}

static void bf16_model_drop(struct step s)
{
    free(s.gradients);
    free(s.stats);
}

static double distance(const struct step *a, const struct step *b)
{
    double off = 0, size = 0;
    for (size_t i = 0; i < a->count; i++) {
        off += pow(a->gradients[i] - b->gradients[i], 2);
        size += pow(b->gradients[i], 2);
    }
    return sqrt(off / size);
}

static void check_same(const struct arch *arch, bool blur_pool, enum bf16_kind one,
                       enum bf16_kind other)
{
    struct model_config c = bf16_config_of(arch, 2);

    c.blur_pool = blur_pool;
    if (!bf16_use(one) || !bf16_use(other))
        cr_skip_test("this processor has no %s", bf16_kind_name(one));
    struct step b = step_of(&c);
    bf16_use(one);
    struct step a = step_of(&c);
    cr_assert_eq(a.loss, b.loss);
    cr_assert_arr_eq(a.gradients, b.gradients, a.count * sizeof(float));
    cr_assert_arr_eq(a.stats, b.stats, a.stat_count * sizeof(float));
    bf16_model_drop(a);
    bf16_model_drop(b);
}

Test(bf16_model, computes_the_same_bits_again)
{
    check_same(&tiny_short, false, bf16_kind(), bf16_kind());
    check_same(&tiny_short, true, bf16_kind(), bf16_kind());
}

Test(bf16_model, accepts_images_rounded_to_bf16)
{
    struct model_config c = bf16_config_of(&tiny_groups, 2);
    struct step want = step_of(&c);

    c.bf16_images = true;
    struct step have = step_of(&c);
    cr_assert_eq(have.loss, want.loss);
    cr_assert_arr_eq(have.gradients, want.gradients, want.count * sizeof(float));
    bf16_model_drop(have);
    bf16_model_drop(want);
}

Test(bf16_model, computes_the_same_bits_by_tiles_and_emulated)
{
    check_same(&tiny_uneven, true, BF16_AMX, BF16_EMULATED);
    check_same(&tiny_groups, false, BF16_AMX, BF16_EMULATED);
}

static void check_near_fp32(bool blur_pool)
{
    struct model_config c = bf16_config_of(&tiny_uneven, 1), whole;
    c.blur_pool = blur_pool;
    whole = c;
    whole.precision = JOB_PRECISION_FP32;
    struct step want = step_of(&whole);

    for (int kind = 0; kind < BF16_KINDS; kind++) {
        if (!bf16_use((enum bf16_kind)kind))
            continue;
        for (c.threads = 1; c.threads < 9; c.threads *= 2 * ONE_OF) {
            struct step have = step_of(&c);
            cr_assert_float_eq(have.loss, want.loss, 0.02 * want.loss, "%g", have.loss);
            cr_assert_lt(distance(&have, &want), 0.25, "%s, %d threads: %g",
                         bf16_kind_name((enum bf16_kind)kind), c.threads, distance(&have, &want));
            assert_close(have.stats, want.stats, want.stat_count, 0.01, "running statistics");
            bf16_model_drop(have);
        }
    }
    bf16_model_drop(want);
}

Test(bf16_model, is_near_fp32_with_every_kernel)
{
    check_near_fp32(false);
    check_near_fp32(true);
}

/* Of 6 images by 5 threads, whose lines begin and end within images: a few roundings turn out
 * otherwise, as the sums of batch norm are of other parts; 0.05 apart, as with whole images. */
Test(bf16_model, threads_that_share_images_agree_with_one_thread)
{
    struct model_config c = bf16_config_of(&tiny_groups, 1);
    struct step want = step_of(&c);

    c.threads = 5;
    struct step have = step_of(&c);
    cr_assert_float_eq(have.loss, want.loss, 2e-3 * want.loss, "%g", have.loss);
    cr_assert_lt(distance(&have, &want), 0.1, "%g", distance(&have, &want));
    bf16_model_drop(have);
    bf16_model_drop(want);
}

/* At 32 pixels the last stage has images of one pixel, and 3x3 kernels whose border sees nothing.
 */
Test(bf16_model, taps_that_only_see_padding_have_no_gradient)
{
    struct model_config c = bf16_config_of(&tiny, 1);

    c.image_size = 32;
    for (; c.threads < 9; c.threads += 3) {
        struct model *m = tiny_model(&c);
        struct step s = step_of(&c);
        for (size_t i = 0; i < model_tensor_count(m); i++) {
            const struct model_tensor *t = model_tensor(m, i);
            size_t tap = t->count / 9;
            for (size_t k = 0; !strcmp(t->name, "layer4.0.conv2.weight") && k < t->count; k++)
                if (k / tap / 3 == 0 || k / tap % 3 == 0)
                    cr_assert_eq(s.gradients[t->offset + k], 0, "%d threads, %zu", c.threads, k);
                else
                    cr_assert(isfinite(s.gradients[t->offset + k]));
        }
        bf16_model_drop(s);
        model_destroy(m);
    }
}

/* Rounding of one step grows where sums are in another order, as between two kinds of instructions;
 * more threads than images, lines or panels leave some without work. Sanitizers see the first. */
Test(bf16_model, any_number_of_threads_agrees_with_one_thread)
{
    static const int threads[] = {48, 22, 7, 3, 2};
    struct model_config c = bf16_config_of(&tiny_uneven, 1);
    struct step want = step_of(&c);

    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i += ONE_OF) {
        c.threads = threads[i];
        struct step have = step_of(&c);
        cr_expect_float_eq(have.loss, want.loss, 0.01 * want.loss, "%d threads: %g, not %g",
                           threads[i], have.loss, want.loss);
        cr_expect_lt(distance(&have, &want), 0.1, "%d threads: %g", threads[i],
                     distance(&have, &want));
        bf16_model_drop(have);
    }
    bf16_model_drop(want);
}

/* The teams' threads come in another order each time, the more so as they are more than cores. */
Test(bf16_model, many_threads_compute_the_same_bits_ten_times)
{
    struct model_config c = bf16_config_of(&tiny_uneven, 22);
    struct step want = step_of(&c);

    for (int run = 1; run < 10; run += ONE_OF) {
        struct step have = step_of(&c);
        cr_assert_eq(have.loss, want.loss, "run %d", run);
        cr_assert_arr_eq(have.gradients, want.gradients, want.count * sizeof(float), "run %d", run);
        cr_assert_arr_eq(have.stats, want.stats, want.stat_count * sizeof(float), "run %d", run);
        bf16_model_drop(have);
    }
    bf16_model_drop(want);
}

Test(bf16_model, accumulates_gradients)
{
    struct model_config c = bf16_config_of(&tiny_short, 1);
    struct model *m = tiny_model(&c);
    float *x = noise((size_t)BATCH * SIZE * SIZE * 3, 4);

    model_forward(m, x, tiny_labels, BATCH, NULL);
    model_backward(m, 1, false, NULL, NULL);
    float *once = copy_of(model_grads(m), model_param_count(m));
    model_forward(m, x, tiny_labels, BATCH, NULL);
    model_backward(m, 1, true, NULL, NULL);
    for (size_t i = 0; i < model_param_count(m); i++)
        once[i] *= 2;
    assert_close(model_grads(m), once, model_param_count(m), 1e-5, "twice the gradients");
    free(once);
    free(x);
    model_destroy(m);
}

Test(bf16_model, predicts_an_image_alike_in_any_batch)
{
    struct model_config c = bf16_config_of(&tiny_short, 2);
    c.inference = true;
    struct model *m = tiny_model(&c);
    float *x = noise((size_t)BATCH * SIZE * SIZE * 3, 4), all[BATCH * CLASSES], one[CLASSES];

    model_predict(m, x, BATCH, all);
    for (size_t i = 0; i < BATCH; i++) {
        model_predict(m, x + i * SIZE * SIZE * 3, 1, one);
        assert_close(one, all + i * CLASSES, CLASSES, 1e-6, "image %zu", i);
    }
    free(x);
    model_destroy(m);
}

Test(bf16_model, keeps_activations_in_half_the_memory)
{
    struct model_config c = bf16_config_of(&tiny_short, 1), whole = c;
    c.batch = whole.batch = 64;
    whole.precision = JOB_PRECISION_FP32;
    struct model *have = tiny_model(&c), *want = tiny_model(&whole);
    double parameters = 2.0 * (double)model_param_count(have) * sizeof(float);

    cr_assert_lt((double)model_memory_bytes(have) - parameters,
                 0.6 * ((double)model_memory_bytes(want) - parameters));
    model_destroy(have);
    model_destroy(want);
}

Test(bf16_model, refuses_unsupported_networks_by_name)
{
    struct model_config narrow = bf16_config_of(&tiny_uneven, 1),
                        cnn = bf16_config_of(arch_find("cnn"), 1);
    struct error e;
    struct model *m;

    narrow.width = 0.75;
    cr_assert_eq(model_create(&narrow, &m, &e), -(int)ERR_UNSUPPORTED);
    cr_assert(strstr(e.text, "layer1.0.conv1") && strstr(e.text, "multiples of 32"), "%s", e.text);
    cr_assert_eq(model_create(&cnn, &m, &e), -(int)ERR_UNSUPPORTED);
    cr_assert(strstr(e.text, "\"cnn\""), "%s", e.text);
}
