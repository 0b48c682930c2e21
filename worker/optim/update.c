#include "worker/optim/update.h"

#include <math.h>
#include <string.h>

#include "common/job/recipe/optimizers.h"
#include "worker/kernels/vec.h"

/* ---- SGD with momentum, as in torch and Goyal et al. (arXiv:1706.02677, section 3, eq. 9):
 * v = momentum v + (g + decay w); w -= lr v; with Nesterov w -= lr (g + decay w + momentum v).
 * SGDW, as Composer's DecoupledSGDW: the same without decay, and w *= 1 - decay lr / peak first */

static inline float update_sgd_one(const struct optim_rule *r, float *w, float *v, float g,
                                   bool decoupled)
{
    float d = g + r->decay * *w;
    *v = r->momentum * *v + d;
    if (decoupled)
        *w *= r->keep;
    *w -= r->lr * (r->nesterov ? d + r->momentum * *v : *v);
    return g * g;
}

static inline __attribute__((always_inline)) float update_sgd_chunk(const struct optim_rule *r,
                                                                    float *w, float *v,
                                                                    const float *g, size_t n,
                                                                    bool nesterov, bool decoupled)
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
        if (decoupled)
            wi *= vec_all(r->keep);
        vec_store(w + i, wi - lr * step);
    }
    for (; i < n; i++)
        sum += update_sgd_one(r, w + i, v + i, g[i], decoupled);
    for (int k = 0; k < VEC; k++)
        sum += squares[k];
    return sum;
}

static inline __attribute__((always_inline)) double update_sgd_chunks(const struct optim_rule *r,
                                                                      float *w, float *v,
                                                                      const float *g, size_t n,
                                                                      bool nesterov, bool decoupled)
{
    double sum = 0;

    for (size_t i = 0; i < n; i += OPTIM_FLOATS_IN_SUM) {
        size_t count = n - i < OPTIM_FLOATS_IN_SUM ? n - i : OPTIM_FLOATS_IN_SUM;
        sum += update_sgd_chunk(r, w + i, v + i, g + i, count, nesterov, decoupled);
    }
    return sum;
}

static double update_sgd(const struct optim_rule *r, float *w, float *const state[], const float *g,
                         size_t n)
{
    return r->nesterov ? update_sgd_chunks(r, w, state[0], g, n, true, false)
                       : update_sgd_chunks(r, w, state[0], g, n, false, false);
}

static double update_sgdw(const struct optim_rule *r, float *w, float *const state[],
                          const float *g, size_t n)
{
    return r->nesterov ? update_sgd_chunks(r, w, state[0], g, n, true, true)
                       : update_sgd_chunks(r, w, state[0], g, n, false, true);
}

static void update_refine_sgdw(struct optim_rule *r, const struct job_optimizer_keys *keys,
                               const struct optim_step *step)
{
    r->decay = 0;
    r->keep = (float)(1 - (step->decays ? step->lr / step->peak_lr * keys->weight_decay : 0));
}

static const struct optim_kernel optim_sgd = {.update = update_sgd};
static const struct optim_kernel optim_sgdw = {.refine = update_refine_sgdw, .update = update_sgdw};

/*
 * ---- LARS, layer-wise adaptive rate scaling (You et al., arXiv:1708.03888), in the form of
 * TensorFlow and the MLPerf reference, with the learning rate inside the momentum:
 *
 *   m = momentum m + lr trust (g + decay w); w -= m
 *   with Nesterov w -= momentum m + lr trust (g + decay w)
 *
 * It differs from torch's form, m = momentum m + (g + decay w); w -= lr trust m, whenever the
 * learning rate changes. With momentum_correction m = momentum lr / lr_before m + ... (Goyal et
 * al., arXiv:1706.02677, section 3, remark on eq. 10), so that a new rate applies to all of m at
 * once, as in torch's form and in SGD here.
 */

enum { NORM_LANES = 8 };

struct optim_norms optim_norms_of(const float *w, const float *g, size_t n)
{
    double ww[NORM_LANES] = {0}, gg[NORM_LANES] = {0};
    struct optim_norms sum = {0, 0};
    size_t i = 0;

    for (; i + NORM_LANES <= n; i += NORM_LANES)
        for (size_t k = 0; k < NORM_LANES; k++) {
            ww[k] += (double)w[i + k] * w[i + k];
            gg[k] += (double)g[i + k] * g[i + k];
        }
    for (; i < n; i++) {
        sum.w += (double)w[i] * w[i];
        sum.g += (double)g[i] * g[i];
    }
    for (int k = 0; k < NORM_LANES; k++) {
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

static void update_lars_one(const struct optim_rule *r, float *w, float *m, float g)
{
    float step = r->lr * (g + r->decay * *w);
    *m = r->momentum * *m + step;
    *w -= r->nesterov ? r->ahead * *m + step : *m;
}

static double update_lars(const struct optim_rule *r, float *w, float *const state[],
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
        update_lars_one(r, w + i, m + i, g[i]);
    return 0; /* the norms contain it */
}

static void update_refine_lars(struct optim_rule *r, const struct job_optimizer_keys *keys,
                               const struct optim_step *step)
{
    double decay = step->decays ? keys->weight_decay : 0;
    double trust = step->excluded ? 1 : lars_trust(&step->norms, keys->lars_eta, decay);
    double correction =
        keys->momentum_correction && step->last_lr > 0 ? step->lr / step->last_lr : 1;

    r->lr = (float)(step->lr * trust);
    r->momentum = (float)(keys->momentum * correction);
}

static const struct optim_kernel optim_lars = {true, update_refine_lars, update_lars};

/* ---- optimisers with a rate per weight, as in PyTorch (torch.optim, 1.13): one pass over the
 * weights for all of them; g includes the decay */

struct lanes {
    vec w, g;
    vec state[OPTIMIZER_STATES_MAX];
};

typedef void step_lanes(const struct optim_rule *r, struct lanes *l);

static inline __attribute__((always_inline)) vec
update_adaptive_vector(const struct optim_rule *r, step_lanes *step, float *w, float *const state[],
                       int states, size_t offset, const float *g)
{
    struct lanes l = {.w = vec_load(w), .g = vec_load(g)};
    vec gradient = l.g;

    for (int k = 0; k < states; k++)
        l.state[k] = vec_load(state[k] + offset);
    l.g += vec_all(r->decay) * l.w;
    step(r, &l);
    for (int k = 0; k < states; k++)
        vec_store(state[k] + offset, l.state[k]);
    vec_store(w, l.w);
    return gradient * gradient;
}

static inline __attribute__((always_inline)) vec
update_adaptive_rest(const struct optim_rule *r, step_lanes *step, float *w, float *const state[],
                     int states, size_t offset, const float *g, size_t n)
{
    float weights[VEC] = {0}, gradients[VEC] = {0};
    float memory[OPTIMIZER_STATES_MAX][VEC] = {{0}};
    float *const memories[OPTIMIZER_STATES_MAX] = {memory[0], memory[1], memory[2]};

    memcpy(weights, w, n * sizeof *w);
    memcpy(gradients, g, n * sizeof *g);
    for (int k = 0; k < states; k++)
        memcpy(memory[k], state[k] + offset, n * sizeof *w);
    vec squares = update_adaptive_vector(r, step, weights, memories, states, 0, gradients);
    memcpy(w, weights, n * sizeof *w);
    for (int k = 0; k < states; k++)
        memcpy(state[k] + offset, memory[k], n * sizeof *w);
    return squares;
}

static inline __attribute__((always_inline)) double
update_adaptive(const struct optim_rule *r, step_lanes *step, float *w, float *const state[],
                int states, const float *g, size_t n)
{
    struct optim_rule rule = *r; /* a copy that stores cannot alias */
    double sum = 0;

    for (size_t first = 0; first < n; first += OPTIM_FLOATS_IN_SUM) {
        size_t end = n - first < OPTIM_FLOATS_IN_SUM ? n : first + OPTIM_FLOATS_IN_SUM, i = first;
        vec squares = {0};
        for (; i + VEC <= end; i += VEC)
            squares += update_adaptive_vector(&rule, step, w + i, state, states, i, g + i);
        if (i < end)
            squares += update_adaptive_rest(&rule, step, w + i, state, states, i, g + i, end - i);
        for (int k = 0; k < VEC; k++)
            sum += squares[k];
    }
    return sum;
}

/* ---- Adam (arXiv:1412.6980), AdamW (arXiv:1711.05101): the mean, the mean of squares */

static inline void update_step_adam(const struct optim_rule *r, struct lanes *l)
{
    l->state[0] = vec_all(r->mean_keep) * l->state[0] + vec_all(r->mean_add) * l->g;
    l->state[1] = vec_all(r->square_keep) * l->state[1] + vec_all(r->square_add) * (l->g * l->g);
    vec size = vec_sqrt(l->state[1]) * vec_all(r->root) + vec_all(r->eps);
    l->w = vec_all(r->keep) * l->w - vec_all(r->lr) * (l->state[0] / size);
}

static double update_adam(const struct optim_rule *r, float *w, float *const state[],
                          const float *g, size_t n)
{
    return update_adaptive(r, update_step_adam, w, state, 2, g, n);
}

static void update_refine_adam(struct optim_rule *r, const struct job_optimizer_keys *keys,
                               const struct optim_step *step)
{
    double number = (double)step->number;

    r->lr = (float)(step->lr / (1 - pow(keys->beta1, number)));
    r->root = (float)(1 / sqrt(1 - pow(keys->beta2, number)));
    r->mean_keep = (float)keys->beta1;
    r->mean_add = (float)(1 - keys->beta1);
    r->square_keep = (float)keys->beta2;
    r->square_add = (float)(1 - keys->beta2);
}

static void update_refine_adamw(struct optim_rule *r, const struct job_optimizer_keys *keys,
                                const struct optim_step *step)
{
    update_refine_adam(r, keys, step);
    r->decay = 0;
    r->keep = (float)(1 - (step->decays ? step->lr * keys->weight_decay : 0));
}

static const struct optim_kernel optim_adam = {false, update_refine_adam, update_adam};
static const struct optim_kernel optim_adamw = {false, update_refine_adamw, update_adam};

/* ---- RMSProp (Hinton; centered: Graves 2013): the mean of squares; centered, the mean; with
 * momentum, the velocity */

static inline void update_step_rmsprop(const struct optim_rule *r, struct lanes *l, bool centered,
                                       bool momentum)
{
    vec *velocity = &l->state[centered ? 2 : 1], variance;

    l->state[0] = vec_all(r->square_keep) * l->state[0] + vec_all(r->square_add) * (l->g * l->g);
    variance = l->state[0];
    if (centered) {
        l->state[1] = vec_all(r->square_keep) * l->state[1] + vec_all(r->square_add) * l->g;
        /* rounding may make it slightly negative */
        variance = vec_relu(variance - l->state[1] * l->state[1]);
    }
    vec down = l->g / (vec_sqrt(variance) + vec_all(r->eps));
    if (momentum) {
        down = vec_all(r->momentum) * *velocity + down;
        *velocity = down;
    }
    l->w -= vec_all(r->lr) * down;
}

static inline void update_step_plain(const struct optim_rule *r, struct lanes *l)
{
    update_step_rmsprop(r, l, false, false);
}

static inline void update_step_velocity(const struct optim_rule *r, struct lanes *l)
{
    update_step_rmsprop(r, l, false, true);
}

static inline void update_step_centered(const struct optim_rule *r, struct lanes *l)
{
    update_step_rmsprop(r, l, true, false);
}

static inline void update_step_centered_velocity(const struct optim_rule *r, struct lanes *l)
{
    update_step_rmsprop(r, l, true, true);
}

static double update_rmsprop(const struct optim_rule *r, float *w, float *const state[],
                             const float *g, size_t n)
{
    if (r->centered)
        return r->momentum > 0
                   ? update_adaptive(r, update_step_centered_velocity, w, state, 3, g, n)
                   : update_adaptive(r, update_step_centered, w, state, 2, g, n);
    return r->momentum > 0 ? update_adaptive(r, update_step_velocity, w, state, 2, g, n)
                           : update_adaptive(r, update_step_plain, w, state, 1, g, n);
}

static void update_refine_rmsprop(struct optim_rule *r, const struct job_optimizer_keys *keys,
                                  const struct optim_step *step)
{
    (void)step;
    r->square_keep = (float)keys->alpha;
    r->square_add = (float)(1 - keys->alpha);
}

static const struct optim_kernel optim_rmsprop = {false, update_refine_rmsprop, update_rmsprop};

/* ---- Adagrad (Duchi et al. 2011): the sum of squares */

static inline void update_step_adagrad(const struct optim_rule *r, struct lanes *l)
{
    l->state[0] += l->g * l->g;
    l->w -= vec_all(r->lr) * (l->g / (vec_sqrt(l->state[0]) + vec_all(r->eps)));
}

static double update_adagrad(const struct optim_rule *r, float *w, float *const state[],
                             const float *g, size_t n)
{
    return update_adaptive(r, update_step_adagrad, w, state, 1, g, n);
}

static void update_refine_adagrad(struct optim_rule *r, const struct job_optimizer_keys *keys,
                                  const struct optim_step *step)
{
    r->lr = (float)(step->lr / (1 + (double)(step->number - 1) * keys->lr_decay));
}

static const struct optim_kernel optim_adagrad = {false, update_refine_adagrad, update_adagrad};

/* ---- Adadelta (arXiv:1212.5701): the mean of squares, and that of the steps */

static inline void update_step_adadelta(const struct optim_rule *r, struct lanes *l)
{
    vec keep = vec_all(r->square_keep), add = vec_all(r->square_add), eps = vec_all(r->eps);

    l->state[0] = keep * l->state[0] + add * (l->g * l->g);
    vec down = vec_sqrt(l->state[1] + eps) / vec_sqrt(l->state[0] + eps) * l->g;
    l->state[1] = keep * l->state[1] + add * (down * down);
    l->w -= vec_all(r->lr) * down;
}

static double update_adadelta(const struct optim_rule *r, float *w, float *const state[],
                              const float *g, size_t n)
{
    return update_adaptive(r, update_step_adadelta, w, state, 2, g, n);
}

static void update_refine_adadelta(struct optim_rule *r, const struct job_optimizer_keys *keys,
                                   const struct optim_step *step)
{
    (void)step;
    r->square_keep = (float)keys->rho;
    r->square_add = (float)(1 - keys->rho);
}

static const struct optim_kernel optim_adadelta = {false, update_refine_adadelta, update_adadelta};

static const struct optim_kernel *const kernels[] = {
    [JOB_OPTIMIZER_SGD] = &optim_sgd,         [JOB_OPTIMIZER_SGDW] = &optim_sgdw,
    [JOB_OPTIMIZER_LARS] = &optim_lars,       [JOB_OPTIMIZER_ADAM] = &optim_adam,
    [JOB_OPTIMIZER_ADAMW] = &optim_adamw,     [JOB_OPTIMIZER_RMSPROP] = &optim_rmsprop,
    [JOB_OPTIMIZER_ADAGRAD] = &optim_adagrad, [JOB_OPTIMIZER_ADADELTA] = &optim_adadelta,
};

const struct optim_kernel *optim_kernel_of(enum job_optimizer name)
{
    return kernels[name];
}

struct optim_rule optim_rule_of(enum job_optimizer name, const struct job_optimizer_keys *keys,
                                const struct optim_step *step)
{
    struct optim_rule r = {
        .lr = (float)step->lr,
        .decay = step->decays ? (float)keys->weight_decay : 0,
        .keep = 1,
        .momentum = (float)keys->momentum,
        .ahead = (float)keys->momentum,
        .nesterov = keys->nesterov,
        .centered = keys->centered,
        .eps = (float)keys->eps,
    };

    if (kernels[name]->refine)
        kernels[name]->refine(&r, keys, step);
    return r;
}
