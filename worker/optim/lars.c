/*
 * LARS, layer-wise adaptive rate scaling (You et al., arXiv:1708.03888), in the form of TensorFlow
 * and the MLPerf reference: the learning rate is inside the momentum.
 *
 *   m = momentum m + lr trust (g + decay w); w -= m; with Nesterov w -= momentum m + lr trust (g +
 * decay w)
 *
 * torch's form, m = momentum m + (g + decay w); w -= lr trust m, goes another way whenever the
 * learning rate moves. With momentum_correction m = momentum lr / lr_before m + ... (Goyal et al.,
 * arXiv:1706.02677, section 3, the remark on eq. 10): the rate then acts on all of m at once, as in
 * the form of torch and sgd.c.
 */
#include <math.h>

#include "worker/kernels/vec.h"
#include "worker/optim/update.h"

enum { LANES = 8 };

struct optim_norms optim_norms_of(const float *w, const float *g, size_t n)
{
    double ww[LANES] = {0}, gg[LANES] = {0};
    struct optim_norms sum = {0, 0};
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (size_t k = 0; k < LANES; k++) {
            ww[k] += (double)w[i + k] * w[i + k];
            gg[k] += (double)g[i + k] * g[i + k];
        }
    for (; i < n; i++) {
        sum.w += (double)w[i] * w[i];
        sum.g += (double)g[i] * g[i];
    }
    for (int k = 0; k < LANES; k++) {
        sum.w += ww[k];
        sum.g += gg[k];
    }
    return sum;
}

double lars_trust(const struct optim_norms *norms, double eta, double decay)
{
    double w = sqrt(norms->w), g = sqrt(norms->g);
    return w > 0 && g > 0 ? eta * w / (g + decay * w) : 1;
}

static void lars_update_one(const struct optim_rule *r, float *w, float *m, float g)
{
    float step = r->lr * (g + r->decay * *w);
    *m = r->momentum * *m + step;
    *w -= r->nesterov ? r->ahead * *m + step : *m;
}

static double lars_update(const struct optim_rule *r, float *w, float *const state[],
                          const float *g, size_t n)
{
    vec rate = vec_all(r->lr), momentum = vec_all(r->momentum), decay = vec_all(r->decay);
    vec ahead = vec_all(r->ahead);
    float *m = state[0];
    size_t i = 0;

    for (; i + VEC <= n; i += VEC) {
        vec wi = vec_load(w + i), step = rate * (vec_load(g + i) + decay * wi);
        vec mi = momentum * vec_load(m + i) + step;
        vec_store(m + i, mi);
        vec down = mi;
        if (r->nesterov)
            down = ahead * mi + step;
        vec_store(w + i, wi - down);
    }
    for (; i < n; i++)
        lars_update_one(r, w + i, m + i, g[i]);
    return 0; /* the norms have it */
}

static void lars_refine(struct optim_rule *r, const struct job_optimizer_keys *keys,
                        const struct optim_step *step)
{
    double decay = step->decays ? keys->weight_decay : 0;
    double trust = step->excluded ? 1 : lars_trust(&step->norms, keys->lars_eta, decay);
    double correction =
        keys->momentum_correction && step->last_lr > 0 ? step->lr / step->last_lr : 1;

    r->lr = (float)(step->lr * trust);
    r->momentum = (float)(keys->momentum * correction);
}

const struct optim_kernel optim_lars = {true, lars_refine, lars_update};
