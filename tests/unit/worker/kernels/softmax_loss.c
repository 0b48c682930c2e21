#include "tests/reference/reference.h"
#include "tests/unit/worker/compare.h"
#include "worker/kernels/softmax_loss.h"

enum { N = 5, CLASSES = 13 };

/* By two threads' shares of the rows; probabilities may be x. */
static double loss_by_rows(const float *x, const int32_t *labels, int n, int classes,
                           double smoothing, double lambda, float *probabilities, int *correct)
{
    struct softmax_row rows[N];
    int half = n / 2;

    softmax_loss_rows(x, labels, n, 0, half, classes, smoothing, lambda, probabilities, rows);
    softmax_loss_rows(x, labels, n, half, n, classes, smoothing, lambda, probabilities, rows);
    return softmax_loss_sum(rows, n, correct);
}

/* What mixup means: the mean of two losses by lambda. */
static double mixed_loss(const double *logits, const int32_t *labels, double smoothing,
                         double lambda)
{
    double loss = 0;
    for (int i = 0; i < N; i++) {
        loss +=
            lambda * softmax_loss_reference(logits + i * CLASSES, labels[i], CLASSES, smoothing);
        loss += (1 - lambda) *
                softmax_loss_reference(logits + i * CLASSES, labels[N - 1 - i], CLASSES, smoothing);
    }
    return loss;
}

static void check_loss(double smoothing, double lambda)
{
    float *x = noise(N * CLASSES, 1), p[N * CLASSES];
    double logits[N * CLASSES], want[N * CLASSES];
    int32_t labels[N] = {0, 5, 5, 5, 12};

    for (int i = 0; i < N * CLASSES; i++)
        logits[i] = x[i] *= 5;
    double loss = loss_by_rows(x, labels, N, CLASSES, smoothing, lambda, p, NULL);
    cr_assert_float_eq(loss, mixed_loss(logits, labels, smoothing, lambda), 1e-5 * loss);
    for (int i = 0; i < N * CLASSES; i++) {
        double keep = logits[i];
        logits[i] = keep + 1e-5;
        want[i] = mixed_loss(logits, labels, smoothing, lambda);
        logits[i] = keep - 1e-5;
        want[i] = 3 * (want[i] - mixed_loss(logits, labels, smoothing, lambda)) / 2e-5;
        logits[i] = keep;
    }
    softmax_loss_backward(p, labels, N, 0, 1, CLASSES, smoothing, lambda, 3, p);
    softmax_loss_backward(p, labels, N, 1, N, CLASSES, smoothing, lambda, 3, p);
    assert_close(p, want, N * CLASSES, 1e-5, "gradient, smoothing %g, lambda %g", smoothing,
                 lambda);
    free(x);
}

Test(softmax_loss, loss_and_gradient_with_and_without_smoothing)
{
    check_loss(0, 1);
    check_loss(0.1, 1);
}

Test(softmax_loss, mixed_labels)
{
    check_loss(0, 0.3);
    check_loss(0.1, 0.8);
}

Test(softmax_loss, counts_hits_and_survives_large_logits)
{
    float x[6] = {1000, -1000, 0, 3, 4, 1e30f}, p[6];
    int32_t labels[2] = {0, 1};
    int correct;
    double loss = loss_by_rows(x, labels, 2, 3, 0, 1, p, &correct);
    cr_assert_eq(correct, 1);
    cr_assert(isfinite(loss) && loss > 1e29);
    cr_assert_float_eq(p[0], 1, 1e-6);
}

/* Of mixed images the label of the larger share is the right one. */
Test(softmax_loss, counts_hits_of_mixed_images_by_the_larger_share)
{
    float x[4] = {2, 1, 2, 1}, p[4];
    int32_t labels[2] = {0, 1};
    int correct;

    loss_by_rows(x, labels, 1, 2, 0, 0.3, p, &correct);
    cr_assert_eq(correct, 1); /* alone, it is its own partner */
    x[2] = 0;
    for (int i = 0; i < 2; i++) {
        loss_by_rows(x, labels, 2, 2, 0.1, i ? 0.3 : 0.7, p, &correct);
        cr_assert_eq(correct, i ? 0 : 2, "%d", correct);
    }
}

Test(softmax_loss, a_nan_comes_out_as_nan)
{
    float x[3] = {1, NAN, 2}, p[3];
    int32_t label = 0;
    cr_assert(isnan(loss_by_rows(x, &label, 1, 3, 0.1, 1, p, NULL)));
}
