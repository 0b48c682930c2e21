#include "tests/reference/reference.h"
#include "tests/unit/worker/compare.h"
#include "worker/kernels/softmax_loss.h"

enum { N = 5, CLASSES = 13 };

/* By two threads' shares of the rows; probabilities may be x. */
static double loss_by_rows(const struct softmax_target *t, const float *x, float *probabilities,
                           int *correct)
{
    struct softmax_row rows[N];

    softmax_loss_rows(t, x, 0, t->n / 2, probabilities, rows);
    softmax_loss_rows(t, x, t->n / 2, t->n, probabilities, rows);
    return softmax_loss_sum(rows, t->n, correct);
}

/* What mixup means: the mean of two losses by lambda. */
static double mixed_loss(const struct softmax_target *t, const double *logits)
{
    double loss = 0;
    for (int i = 0; i < N; i++) {
        const double *x = logits + i * CLASSES;
        loss += t->lambda *
                softmax_loss_reference(t->loss, x, t->labels[i], CLASSES, t->smoothing, t->weights);
        loss += (1 - t->lambda) * softmax_loss_reference(t->loss, x, t->labels[N - 1 - i], CLASSES,
                                                         t->smoothing, t->weights);
    }
    return loss;
}

static void check_loss(enum job_loss kind, double smoothing, double lambda, const double *weights)
{
    static const int32_t labels[N] = {0, 5, 5, 5, 12};
    const struct softmax_target t = {kind, CLASSES, smoothing, lambda, labels, N, weights};
    float *x = noise(N * CLASSES, 1), *p = x; /* as in a model */
    double logits[N * CLASSES], want[N * CLASSES];

    double plain = 0;

    for (int i = 0; i < N * CLASSES; i++)
        logits[i] = x[i] *= 5;
    for (int i = 0; i < N; i++)
        plain += softmax_loss_of(kind, x + i * CLASSES, CLASSES, labels[i]);
    double loss = loss_by_rows(&t, x, p, NULL);
    cr_assert_float_eq(loss, mixed_loss(&t, logits), 1e-5 * loss);
    if (smoothing == 0 && lambda == 1 && !weights)
        cr_assert_float_eq(loss, plain, 1e-5);
    for (int i = 0; i < N * CLASSES; i++) {
        double keep = logits[i];
        logits[i] = keep + 1e-5;
        want[i] = mixed_loss(&t, logits);
        logits[i] = keep - 1e-5;
        want[i] = 3 * (want[i] - mixed_loss(&t, logits)) / 2e-5;
        logits[i] = keep;
    }
    softmax_loss_backward(&t, p, 0, 1, 3, p);
    softmax_loss_backward(&t, p, 1, N, 3, p);
    assert_close(p, want, N * CLASSES, 1e-5, "gradient, loss %d, smoothing %g, lambda %g", kind,
                 smoothing, lambda);
    free(x);
}

Test(softmax_loss, loss_and_gradient_with_and_without_smoothing)
{
    for (enum job_loss kind = JOB_LOSS_CROSS_ENTROPY; kind <= JOB_LOSS_BCE; kind++) {
        check_loss(kind, 0, 1, NULL);
        check_loss(kind, 0.1, 1, NULL);
    }
}

Test(softmax_loss, mixed_labels)
{
    for (enum job_loss kind = JOB_LOSS_CROSS_ENTROPY; kind <= JOB_LOSS_BCE; kind++) {
        check_loss(kind, 0, 0.3, NULL);
        check_loss(kind, 0.1, 0.8, NULL);
    }
}

Test(softmax_loss, class_weights)
{
    static const double weights[CLASSES] = {3, 1, 1, 0, 1, 0.25, 1, 1, 1e3, 1, 1, 1, 7};

    for (enum job_loss kind = JOB_LOSS_CROSS_ENTROPY; kind <= JOB_LOSS_BCE; kind++) {
        check_loss(kind, 0, 1, weights);
        check_loss(kind, 0.1, 1, weights);
        check_loss(kind, 0, 0.3, weights);
        check_loss(kind, 0.1, 0.8, weights);
    }
}

/* Of torch 1.13: cross_entropy(weight, label_smoothing, reduction="sum"), and for bce the sum of
 * binary_cross_entropy_with_logits times the weight of the image's class. */
Test(softmax_loss, class_weights_as_in_torch)
{
    static const int32_t labels[2] = {2, 0};
    static const double weights[3] = {0.5, 1, 4};
    static const struct {
        enum job_loss kind;
        double lambda, loss, gradient[6];
    } cases[] = {
        {JOB_LOSS_CROSS_ENTROPY,
         1,   7.817715039270132,
         {2.6442045426, 0.3267764254, -2.970980968, -0.4418953703, 0.4642114552, -0.022316085}  },
        {JOB_LOSS_CROSS_ENTROPY,
         0.7, 7.578159703317498,
         {1.8445728353, 0.2368283051, -2.0814011403, -0.2699339885, 1.2066006529, -0.9366666644}},
        {JOB_LOSS_BCE,
         1,   13.071185402870794,
         {3.1369645714, 1.3768293419, -1.4846273298, -0.332195956, 0.4237318723, 0.2945629989}  },
        {JOB_LOSS_BCE,
         0.7, 12.888414253605376,
         {2.1785113714, 1.0154116396, -0.9599126557, 0.0501925365, 1.3135688042, -0.1668547033} },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct softmax_target t = {cases[i].kind, 3, 0.1, cases[i].lambda, labels, 2, weights};
        float x[6] = {1.5, -0.5, 0.25, -1, 2, 0.5};
        double loss = loss_by_rows(&t, x, x, NULL);
        cr_expect_float_eq(loss, cases[i].loss, 1e-6);
        softmax_loss_backward(&t, x, 0, 2, 1, x);
        assert_close(x, cases[i].gradient, 6, 1e-6, "gradient, case %zu", i);
    }
}

Test(softmax_loss, counts_hits_and_survives_large_logits)
{
    static const int32_t labels[2] = {0, 1};
    struct softmax_target t = {JOB_LOSS_CROSS_ENTROPY, 3, 0, 1, labels, 2, NULL};
    float x[6] = {1000, -1000, 0, 3, 4, 1e30f}, p[6];
    int correct;
    double loss = loss_by_rows(&t, x, p, &correct);
    cr_assert_eq(correct, 1);
    cr_assert(isfinite(loss) && loss > 1e29);
    cr_assert_float_eq(p[0], 1, 1e-6);
    t.loss = JOB_LOSS_BCE;
    loss = loss_by_rows(&t, x, p, &correct);
    cr_assert_eq(correct, 1);
    cr_assert(isfinite(loss) && loss > 1e29);
    cr_assert(p[0] == 1 && p[1] == 0 && p[2] == 0.5F, "%g %g %g", p[0], p[1], p[2]);
}

/* Of mixed images the label of the larger share is the right one. */
Test(softmax_loss, counts_hits_of_mixed_images_by_the_larger_share)
{
    static const int32_t labels[2] = {0, 1};
    struct softmax_target t = {JOB_LOSS_CROSS_ENTROPY, 2, 0, 0.3, labels, 1, NULL};
    float x[4] = {2, 1, 2, 1}, p[4];
    int correct;

    loss_by_rows(&t, x, p, &correct);
    cr_assert_eq(correct, 1); /* alone, it is its own partner */
    x[2] = 0;
    t.n = 2;
    t.smoothing = 0.1;
    for (int i = 0; i < 2; i++) {
        t.lambda = i ? 0.3 : 0.7;
        loss_by_rows(&t, x, p, &correct);
        cr_assert_eq(correct, i ? 0 : 2, "%d", correct);
    }
}

Test(softmax_loss, a_nan_comes_out_as_nan)
{
    static const int32_t label = 0;
    struct softmax_target t = {JOB_LOSS_CROSS_ENTROPY, 3, 0.1, 1, &label, 1, NULL};
    float x[3] = {1, NAN, 2}, p[3];
    cr_assert(isnan(loss_by_rows(&t, x, p, NULL)));
    t.loss = JOB_LOSS_BCE;
    cr_assert(isnan(loss_by_rows(&t, x, p, NULL)));
}
