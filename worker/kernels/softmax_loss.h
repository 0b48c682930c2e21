/*
 * Softmax cross entropy with label smoothing as torch defines it: the target is (1 - s) at the
 * label plus s / classes everywhere. Szegedy et al., arXiv:1512.00567, section 7. The _reference
 * twin is the definition without tricks, in double.
 */
#ifndef TRAIND_WORKER_KERNELS_SOFTMAX_LOSS_H
#define TRAIND_WORKER_KERNELS_SOFTMAX_LOSS_H

#include <stdint.h>

/* logits (n, classes); labels (n). Returns the sum of the losses (not the mean). probabilities (n,
 * classes; may be logits) gets the softmax; *correct (NULL: not wanted) is the number of rows whose
 * first largest logit is the label's. */
double softmax_loss(const float *logits, const int32_t *labels, int n, int classes,
                    double smoothing, float *probabilities, int *correct);

/* dlogits (may be probabilities) = scale (probabilities - target) */
void softmax_loss_backward(const float *probabilities, const int32_t *labels, int n, int classes,
                           double smoothing, double scale, float *dlogits);

/* The same for mixed images (mixup): row i counts lambda for its own label and 1 - lambda for that
 * of row n-1-i; *correct goes by the label that counts more. With lambda 1 they are the two above,
 * to the bit. */
double softmax_loss_mixed(const float *logits, const int32_t *labels, int n, int classes,
                          double smoothing, double lambda, float *probabilities, int *correct);
/* Of the rows [first, end). */
void softmax_loss_mixed_backward(const float *probabilities, const int32_t *labels, int n,
                                 int first, int end, int classes, double smoothing, double lambda,
                                 double scale, float *dlogits);

/* The first by several threads: each makes some rows, one adds them up. */
struct softmax_row {
    double loss;
    int correct; /* 0 or 1 */
};
void softmax_loss_rows(const float *logits, const int32_t *labels, int n, int first, int end,
                       int classes, double smoothing, double lambda, float *probabilities,
                       struct softmax_row *rows); /* [n] */
double softmax_loss_sum(const struct softmax_row *rows, int n, int *correct);

double softmax_loss_reference(const double *logits, int32_t label, int classes, double smoothing);

#endif
