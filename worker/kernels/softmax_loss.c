#include "worker/kernels/softmax_loss.h"

#include <math.h>
#include <stddef.h>

#include "worker/team/dry_run.h"

static int softmax_loss_largest(const float *x, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    return best;
}

/* at_label: logit of the label, or the weighted mean of two labels' */
static double loss_of_row(const float *x, int classes, double at_label, double smoothing, float *p)
{
    double top = x[softmax_loss_largest(x, classes)], sum = 0, all = 0;

    for (int j = 0; j < classes; j++) {
        double shifted = x[j] - top;
        all += shifted;
        p[j] = expf((float)shifted);
        sum += p[j];
    }
    for (int j = 0; j < classes; j++)
        p[j] = (float)(p[j] / sum);
    /* -log p_j = log sum - (x_j - top) */
    return log(sum) - (1 - smoothing) * (at_label - top) - smoothing * all / classes;
}

static struct softmax_row softmax_loss_make_row(const float *logits, const int32_t *labels, int n,
                                                int i, int classes, double smoothing, double lambda,
                                                float *probabilities)
{
    const float *x = logits + (size_t)i * (size_t)classes;
    double at_label = x[labels[i]];

    if (lambda < 1)
        at_label = lambda * at_label + (1 - lambda) * x[labels[n - 1 - i]];
    int correct = softmax_loss_largest(x, classes) == labels[lambda < 0.5 ? n - 1 - i : i];
    double loss =
        loss_of_row(x, classes, at_label, smoothing, probabilities + (size_t)i * (size_t)classes);
    return (struct softmax_row){loss, correct};
}

void softmax_loss_rows(const float *logits, const int32_t *labels, int n, int first, int end,
                       int classes, double smoothing, double lambda, float *probabilities,
                       struct softmax_row *rows)
{
    for (int i = first; i < end && !dry_run; i++)
        rows[i] =
            softmax_loss_make_row(logits, labels, n, i, classes, smoothing, lambda, probabilities);
}

double softmax_loss_sum(const struct softmax_row *rows, int n, int *correct)
{
    double loss = 0;
    int hits = 0;

    for (int i = 0; i < n && !(team_watch && team_watch->dry); i++) {
        loss += rows[i].loss;
        hits += rows[i].correct;
    }
    if (correct)
        *correct = hits;
    return loss;
}

void softmax_loss_backward(const float *probabilities, const int32_t *labels, int n, int first,
                           int end, int classes, double smoothing, double lambda, double scale,
                           float *dlogits)
{
    for (int i = first; i < end && !dry_run; i++)
        for (int j = 0; j < classes; j++) {
            size_t at = (size_t)i * (size_t)classes + (size_t)j;
            double target = smoothing / classes;
            if (j == labels[i])
                target += (1 - smoothing) * lambda;
            if (j == labels[n - 1 - i])
                target += (1 - smoothing) * (1 - lambda);
            dlogits[at] = (float)(scale * (probabilities[at] - target));
        }
}
