#include "tests/reference/reference.h"

#include <math.h>

double softmax_loss_reference(enum job_loss kind, const double *logits, int32_t label, int classes,
                              double smoothing, const double *weights)
{
    double sum = 0, loss = 0;
    for (int j = 0; j < classes; j++)
        sum += exp(logits[j]);
    for (int j = 0; j < classes; j++) {
        double target = smoothing / classes + (j == label ? 1 - smoothing : 0);
        double weight = !weights ? 1 : kind == JOB_LOSS_CROSS_ENTROPY ? weights[j] : weights[label];
        if (kind == JOB_LOSS_CROSS_ENTROPY)
            loss -= weight * target * log(exp(logits[j]) / sum);
        else
            loss -= weight * (target * log(1 / (1 + exp(-logits[j]))) +
                              (1 - target) * log(1 / (1 + exp(logits[j]))));
    }
    return loss;
}
