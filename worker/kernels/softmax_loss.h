/*
 * Loss of a row of logits against a target with label smoothing: (1 - s) at the label plus s /
 * classes everywhere, as in torch. Szegedy et al., arXiv:1512.00567, section 7. It is the cross
 * entropy of the softmax, or the sum over the classes of the binary cross entropy of the sigmoids.
 *
 * With mixup (lambda < 1) row i counts lambda for its own label and 1 - lambda for that of row
 * n-1-i, and is correct by the label with the larger weight. Threads share rows [first, end).
 *
 * With class weights each class's term of the cross entropy is multiplied by the weight of that
 * class, as torch does for labels with smoothing and for probabilities, and the whole binary cross
 * entropy by that of the label. Sums are not divided by the weights.
 */
#pragma once

#include <stdint.h>

#include "common/job/job_spec.h"

struct softmax_target {
    enum job_loss loss;
    int classes;
    double smoothing, lambda;
    const int32_t *labels; /* (n) */
    int n;
    const double *weights; /* (classes); NULL: all 1 */
};

struct softmax_row {
    double loss;
    int correct; /* 1 if its first largest logit is the label's */
};

/* logits (n, classes); probabilities (n, classes; may be logits) gets the softmax or sigmoids. */
void softmax_loss_rows(const struct softmax_target *t, const float *logits, int first, int end,
                       float *probabilities, struct softmax_row *rows); /* [n] */

/* Returns the sum of the losses; *correct (may be NULL) gets the number of correct rows. */
double softmax_loss_sum(const struct softmax_row *rows, int n, int *correct);

/* dlogits (may be probabilities) = scale (probabilities - target), without class weights. */
void softmax_loss_backward(const struct softmax_target *t, const float *probabilities, int first,
                           int end, double scale, float *dlogits);

/* Loss of one row, in double, without smoothing and class weights */
double softmax_loss_of(enum job_loss loss, const float *logits, int classes, int label);
