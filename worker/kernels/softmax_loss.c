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

/* log(1 + e^x); small is e^-|x|. */
static double loss_of_absence(double x, double small)
{
    return (x > 0 ? x : 0) + log1p(small);
}

/* Of the sigmoids p: -y log p - (1 - y) log(1 - p) = log(1 + e^x) - y x for a target y. */
static double loss_of_sigmoids(const float *x, int classes, double at_label, double smoothing,
                               float *p)
{
    double sum = 0, all = 0;

    for (int j = 0; j < classes; j++) {
        float at = x[j], small = expf(-fabsf(at));
        all += at;
        sum += loss_of_absence(at, small);
        p[j] = (at < 0 ? small : 1) / (1 + small);
    }
    return sum - (1 - smoothing) * at_label - smoothing * all / classes;
}

/* Target of row i for class j, times its weight */
static double softmax_loss_weighted_target(const struct softmax_target *t, int i, int j)
{
    int own = t->labels[i], other = t->labels[t->n - 1 - i];
    double label = (j == own ? t->lambda : 0) + (j == other ? 1 - t->lambda : 0);
    double spread = t->loss == JOB_LOSS_BCE
                        ? t->lambda * t->weights[own] + (1 - t->lambda) * t->weights[other]
                        : t->weights[j];

    return (1 - t->smoothing) * label * t->weights[j] + t->smoothing / t->classes * spread;
}

/* Sum of the weighted targets times x, the logits of row i (NULL: 1). */
static double softmax_loss_weighted_sum(const struct softmax_target *t, int i, const float *x)
{
    double sum = 0;

    for (int j = 0; j < t->classes; j++)
        sum += softmax_loss_weighted_target(t, i, j) * (x ? x[j] : 1);
    return sum;
}

static struct softmax_row softmax_loss_make_row(const struct softmax_target *t, const float *logits,
                                                int i, float *probabilities)
{
    size_t at = (size_t)i * (size_t)t->classes;
    const float *x = logits + at;
    int own = t->labels[i], other = t->labels[t->n - 1 - i];
    double at_label = x[own];

    if (t->lambda < 1)
        at_label = t->lambda * at_label + (1 - t->lambda) * x[other];
    int correct = softmax_loss_largest(x, t->classes) == (t->lambda < 0.5 ? other : own);
    double at_targets = t->weights ? softmax_loss_weighted_sum(t, i, x) : 0;
    double loss = (t->loss == JOB_LOSS_BCE ? loss_of_sigmoids : loss_of_row)(
        x, t->classes, t->weights ? 0 : at_label, t->weights ? 0 : t->smoothing,
        probabilities + at);
    if (t->weights)
        loss = softmax_loss_weighted_sum(t, i, NULL) * loss - at_targets;
    return (struct softmax_row){loss, correct};
}

void softmax_loss_rows(const struct softmax_target *t, const float *logits, int first, int end,
                       float *probabilities, struct softmax_row *rows)
{
    for (int i = first; i < end && !dry_run; i++)
        rows[i] = softmax_loss_make_row(t, logits, i, probabilities);
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

static void softmax_loss_backward_weighted(const struct softmax_target *t,
                                           const float *probabilities, int i, double scale,
                                           float *dlogits)
{
    double weight = softmax_loss_weighted_sum(t, i, NULL);

    for (int j = 0; j < t->classes; j++) {
        size_t at = (size_t)i * (size_t)t->classes + (size_t)j;
        double target = softmax_loss_weighted_target(t, i, j);
        dlogits[at] = (float)(scale * (weight * probabilities[at] - target));
    }
}

void softmax_loss_backward(const struct softmax_target *t, const float *probabilities, int first,
                           int end, double scale, float *dlogits)
{
    for (int i = first; i < end && !dry_run && t->weights; i++)
        softmax_loss_backward_weighted(t, probabilities, i, scale, dlogits);
    if (t->weights)
        return;
    for (int i = first; i < end && !dry_run; i++)
        for (int j = 0; j < t->classes; j++) {
            size_t at = (size_t)i * (size_t)t->classes + (size_t)j;
            double target = t->smoothing / t->classes;
            if (j == t->labels[i])
                target += (1 - t->smoothing) * t->lambda;
            if (j == t->labels[t->n - 1 - i])
                target += (1 - t->smoothing) * (1 - t->lambda);
            dlogits[at] = (float)(scale * (probabilities[at] - target));
        }
}

double softmax_loss_of(enum job_loss loss, const float *logits, int classes, int label)
{
    double largest = logits[0], sum = 0;

    if (loss == JOB_LOSS_BCE) {
        for (int c = 0; c < classes; c++)
            sum += loss_of_absence(logits[c], exp(-fabs(logits[c])));
        return sum - logits[label];
    }
    for (int c = 1; c < classes; c++)
        largest = fmax(largest, logits[c]);
    for (int c = 0; c < classes; c++)
        sum += exp(logits[c] - largest);
    return largest + log(sum) - logits[label];
}
