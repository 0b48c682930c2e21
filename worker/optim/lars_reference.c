#include <math.h>

#include "worker/optim/lars.h"

void lars_update_reference(const struct lars_config *c, bool excluded, double lr, float *w,
                           float *m, const float *g, size_t n)
{
    double ww = 0, gg = 0, decay = excluded && !c->decay_bn ? 0 : c->weight_decay, trust = 1;

    for (size_t i = 0; i < n; i++) {
        ww += (double)w[i] * w[i];
        gg += (double)g[i] * g[i];
    }
    if (!excluded && ww > 0 && gg > 0)
        trust = c->eta * sqrt(ww) / (sqrt(gg) + decay * sqrt(ww));
    for (size_t i = 0; i < n; i++) {
        double step = lr * trust * (g[i] + decay * w[i]);
        double momentum = c->momentum * m[i] + step;
        m[i] = (float)momentum;
        w[i] = (float)(w[i] - (c->nesterov ? c->momentum * momentum + step : momentum));
    }
}
