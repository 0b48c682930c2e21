/*
 * Softmax cross entropy with label smoothing as in torch: the target is (1 - s) at the label plus s
 * / classes everywhere. Szegedy et al., arXiv:1512.00567, section 7.
 *
 * With mixup (lambda < 1) row i counts lambda for its own label and 1 - lambda for that of row
 * n-1-i, and is correct by the label with the larger weight. Threads share rows [first, end).
 */
#pragma once

#include <stdint.h>

struct softmax_row {
    double loss;
    int correct; /* 1 if its first largest logit is the label's */
};

/* logits (n, classes); labels (n); probabilities (n, classes; may be logits) gets the softmax. */
void softmax_loss_rows(const float *logits, const int32_t *labels, int n, int first, int end,
                       int classes, double smoothing, double lambda, float *probabilities,
                       struct softmax_row *rows); /* [n] */

/* Returns the sum of the losses; *correct (may be NULL) gets the number of correct rows. */
double softmax_loss_sum(const struct softmax_row *rows, int n, int *correct);

/* dlogits (may be probabilities) = scale (probabilities - target). */
void softmax_loss_backward(const float *probabilities, const int32_t *labels, int n, int first,
                           int end, int classes, double smoothing, double lambda, double scale,
                           float *dlogits);
