#include "worker/kernels/softmax_loss.h"

#include <math.h>
#include <stddef.h>

static int largest(const float *x, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    return best;
}

static double loss_of_row(const float *x, int label, int classes, double smoothing, float *p)
{
    double top = x[largest(x, classes)], own = x[label], sum = 0, all = 0;

    for (int j = 0; j < classes; j++) {
        double shifted = x[j] - top;
        all += shifted;
        p[j] = expf((float)shifted);
        sum += p[j];
    }
    for (int j = 0; j < classes; j++)
        p[j] = (float)(p[j] / sum);
    /* -log p_j = log sum - (x_j - top) */
    return log(sum) - (1 - smoothing) * (own - top) - smoothing * all / classes;
}

double softmax_loss(const float *logits, const int32_t *labels, int n, int classes, double smoothing,
                    float *probabilities, int *correct)
{
    double loss = 0;
    int hits = 0;

    for (int i = 0; i < n; i++) {
        size_t row = (size_t)i * (size_t)classes;
        hits += largest(logits + row, classes) == labels[i];
        loss += loss_of_row(logits + row, labels[i], classes, smoothing, probabilities + row);
    }
    if (correct)
        *correct = hits;
    return loss;
}

void softmax_loss_backward(const float *probabilities, const int32_t *labels, int n, int classes,
                           double smoothing, double scale, float *dlogits)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < classes; j++) {
            size_t at = (size_t)i * (size_t)classes + (size_t)j;
            double target = smoothing / classes + (j == labels[i] ? 1 - smoothing : 0);
            dlogits[at] = (float)(scale * (probabilities[at] - target));
        }
}
