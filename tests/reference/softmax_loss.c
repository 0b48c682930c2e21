#include "tests/reference/reference.h"

#include <math.h>

double softmax_loss_reference(const double *logits, int32_t label, int classes, double smoothing)
{
    double sum = 0, loss = 0;
    for (int j = 0; j < classes; j++)
        sum += exp(logits[j]);
    for (int j = 0; j < classes; j++) {
        double target = smoothing / classes + (j == label ? 1 - smoothing : 0);
        loss -= target * log(exp(logits[j]) / sum);
    }
    return loss;
}
