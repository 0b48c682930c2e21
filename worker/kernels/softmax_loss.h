/*
 * Softmax cross entropy with label smoothing as torch defines it: the target is (1 - s) at the
 * label plus s / classes everywhere. Szegedy et al., arXiv:1512.00567, section 7.
 */
#pragma once

#include <stdint.h>

/* Of one row. */
struct softmax_row {
    double loss;
    int correct; /* 0 or 1: whether its first largest logit is the label's */
};

/* logits (n, classes); labels (n); probabilities (n, classes; may be logits) gets the softmax. Of
 * the rows [first, end), as several threads share them.
 *
 * Of mixed images (mixup; lambda < 1) row i counts lambda for its own label and 1 - lambda for that
 * of row n-1-i, and correct goes by the label that counts more. */
void softmax_loss_rows(const float *logits, const int32_t *labels, int n, int first, int end,
                       int classes, double smoothing, double lambda, float *probabilities,
                       struct softmax_row *rows); /* [n] */

/* The sum of the losses (not the mean), and of the correct rows (NULL: not wanted). */
double softmax_loss_sum(const struct softmax_row *rows, int n, int *correct);

/* dlogits (may be probabilities) = scale (probabilities - target), likewise. */
void softmax_loss_backward(const float *probabilities, const int32_t *labels, int n, int first,
                           int end, int classes, double smoothing, double lambda, double scale,
                           float *dlogits);
