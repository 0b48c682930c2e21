/*
 * Stochastic gradient descent with momentum as torch and Goyal et al. (arXiv:1706.02677, section 3,
 * eq. 9) have it: v = momentum v + (g + decay w); w -= lr v; with Nesterov w -= lr (g + decay w +
 * momentum v).
 */
#include "worker/kernels/vec.h"
#include "worker/optim/update.h"

static inline float sgd_update_one(const struct optim_rule *r, float *w, float *v, float g)
{
    float d = g + r->decay * *w;
    *v = r->momentum * *v + d;
    *w -= r->lr * (r->nesterov ? d + r->momentum * *v : *v);
    return g * g;
}

static inline __attribute__((always_inline)) float update_chunk(const struct optim_rule *r,
                                                                float *w, float *v, const float *g,
                                                                size_t n, bool nesterov)
{
    vec lr = vec_all(r->lr), momentum = vec_all(r->momentum), decay = vec_all(r->decay);
    vec squares = {0};
    float sum = 0;
    size_t i = 0;

    for (; i + VEC <= n; i += VEC) {
        vec wi = vec_load(w + i), gi = vec_load(g + i), d = gi + decay * wi;
        vec vi = momentum * vec_load(v + i) + d;
        squares += gi * gi;
        vec_store(v + i, vi);
        vec step = vi;
        if (nesterov)
            step = d + momentum * vi;
        vec_store(w + i, wi - lr * step);
    }
    for (; i < n; i++)
        sum += sgd_update_one(r, w + i, v + i, g[i]);
    for (int k = 0; k < VEC; k++)
        sum += squares[k];
    return sum;
}

static double sgd_update(const struct optim_rule *r, float *w, float *const state[], const float *g,
                         size_t n)
{
    float *v = state[0];
    double sum = 0;

    for (size_t i = 0; i < n; i += OPTIM_FLOATS_IN_SUM) {
        size_t count = n - i < OPTIM_FLOATS_IN_SUM ? n - i : OPTIM_FLOATS_IN_SUM;
        sum += r->nesterov ? update_chunk(r, w + i, v + i, g + i, count, true)
                           : update_chunk(r, w + i, v + i, g + i, count, false);
    }
    return sum;
}

const struct optim_kernel optim_sgd = {.update = sgd_update};
