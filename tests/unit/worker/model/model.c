#include <limits.h>
#include <unistd.h>

#include "common/run/weights.h"
#include "tests/unit/worker/compare.h"
#include "tests/unit/worker/tiny.h"
#include "worker/model/forward_backward.h"
#include "worker/model/init.h"
#include "worker/model/weights.h"

enum { SIZE = TINY_SIZE, BATCH = TINY_BATCH, CLASSES = TINY_CLASSES };

/* Basic blocks, with and without a convolution of their input. */
static const struct arch tiny_uneven = TINY_ARCH(.blocks = {2, 1});

/* Of half the width: on so few images most of a step goes to the weights. */
static struct model_config config_of(const struct arch *arch, int threads)
{
    struct model_config c = tiny_config(arch, threads);

    c.width = 0.5;
    c.label_smoothing = 0.1;
    return c;
}

static struct model *make_tiny(const struct arch *arch, int threads)
{
    struct model_config c = config_of(arch, threads);
    return tiny_model(&c);
}

static struct model *make_short(int threads)
{
    return make_tiny(&tiny_short, threads);
}

static float *images(void)
{
    return noise((size_t)BATCH * SIZE * SIZE * 3, 4);
}

static double loss_at(struct model *m, const float *x, float *at, const float *from,
                      const float *direction, size_t n, double step)
{
    for (size_t i = 0; i < n; i++)
        at[i] = (float)(from[i] + step * direction[i]);
    return model_forward(m, x, tiny_labels, BATCH, NULL);
}

/* The slope of the loss along a tensor's own gradient is the gradient's norm. The step is such that
 * the loss moves by twice the change: far above what float rounds, far below where it bends. */
static void check_tensor_by(struct model *m, const float *x, const struct model_tensor *t,
                            double change)
{
    float *at = model_params(m) + t->offset, *from = copy_of(at, t->count);
    float *g = copy_of(model_grads(m) + t->offset, t->count);
    double squares = 0;

    for (size_t i = 0; i < t->count; i++)
        squares += (double)g[i] * g[i];
    double step = change / squares;
    double slope =
        (loss_at(m, x, at, from, g, t->count, step) - loss_at(m, x, at, from, g, t->count, -step)) /
        (2 * step);
    cr_assert(fabs(slope / squares - 1) < 0.03, "%s: slope %g, squared gradient %g", t->name, slope,
              squares);
    memcpy(at, from, t->count * sizeof *at);
    free(from);
    free(g);
}

/* Gives a model whose batch norm is frozen the statistics of the images. */
static void use_statistics_of(struct model *m, const struct model_config *c, const float *x)
{
    struct model_config learns = *c;

    learns.frozen_bn = false;
    learns.bn_momentum = 1;
    struct model *other = tiny_model(&learns);
    model_forward(other, x, tiny_labels, BATCH, NULL);
    memcpy(model_stats(m), model_stats(other), model_stat_count(m) * sizeof(float));
    model_destroy(other);
}

static void check_gradients(const struct arch *arch, enum job_stem stem, int size, bool frozen,
                            enum job_gemm gemm, bool blur_pool)
{
    struct model_config c = config_of(arch, 1);
    c.blur_pool = blur_pool;
    c.gemm = gemm;
    c.stem = stem;
    c.width = stem == JOB_STEM_SMALL ? 1 : 0.5; /* the narrow one has a kink within the step */
    c.image_size = size;
    c.frozen_bn = frozen;
    struct model *m = tiny_model(&c);
    float *x = images();
    double change =
        stem == JOB_STEM_SMALL || blur_pool ? 0.0005 : 0.002; /* few layers bend it soon */

    if (frozen)
        use_statistics_of(m, &c, x);
    model_forward(m, x, tiny_labels, BATCH, NULL);
    model_backward(m, 1, false, NULL, NULL);
    for (size_t i = 0; i < model_tensor_count(m); i += ONE_OF)
        if (model_tensor(m, i)->kind < MODEL_BN_MEAN)
            check_tensor_by(m, x, model_tensor(m, i), change);
    free(x);
    model_destroy(m);
}

Test(model, gradients_of_every_tensor_equal_finite_differences)
{
    check_gradients(&tiny, JOB_STEM_IMAGENET, SIZE, false, JOB_GEMM_OWN, false);
}

/* Of every tensor, against those of the engine's own products, which are checked above. */
Test(model, gradients_by_openblas)
{
    static const enum job_gemm gemm[2] = {JOB_GEMM_OWN, JOB_GEMM_OPENBLAS};
    struct model_config c = config_of(&tiny, 1);
    struct model *m[2];
    float *x = images();

    for (int i = 0; i < 2; i++) {
        c.gemm = gemm[i];
        m[i] = tiny_model(&c);
        model_forward(m[i], x, tiny_labels, BATCH, NULL);
        model_backward(m[i], 1, false, NULL, NULL);
    }
    for (size_t i = 0; i < model_tensor_count(m[0]); i++) {
        const struct model_tensor *t = model_tensor(m[0], i);
        const float *want = model_grads(m[0]) + t->offset, *have = model_grads(m[1]) + t->offset;
        double difference = 0, norm = 0;
        for (size_t k = 0; t->kind < MODEL_BN_MEAN && k < t->count; k++) {
            difference += pow((double)have[k] - want[k], 2);
            norm += pow(want[k], 2);
        }
        cr_assert(difference <= 0.001 * 0.001 * norm, "%s differs by %g", t->name,
                  sqrt(difference / norm));
    }
    free(x);
    model_destroy(m[0]);
    model_destroy(m[1]);
}

Test(model, gradients_with_frozen_batch_norm)
{
    check_gradients(&tiny, JOB_STEM_IMAGENET, SIZE, true, JOB_GEMM_AUTO, false);
}

Test(model, gradients_of_basic_blocks_and_the_small_stem)
{
    check_gradients(&tiny_uneven, JOB_STEM_SMALL, 32, false, JOB_GEMM_AUTO, false);
}

/* The filter is before the 3x3, the first 1x1 or a basic block's first 3x3, and in the shortcut. */
Test(model, gradients_with_low_pass_filters)
{
    static const struct arch v1 =
        TINY_ARCH(.bottleneck = true, .blocks = {1, 1, 1, 1}, .stride_in_1x1 = true);

    check_gradients(&tiny, JOB_STEM_IMAGENET, SIZE, false, JOB_GEMM_OWN, true);
    check_gradients(&v1, JOB_STEM_IMAGENET, SIZE, false, JOB_GEMM_OWN, true);
    check_gradients(&tiny_uneven, JOB_STEM_SMALL, 32, false, JOB_GEMM_AUTO, true);
}

static void check_threads(bool blur_pool)
{
    struct model_config config[2] = {config_of(&tiny, 1), config_of(&tiny, 2)};
    config[0].blur_pool = config[1].blur_pool = blur_pool;
    struct model *m[3] = {tiny_model(&config[0]), tiny_model(&config[1]), tiny_model(&config[1])};
    float *x = images();
    double loss[3];

    for (int i = 0; i < 3; i++) {
        loss[i] = model_forward(m[i], x, tiny_labels, BATCH, NULL);
        model_backward(m[i], 1, false, NULL, NULL);
    }
    cr_assert_float_eq(loss[0], loss[1], 1e-5 * loss[0]);
    cr_assert_eq(loss[1], loss[2]);
    cr_assert(
        !memcmp(model_grads(m[1]), model_grads(m[2]), model_param_count(m[1]) * sizeof(float)));
    cr_assert(
        !memcmp(model_stats(m[1]), model_stats(m[2]), model_stat_count(m[1]) * sizeof(float)));
    assert_close(model_stats(m[0]), model_stats(m[1]), model_stat_count(m[0]), 1e-5, "statistics");
    double difference = 0, norm = 0;
    for (size_t i = 0; i < model_param_count(m[0]); i++) {
        difference += pow((double)model_grads(m[0])[i] - model_grads(m[1])[i], 2);
        norm += pow(model_grads(m[0])[i], 2);
    }
    cr_assert(sqrt(difference / norm) < 2e-2, "gradients differ by %g", sqrt(difference / norm));
    free(x);
    for (int i = 0; i < 3; i++)
        model_destroy(m[i]);
}

/* The same bits each time; with another number of threads the same numbers but for rounding. */
Test(model, is_deterministic_and_threads_agree)
{
    check_threads(false);
    check_threads(true);
}

Test(model, accumulates_and_scales_gradients)
{
    struct model_config c = config_of(&tiny_short, 2);
    c.frozen_bn = true;
    struct model *m = tiny_model(&c);
    float *x = images();

    model_forward(m, x, tiny_labels, BATCH, NULL);
    model_backward(m, 1, false, NULL, NULL);
    float *once = copy_of(model_grads(m), model_param_count(m));
    for (size_t i = 0; i < model_param_count(m); i++)
        once[i] *= 1.5f;
    model_forward(m, x, tiny_labels, BATCH, NULL);
    model_backward(m, 0.5, true, NULL, NULL);
    assert_close(model_grads(m), once, model_param_count(m), 1e-5, "gradient and a half");
    free(once);
    free(x);
    model_destroy(m);
}

static void take_range(size_t offset, size_t count, void *context)
{
    size_t *end = context;
    cr_assert_eq(offset + count, *end, "ranges come from the end without holes");
    *end = offset;
}

/* ---- model.freeze */

static void check_frozen(const struct model_config *whole, int parts, const float *x)
{
    struct model_config c = *whole;
    size_t end;

    c.frozen = parts;
    struct model *m = tiny_model(&c), *all = tiny_model(whole);
    size_t first = model_first_trained(m), count = model_param_count(m);
    end = count;
    double loss = model_forward(all, x, tiny_labels, BATCH, NULL);
    model_backward(all, 1, false, NULL, NULL);
    for (int times = 0; times < 2; times++) { /* the second adds */
        cr_expect_float_eq(model_forward(m, x, tiny_labels, BATCH, NULL), loss, 1e-5 * loss);
        model_backward(m, 0.5, times, times ? NULL : take_range, &end);
    }
    cr_expect_eq(end, first, "%d parts: gradients end at %zu instead of %zu", parts, end, first);
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const struct model_tensor *t = model_tensor(m, i);
        const float *have = model_grads(m) + t->offset, *want = model_grads(all) + t->offset;
        double difference = 0, norm = 0;
        if (t->kind >= MODEL_BN_MEAN || t->offset < first)
            continue;
        for (size_t k = 0; k < t->count; k++) {
            difference += pow((double)have[k] - want[k], 2);
            norm += pow(want[k], 2);
        }
        double most = c.precision == JOB_PRECISION_BF16 ? 0.01 : 1e-4;
        cr_expect(sqrt(difference) <= most * sqrt(norm), "%d parts, %d threads: %s differs by %g",
                  parts, c.threads, t->name, sqrt(difference / norm));
    }
    cr_expect_leq(model_memory_bytes(m), model_memory_bytes(all));
    cr_expect(parts < 2 || c.arch->family == ARCH_CNN ||
              model_memory_bytes(m) < model_memory_bytes(all) - first * sizeof(float));
    model_destroy(m);
    model_destroy(all);
}

/* All networks with running statistics, so that the trained layers see the same with and without.
 */
static void check_frozen_parts(struct model_config c, int most)
{
    float *x = noise((size_t)BATCH * (size_t)c.image_size * (size_t)c.image_size * 3, 4);

    c.frozen_bn = true;
    for (c.threads = 1; c.threads <= 3; c.threads += 2)
        for (int parts = 1; parts <= most; parts += ONE_OF)
            check_frozen(&c, parts, x);
    free(x);
}

Test(model, trains_what_lies_behind_frozen_parts)
{
    struct model_config c = config_of(&tiny, 1);

    check_frozen_parts(c, 5);
    c.gemm = JOB_GEMM_OPENBLAS;
    check_frozen_parts(c, 5);
    c.gemm = JOB_GEMM_AUTO;
    c.blur_pool = true;
    check_frozen_parts(c, 5);
    c = config_of(&tiny_uneven, 1);
    c.stem = JOB_STEM_SMALL;
    c.image_size = 32;
    check_frozen_parts(c, 3);
    c.blur_pool = true;
    check_frozen_parts(c, 3);
}

Test(model, trains_what_lies_behind_frozen_parts_in_bf16)
{
    struct model_config c = config_of(&tiny, 1);

    c.precision = JOB_PRECISION_BF16;
    check_frozen_parts(c, 5);
    c.blur_pool = true;
    check_frozen_parts(c, 5);
}

static struct model *frozen_after_a_step(int parts, const float *x)
{
    struct model_config c = config_of(&tiny, 2);
    c.frozen = parts;
    struct model *m = tiny_model(&c);

    model_forward(m, x, tiny_labels, BATCH, NULL);
    model_backward(m, 1, false, NULL, NULL);
    return m;
}

Test(model, changes_only_the_running_statistics_of_trained_parts)
{
    float *x = images();
    struct model *m = frozen_after_a_step(3, x), *before = make_tiny(&tiny, 1);

    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const struct model_tensor *t = model_tensor(m, i);
        bool frozen = !strncmp(t->name, "bn1.", 4) || !strncmp(t->name, "layer1", 6) ||
                      !strncmp(t->name, "layer2", 6);
        const float *had = model_stats(before) + t->offset, *has = model_stats(m) + t->offset;
        if (t->kind >= MODEL_BN_MEAN)
            cr_expect_eq(!memcmp(had, has, t->count * sizeof *has), frozen, "%s", t->name);
    }
    free(x);
    model_destroy(m);
    model_destroy(before);
}

Test(model, announces_every_gradient_from_the_end_to_the_beginning)
{
    struct model *m = make_short(1);
    float *x = images();
    size_t end = model_param_count(m);

    model_forward(m, x, tiny_labels, BATCH, NULL);
    model_backward(m, 1, false, take_range, &end);
    cr_assert_eq(end, 0);
    free(x);
    model_destroy(m);
}

Test(model, predicts_the_same_with_little_memory_and_any_batch)
{
    struct model_config c = config_of(&tiny_short, 2);
    struct model *m = tiny_model(&c);
    c.inference = true;
    struct model *small = tiny_model(&c);
    float *x = images(), logits[2][BATCH * CLASSES];

    model_forward(m, x, tiny_labels, BATCH, NULL);
    memcpy(model_stats(small), model_stats(m), model_stat_count(m) * sizeof(float));
    model_predict(m, x, BATCH, logits[0]);
    model_predict(small, x, 4, logits[1]);
    model_predict(small, x + (size_t)4 * SIZE * SIZE * 3, 2, logits[1] + 4 * CLASSES);
    assert_close(logits[1], logits[0], BATCH * CLASSES, 1e-5, "logits");
    cr_assert_lt(model_memory_bytes(small),
                 model_memory_bytes(m) - model_param_count(m) * sizeof(float));
    free(x);
    model_destroy(m);
    model_destroy(small);
}

Test(model, a_single_value_a_channel_has_no_variance)
{
    struct model_config c = config_of(&tiny, 1);
    c.image_size = 32;
    c.batch = 1;
    struct model *m = tiny_model(&c);
    float *x = images();
    double loss = model_forward(m, x, tiny_labels, 1, NULL);
    model_backward(m, 1, false, NULL, NULL);
    cr_assert(isfinite(loss));
    for (size_t i = 0; i < model_stat_count(m); i++)
        cr_assert(isfinite(model_stats(m)[i]));
    free(x);
    model_destroy(m);
}

/* Batch norm's variance is then zero where padding does not show; denormal pixels count as zeros.
 */
Test(model, images_of_equal_pixels_give_finite_numbers)
{
    static const float values[] = {0, 1, -2.5f, 1e-40f};

    for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
        struct model *m = make_short(2);
        float *x = images();
        for (size_t i = 0; i < (size_t)BATCH * SIZE * SIZE * 3; i++)
            x[i] = values[v];
        cr_expect(isfinite(model_forward(m, x, tiny_labels, BATCH, NULL)), "%g", values[v]);
        model_backward(m, 1, false, NULL, NULL);
        for (size_t i = 0; i < model_param_count(m); i++)
            cr_assert(isfinite(model_grads(m)[i]), "gradient %zu of images of %g", i, values[v]);
        for (size_t i = 0; i < model_stat_count(m); i++)
            cr_assert(isfinite(model_stats(m)[i]), "statistic %zu of images of %g", i, values[v]);
        free(x);
        model_destroy(m);
    }
}

Test(model, a_nan_image_gives_a_nan_loss)
{
    struct model *m = make_short(1);
    float *x = images();
    x[12345] = NAN;
    cr_assert(isnan(model_forward(m, x, tiny_labels, BATCH, NULL)));
    free(x);
    model_destroy(m);
}

Test(model, initial_weights_depend_on_the_seed_alone)
{
    struct model *a = make_short(1), *b = make_short(2);
    size_t bytes = model_param_count(a) * sizeof(float);
    cr_assert(!memcmp(model_params(a), model_params(b), bytes));
    model_init(b, 2);
    cr_assert(memcmp(model_params(a), model_params(b), bytes));
    model_destroy(a);
    model_destroy(b);
}

/* The last batch norm of a block is that of zero_init_residual. */
Test(model, batch_norm_and_the_bias_of_binary_cross_entropy_start_as_configured)
{
    struct model_config c = config_of(&tiny_short, 1);
    float first[2] = {0};
    int64_t seeds[2] = {1, 1};

    c.bn_init = JOB_BN_UNIFORM;
    c.zero_init_residual = true;
    c.loss = JOB_LOSS_BCE;
    for (int k = 0; k < 2; k++) {
        struct model *m = tiny_model(&c);
        model_init(m, seeds[k]);
        for (size_t i = 0; i < model_tensor_count(m); i++) {
            const struct model_tensor *t = model_tensor(m, i);
            const float *x = model_params(m) + t->offset;
            double sum = 0, low = INFINITY, high = -INFINITY;
            if (t->kind != MODEL_BN_GAMMA && t->kind != MODEL_FC_BIAS)
                continue;
            for (size_t j = 0; j < t->count; j++) {
                sum += x[j];
                low = fmin(low, x[j]);
                high = fmax(high, x[j]);
            }
            if (t->kind == MODEL_FC_BIAS)
                cr_assert(low == high && fabs(low + log(CLASSES)) < 1e-6);
            else if (strstr(t->name, "bn3"))
                cr_assert(low == 0 && high == 0, "%s: %g to %g", t->name, low, high);
            else
                cr_assert(low >= 0 && high <= 1 && high - low > 0.8 &&
                              fabs(sum / (double)t->count - 0.5) < 0.15,
                          "%s: %g to %g, mean %g", t->name, low, high, sum / (double)t->count);
            if (!strcmp(t->name, "bn1.weight"))
                first[k] = x[0];
        }
        model_destroy(m);
    }
    cr_assert_eq(first[0], first[1]);
}

Test(model, has_the_tensors_of_resnet50)
{
    struct model_config c = config_of(arch_find("resnet50"), 1);
    c.width = 1;
    c.classes = 1000;
    c.inference = true;
    c.image_size = 32;
    struct model *m;
    struct error e;
    cr_assert_eq(model_create(&c, &m, &e), 0, "%s", e.text);
    size_t floats = 0, trainable = 0;
    for (size_t i = 0; i < model_tensor_count(m); i++)
        if (model_tensor(m, i)->kind < MODEL_BN_MEAN)
            trainable++, floats += model_tensor(m, i)->count;
    cr_assert_eq(floats, 25557032);
    cr_assert_eq(trainable, 161);
    model_destroy(m);
}

/* Forward, backward and prediction of the images' first n x size x size pixels. */
static float *all_of_a_size(struct model *m, int size, const float *x)
{
    size_t params = model_param_count(m), stats = model_stat_count(m);
    float *out = malloc((params + stats + BATCH * CLASSES) * sizeof *out);

    model_init(m, 1);
    model_use_size(m, size);
    cr_assert(isfinite(model_forward(m, x, tiny_labels, BATCH, NULL)));
    model_backward(m, 1, false, NULL, NULL);
    memcpy(out, model_grads(m), params * sizeof *out);
    memcpy(out + params, model_stats(m), stats * sizeof *out);
    model_predict(m, x, BATCH, out + params + stats);
    return out;
}

static void sizes_change_no_bit(const struct arch *arch, enum job_precision precision, int threads,
                                bool blur_pool)
{
    enum { SIZES = 3 };
    static const int sizes[SIZES] = {SIZE, 32, 48};
    struct model_config c = config_of(arch, threads);
    float *x = images(), *wanted[SIZES];

    c.precision = precision;
    c.blur_pool = blur_pool;
    if (precision == JOB_PRECISION_FP32)
        c.width = 0.25;
    struct model_config several = c;
    several.more_sizes[0] = 32;
    several.more_sizes[1] = 48;
    several.more_batches[0] = 3 * BATCH; /* places its buffers otherwise, and changes no more */
    several.eval_size = 96;
    struct model *all = tiny_model(&several);
    size_t bytes = (model_param_count(all) + model_stat_count(all) + BATCH * CLASSES) * 4;
    for (int i = 0; i < SIZES; i++) {
        c.image_size = sizes[i];
        struct model *one = tiny_model(&c);
        wanted[i] = all_of_a_size(one, c.image_size, x);
        model_destroy(one);
    }
    /* The first once more, so that it has others before it. */
    for (int i = 0; i < SIZES + 1; i++) {
        float *a = all_of_a_size(all, sizes[i % SIZES], x);
        cr_assert(!memcmp(a, wanted[i % SIZES], bytes), "%d pixels", sizes[i % SIZES]);
        free(a);
    }
    for (int i = 0; i < SIZES; i++)
        free(wanted[i]);
    free(x);
    model_destroy(all);
}

Test(model, several_sizes_are_the_models_of_each)
{
    sizes_change_no_bit(ONE_OF == 1 ? &tiny : &tiny_short, JOB_PRECISION_FP32, 2, false);
    sizes_change_no_bit(&tiny_short, JOB_PRECISION_FP32, 1, true);
    if (ONE_OF == 1) {
        sizes_change_no_bit(&tiny_short, JOB_PRECISION_FP32, 1, false);
        sizes_change_no_bit(&tiny_short, JOB_PRECISION_BF16, 2, true);
    }
}

/* Three times the images at half the width and height, in the memory of the larger size. */
Test(model, small_images_take_a_larger_batch)
{
    enum { SMALL = SIZE / 2, MORE = 3 * BATCH };
    struct model_config c = config_of(&tiny_short, 2), alone = c, two = c;
    float *x = noise((size_t)MORE * SMALL * SMALL * 3, 5);
    int32_t labels[MORE];

    for (int i = 0; i < MORE; i++)
        labels[i] = i % CLASSES;
    alone.image_size = two.more_sizes[0] = SMALL;
    alone.batch = two.more_batches[0] = MORE;
    struct model *one = tiny_model(&c), *small = tiny_model(&alone), *both = tiny_model(&two);
    cr_assert_lt(model_memory_bytes(both), model_memory_bytes(one) + model_memory_bytes(one) / 10);
    struct model *each[] = {small, both};
    for (int i = 0; i < 2; i++) {
        model_init(each[i], 1);
        model_use_size(each[i], SMALL);
        cr_assert(isfinite(model_forward(each[i], x, labels, MORE, NULL)));
        model_backward(each[i], 1, false, NULL, NULL);
    }
    cr_assert(
        !memcmp(model_grads(small), model_grads(both), model_param_count(small) * sizeof(float)));
    model_destroy(one);
    model_destroy(small);
    model_destroy(both);
    free(x);
}

/* At a size of its own, with memory for prediction alone. */
Test(model, predicts_at_a_size_of_its_own)
{
    struct model_config c = config_of(&tiny_short, 1), large = c;
    float *x = noise((size_t)BATCH * 96 * 96 * 3, 5), a[BATCH * CLASSES], b[BATCH * CLASSES];

    c.eval_size = 96;
    large.image_size = 96;
    struct model *m = tiny_model(&c), *other = tiny_model(&large);
    cr_assert_lt(model_memory_bytes(m), model_memory_bytes(other));
    model_use_size(m, 96);
    model_predict(m, x, BATCH, a);
    model_predict(other, x, BATCH, b);
    cr_assert(!memcmp(a, b, sizeof a));
    model_use_size(m, SIZE);
    cr_assert(isfinite(model_forward(m, x, tiny_labels, BATCH, NULL)));
    model_destroy(m);
    model_destroy(other);
    free(x);
}

Test(model, refuses_unsupported_configurations)
{
    struct error e;
    struct model *m;
    struct model_config c = config_of(&tiny, 1);
    c.image_size = 31;
    cr_assert_eq(model_create(&c, &m, &e), -ERR_INVALID);
    cr_assert_not_null(strstr(e.text, "at least 32"));
}

static void in_folder(char path[64])
{
    char folder[] = "/tmp/model-XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, 64, "%s/w.safetensors", folder);
}

static void remove_folder(char path[64])
{
    unlink(path);
    *strrchr(path, '/') = '\0';
    cr_assert_eq(rmdir(path), 0, "nothing but the file was left");
}

Test(weights, are_read_back_unchanged)
{
    struct model *a = make_short(1), *b = make_short(1);
    struct safetensors_meta meta = {"format", "pt"};
    struct safetensors *file;
    struct error e;
    char path[64];

    in_folder(path);
    model_init(b, 2);
    model_stats(a)[3] = 0.25f;
    cr_assert_eq(model_save(a, path, &meta, 1, &e), 0, "%s", e.text);
    cr_assert_eq(model_load(b, path, &e), 0, "%s", e.text);
    cr_assert(!memcmp(model_params(a), model_params(b), model_param_count(a) * sizeof(float)));
    cr_assert(!memcmp(model_stats(a), model_stats(b), model_stat_count(a) * sizeof(float)));
    cr_assert_eq(safetensors_open(path, &file, &e), 0);
    const struct safetensors_tensor *t = safetensors_find(file, "layer2.0.conv2.weight");
    cr_assert(t && t->dims == 4 && t->shape[0] == 64 && t->shape[1] == 64 && t->shape[2] == 3);
    t = safetensors_find(file, "layer2.0.downsample.1.num_batches_tracked");
    cr_assert(t && t->dtype == SAFETENSORS_I64 && t->dims == 0);
    cr_assert_str_eq(safetensors_metadata(file, "format"), "pt");
    safetensors_close(file);
    remove_folder(path);
    model_destroy(a);
    model_destroy(b);
}

Test(weights, another_class_count_is_refused_with_the_right_one)
{
    struct model_config c = config_of(&tiny_short, 1);
    struct model *a = tiny_model(&c);
    struct error e;
    char path[64];

    c.classes = 7;
    struct model *b = tiny_model(&c);
    float *before = copy_of(model_params(b), model_param_count(b));
    in_folder(path);
    cr_assert_eq(model_save(a, path, NULL, 0, &e), 0);
    cr_assert_eq(model_load(b, path, &e), -ERR_INVALID);
    cr_assert_not_null(strstr(e.text, "set model.classes to 5"), "%s", e.text);
    cr_assert(!memcmp(before, model_params(b), model_param_count(b) * sizeof(float)),
              "model unchanged");
    free(before);
    remove_folder(path);
    model_destroy(a);
    model_destroy(b);
}

Test(weights, tensors_of_another_network_are_named)
{
    struct model_config c = config_of(&tiny, 1), d = config_of(&tiny_uneven, 1);
    struct model *a = tiny_model(&c), *b = tiny_model(&d);
    struct error e;
    char path[64];

    in_folder(path);
    cr_assert_eq(model_save(a, path, NULL, 0, &e), 0);
    cr_assert_eq(model_load(b, path, &e), -ERR_INVALID);
    cr_assert_not_null(strstr(e.text, "layer1.1.conv1.weight is missing"), "%s", e.text);
    cr_assert_not_null(
        strstr(e.text, "layer1.0.conv1.weight has shape (32, 64, 1, 1) instead of (32, 64, 3, 3)"),
        "%s", e.text);
    cr_assert_not_null(strstr(e.text, "more"), "%s", e.text);
    remove_folder(path);
    cr_assert_eq(model_load(b, "/nowhere/w", &e), -ERR_NOT_FOUND);
    model_destroy(a);
    model_destroy(b);
}

/* Writes a model's weights as PyTorch's wrappers would, without what begins with `but`. */
struct wrapped {
    const struct model *m;
    size_t from[256], count;
    struct safetensors_tensor tensors[256];
    char names[256][96];
};

static void fill_wrapped(size_t i, void *data, void *context)
{
    const struct wrapped *w = context;
    model_tensor_export(w->m, w->from[i], data);
}

static void save_wrapped(const struct model *m, const char *prefix, const char *but,
                         const char *path)
{
    struct wrapped w = {.m = m};
    struct error e;

    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const struct model_tensor *t = model_tensor(m, i);
        if (but && !strncmp(t->name, but, strlen(but)))
            continue;
        snprintf(w.names[w.count], sizeof w.names[0], "%s%s", prefix, t->name);
        w.tensors[w.count] = (struct safetensors_tensor){.name = w.names[w.count], .dims = t->dims};
        memcpy(w.tensors[w.count].shape, t->shape, sizeof t->shape);
        w.from[w.count++] = i;
    }
    cr_assert_eq(safetensors_write(path, w.tensors, w.count, NULL, 0, fill_wrapped, &w, &e), 0);
}

/* Loads path into a network of these classes; returns what it says of the classifier. */
static const char *begin_with(struct model *m, int classes, const char *path, int status)
{
    static char text[ERROR_TEXT_BYTES];
    static struct error e;
    struct job_spec spec = {
        .model = {.arch = (char *)"resnet50", .width = 0.5, .classes = classes, .image_size = 64}
    };
    struct safetensors *file;
    char found[PATH_MAX];

    *text = '\0';
    cr_assert_eq(weights_open(path, found, &file, &e), 0, "%s", e.text);
    const char *classifier = weights_new_classifier(&spec, file, text);
    cr_expect_eq(model_load_file(m, file, path, classifier, &e), status, "%s", e.text);
    safetensors_close(file);
    return status ? e.text : text;
}

static bool same_tensor(struct model *a, struct model *b, const char *name)
{
    for (size_t i = 0; i < model_tensor_count(a); i++)
        if (!strcmp(model_tensor(a, i)->name, name))
            return model_tensor(a, i)->count == model_tensor(b, i)->count &&
                   !memcmp(model_params(a) + model_tensor(a, i)->offset,
                           model_params(b) + model_tensor(b, i)->offset,
                           model_tensor(a, i)->count * sizeof(float));
    return false;
}

Test(weights, begin_a_training_of_other_classes_with_a_new_classifier)
{
    struct model_config c = config_of(&tiny, 1);
    struct model *a = tiny_model(&c), *seven[2];
    char path[64];

    c.classes = 7;
    for (int i = 0; i < 2; i++)
        seven[i] = tiny_model(&c);
    model_init(a, 5);
    in_folder(path);
    save_wrapped(a, "module._orig_mod.module.", NULL, path);
    cr_expect_str_eq(begin_with(seven[0], 7, path, 0),
                     "the weights of model.init have a classifier (fc) for 5 classes, the job has "
                     "7: it starts with random weights");
    cr_expect(same_tensor(seven[0], a, "layer4.0.conv3.weight"));
    cr_expect(same_tensor(seven[0], seven[1], "fc.weight"), "as drawn");
    cr_expect(same_tensor(seven[0], seven[1], "fc.bias"));
    save_wrapped(a, "_orig_mod.", "fc.", path);
    model_init(seven[0], 1);
    cr_expect_str_eq(begin_with(seven[0], 7, path, 0),
                     "the weights of model.init have no classifier (fc): it starts with random "
                     "weights");
    cr_expect(same_tensor(seven[0], a, "conv1.weight"));
    cr_expect(same_tensor(seven[0], seven[1], "fc.weight"), "as drawn");
    save_wrapped(a, "", "fc.bias", path);
    cr_expect_not_null(
        strstr(begin_with(seven[0], 7, path, -ERR_INVALID), "fc.weight is for 5 classes"));
    save_wrapped(a, "", "conv1", path);
    cr_expect_not_null(
        strstr(begin_with(seven[0], 7, path, -ERR_INVALID), "conv1.weight is missing"));
    remove_folder(path);
    model_destroy(a);
    model_destroy(seven[0]);
    model_destroy(seven[1]);
}

/* The planner's list of a network's tensors against what the engine writes, for each kind of block.
 */
Test(weights, are_loaded_by_the_job_that_names_them)
{
    static const char *const archs[] = {"resnet18", "resnet50", "resnext50_32x4d"};

    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i += ONE_OF) {
        struct job_spec spec = {
            .model = {
                      .arch = (char *)archs[i], .stem = JOB_STEM_SMALL, .classes = 5, .image_size = 32}
        };
        struct model_config c = tiny_config(arch_find(archs[i]), 1);
        struct problems problems = {0};
        struct error e;
        char path[64];
        c.stem = JOB_STEM_SMALL;
        c.image_size = 32;
        c.batch = 1;
        struct model *m;
        cr_assert_eq(model_create(&c, &m, &e), 0, "%s", e.text);
        in_folder(path);
        cr_assert_eq(model_save(m, path, NULL, 0, &e), 0, "%s", e.text);
        spec.model.init = path;
        weights_check(&spec, false, &problems);
        cr_expect_eq(problems.count, 0, "%s", archs[i]);
        spec.model.classes = 6;
        weights_check(&spec, false, &problems);
        cr_expect_eq(problems.count, 0, "a training draws another classifier");
        spec.mode = JOB_MODE_EVAL;
        weights_check(&spec, false, &problems);
        cr_assert_eq(problems.count, 1);
        cr_expect_not_null(strstr(problems.items[0].message, "set model.classes to 5"), "%s",
                           problems.items[0].message);
        problems_clear(&problems);
        remove_folder(path);
        model_destroy(m);
    }
}

/* ---- cnn */

enum { CNN_SIZE = 12 };

static struct model_config cnn_of(int threads)
{
    return (struct model_config){.arch = arch_find("cnn"),
                                 .width = 0.5,
                                 .classes = CLASSES,
                                 .image_size = CNN_SIZE,
                                 .batch = BATCH,
                                 .threads = threads,
                                 .label_smoothing = 0.1};
}

static float *grey_images(void)
{
    return noise((size_t)BATCH * CNN_SIZE * CNN_SIZE, 4);
}

static void check_cnn_gradients(double dropout, int threads, enum job_gemm gemm)
{
    struct model_config c = cnn_of(threads);
    c.dropout = dropout;
    c.gemm = gemm;
    struct model *m = tiny_model(&c);
    float *x = grey_images();

    model_forward(m, x, tiny_labels, BATCH, NULL);
    model_backward(m, 1, false, NULL, NULL);
    cr_assert_eq(model_tensor_count(m), 8);
    for (size_t i = 0; i < model_tensor_count(m); i++)
        check_tensor_by(m, x, model_tensor(m, i), 0.0002); /* maxima change places soon */
    free(x);
    model_destroy(m);
}

Test(cnn, gradients_of_every_tensor_equal_finite_differences)
{
    check_cnn_gradients(0, 1, JOB_GEMM_OWN);
}

Test(cnn, gradients_with_dropout_by_openblas)
{
    check_cnn_gradients(0.4, 2, JOB_GEMM_OPENBLAS);
}

Test(cnn, accumulates_and_announces_gradients)
{
    struct model_config c = cnn_of(2);
    struct model *m = tiny_model(&c);
    float *x = grey_images();
    size_t end = model_param_count(m);

    model_forward(m, x, tiny_labels, BATCH, NULL);
    model_backward(m, 1, false, take_range, &end);
    cr_assert_eq(end, 0);
    float *once = copy_of(model_grads(m), model_param_count(m));
    for (size_t i = 0; i < model_param_count(m); i++)
        once[i] *= 1.5f;
    model_forward(m, x, tiny_labels, BATCH, NULL);
    model_backward(m, 0.5, true, NULL, NULL);
    assert_close(model_grads(m), once, model_param_count(m), 1e-5, "gradient and a half");
    free(once);
    free(x);
    model_destroy(m);
}

Test(cnn, predicts_the_same_with_little_memory_any_batch_and_any_threads)
{
    struct model_config c = cnn_of(2);
    c.dropout = 0.9;
    struct model *m = tiny_model(&c);
    c.inference = true;
    c.threads = 1;
    struct model *small = tiny_model(&c);
    float *x = grey_images(), logits[2][BATCH * CLASSES];

    model_predict(m, x, BATCH, logits[0]);
    model_predict(small, x, 4, logits[1]);
    model_predict(small, x + 4 * CNN_SIZE * CNN_SIZE, 2, logits[1] + 4 * CLASSES);
    assert_close(logits[1], logits[0], BATCH * CLASSES, 1e-5, "logits");
    cr_assert_lt(model_memory_bytes(small),
                 model_memory_bytes(m) - model_param_count(m) * sizeof(float));
    free(x);
    model_destroy(m);
    model_destroy(small);
}

static void check_frozen_cnn(int threads)
{
    struct model_config c = cnn_of(threads);
    float *x = grey_images();

    for (int parts = 1; parts <= 3; parts++)
        check_frozen(&c, parts, x);
    free(x);
}

Test(cnn, trains_what_lies_behind_frozen_parts)
{
    check_frozen_cnn(1);
    check_frozen_cnn(2);
}

/* ---- dropout in front of the classifier */

static double loss_with(const struct arch *arch, int threads, double dropout,
                        const struct model_draw *draw)
{
    struct model_config c = config_of(arch, threads);
    c.dropout = dropout;
    c.image_size = 32;
    struct model *m = tiny_model(&c);
    float *x = images();

    if (draw)
        model_draw(m, draw);
    double loss = model_forward(m, x, tiny_labels, BATCH, NULL);
    free(x);
    model_destroy(m);
    return loss;
}

Test(dropout, is_drawn_by_seed_epoch_and_image_whatever_the_threads)
{
    static const int64_t numbers[BATCH] = {5, 3, 9, 11, 4, 0};
    struct model_draw draw = {.seed = 1, .next_epoch_at = BATCH, .indices = numbers};
    double plain = loss_with(&tiny_short, 1, 0, &draw),
           once = loss_with(&tiny_short, 1, 0.5, &draw);

    cr_assert_neq(once, plain);
    cr_assert_eq(loss_with(&tiny_short, 1, 0.5, &draw), once);
    cr_assert_float_eq(loss_with(&tiny_short, 2, 0.5, &draw), once, 1e-5);
    struct model_draw others[] = {draw, draw, draw, draw};
    others[0].seed = 2;
    others[1].epoch = 1;
    others[2].first_number = 1;
    others[3].next_epoch_at = 3; /* the last three images are of the next epoch */
    for (int i = 0; i < 4; i++)
        cr_assert_gt(fabs(loss_with(&tiny_short, 1, 0.5, &others[i]) - once), 1e-4, "other draw %d",
                     i);
}

Test(dropout, gradients_equal_finite_differences)
{
    struct model_config c = config_of(&tiny_uneven, 1);
    c.dropout = 0.4;
    c.image_size = 32;
    struct model *m = tiny_model(&c);
    float *x = images();

    model_forward(m, x, tiny_labels, BATCH, NULL);
    model_backward(m, 1, false, NULL, NULL);
    for (size_t i = 0; i < model_tensor_count(m); i += ONE_OF)
        if (model_tensor(m, i)->kind == MODEL_FC_WEIGHT ||
            model_tensor(m, i)->kind == MODEL_BN_BETA)
            check_tensor_by(m, x, model_tensor(m, i), 0.0002);
    free(x);
    model_destroy(m);
}
