#include "worker/optim/sgd.h"

double sgd_update_reference(const struct sgd_rule *r, float *w, float *v, const float *g, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double d = g[i] + (double)r->decay * w[i];
        double velocity = (double)r->momentum * v[i] + d;
        sum += (double)g[i] * g[i];
        v[i] = (float)velocity;
        w[i] = (float)(w[i] - (double)r->lr *
                                  (r->nesterov ? d + (double)r->momentum * velocity : velocity));
    }
    return sum;
}
