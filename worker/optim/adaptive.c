/*
 * The optimisers with a rate of its own for each weight, as PyTorch (torch.optim, 1.13) defines
 * them; the formulas are in common/job/recipe/optimizers.c. They share one pass over the weights.
 */
#include <math.h>
#include <string.h>

#include "common/job/recipe/optimizers.h"
#include "worker/kernels/vec_math.h"
#include "worker/optim/update.h"

/* A vector of weights, their gradients, and what is remembered of them. */
struct lanes {
    vec w, g;
    vec state[OPTIMIZER_STATES_MAX];
};

typedef void step_lanes(const struct optim_rule *r, struct lanes *l);

static inline __attribute__((always_inline)) vec update_vector(const struct optim_rule *r,
                                                               step_lanes *step, float *w,
                                                               float *const state[], int states,
                                                               size_t offset, const float *g)
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

/* The last few weights, in vectors of their own whose rest is 0. */
static inline __attribute__((always_inline)) vec
update_rest(const struct optim_rule *r, step_lanes *step, float *w, float *const state[],
            int states, size_t offset, const float *g, size_t n)
{
    float weights[VEC] = {0}, gradients[VEC] = {0};
    float memory[OPTIMIZER_STATES_MAX][VEC] = {{0}};
    float *const memories[OPTIMIZER_STATES_MAX] = {memory[0], memory[1], memory[2]};

    memcpy(weights, w, n * sizeof *w);
    memcpy(gradients, g, n * sizeof *g);
    for (int k = 0; k < states; k++)
        memcpy(memory[k], state[k] + offset, n * sizeof *w);
    vec squares = update_vector(r, step, weights, memories, states, 0, gradients);
    memcpy(w, weights, n * sizeof *w);
    for (int k = 0; k < states; k++)
        memcpy(state[k] + offset, memory[k], n * sizeof *w);
    return squares;
}

static inline __attribute__((always_inline)) double update_all(const struct optim_rule *r,
                                                               step_lanes *step, float *w,
                                                               float *const state[], int states,
                                                               const float *g, size_t n)
{
    struct optim_rule rule = *r; /* a copy that stores cannot change */
    double sum = 0;

    for (size_t first = 0; first < n; first += OPTIM_FLOATS_IN_SUM) {
        size_t end = n - first < OPTIM_FLOATS_IN_SUM ? n : first + OPTIM_FLOATS_IN_SUM, i = first;
        vec squares = {0};
        for (; i + VEC <= end; i += VEC)
            squares += update_vector(&rule, step, w + i, state, states, i, g + i);
        if (i < end)
            squares += update_rest(&rule, step, w + i, state, states, i, g + i, end - i);
        for (int k = 0; k < VEC; k++)
            sum += squares[k];
    }
    return sum;
}

/* ---- Adam, AdamW: the mean, the mean of squares */

static inline void adaptive_step_adam(const struct optim_rule *r, struct lanes *l)
{
    l->state[0] = vec_all(r->mean_keep) * l->state[0] + vec_all(r->mean_add) * l->g;
    l->state[1] = vec_all(r->square_keep) * l->state[1] + vec_all(r->square_add) * (l->g * l->g);
    vec size = vec_sqrt(l->state[1]) * vec_all(r->root) + vec_all(r->eps);
    l->w = vec_all(r->keep) * l->w - vec_all(r->lr) * (l->state[0] / size);
}

static double adaptive_update_adam(const struct optim_rule *r, float *w, float *const state[],
                                   const float *g, size_t n)
{
    return update_all(r, adaptive_step_adam, w, state, 2, g, n);
}

static void adaptive_refine_adam(struct optim_rule *r, const struct job_optimizer_keys *keys,
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

static void adaptive_refine_adamw(struct optim_rule *r, const struct job_optimizer_keys *keys,
                                  const struct optim_step *step)
{
    adaptive_refine_adam(r, keys, step);
    r->decay = 0;
    r->keep = (float)(1 - (step->decays ? step->lr * keys->weight_decay : 0));
}

const struct optim_kernel optim_adam = {false, adaptive_refine_adam, adaptive_update_adam};
const struct optim_kernel optim_adamw = {false, adaptive_refine_adamw, adaptive_update_adam};

/* ---- RMSProp: the mean of squares; centered, the mean; with momentum, the velocity */

static inline void adaptive_step_rmsprop(const struct optim_rule *r, struct lanes *l, bool centered,
                                         bool momentum)
{
    vec *velocity = &l->state[centered ? 2 : 1], variance;

    l->state[0] = vec_all(r->square_keep) * l->state[0] + vec_all(r->square_add) * (l->g * l->g);
    variance = l->state[0];
    if (centered) {
        l->state[1] = vec_all(r->square_keep) * l->state[1] + vec_all(r->square_add) * l->g;
        /* rounding may make it a little less than 0 */
        variance = vec_relu(variance - l->state[1] * l->state[1]);
    }
    vec down = l->g / (vec_sqrt(variance) + vec_all(r->eps));
    if (momentum) {
        down = vec_all(r->momentum) * *velocity + down;
        *velocity = down;
    }
    l->w -= vec_all(r->lr) * down;
}

static inline void adaptive_step_plain(const struct optim_rule *r, struct lanes *l)
{
    adaptive_step_rmsprop(r, l, false, false);
}

static inline void adaptive_step_velocity(const struct optim_rule *r, struct lanes *l)
{
    adaptive_step_rmsprop(r, l, false, true);
}

static inline void adaptive_step_centered(const struct optim_rule *r, struct lanes *l)
{
    adaptive_step_rmsprop(r, l, true, false);
}

static inline void adaptive_step_centered_velocity(const struct optim_rule *r, struct lanes *l)
{
    adaptive_step_rmsprop(r, l, true, true);
}

static double adaptive_update_rmsprop(const struct optim_rule *r, float *w, float *const state[],
                                      const float *g, size_t n)
{
    if (r->centered)
        return r->momentum > 0 ? update_all(r, adaptive_step_centered_velocity, w, state, 3, g, n)
                               : update_all(r, adaptive_step_centered, w, state, 2, g, n);
    return r->momentum > 0 ? update_all(r, adaptive_step_velocity, w, state, 2, g, n)
                           : update_all(r, adaptive_step_plain, w, state, 1, g, n);
}

static void adaptive_refine_rmsprop(struct optim_rule *r, const struct job_optimizer_keys *keys,
                                    const struct optim_step *step)
{
    (void)step;
    r->square_keep = (float)keys->alpha;
    r->square_add = (float)(1 - keys->alpha);
}

const struct optim_kernel optim_rmsprop = {false, adaptive_refine_rmsprop, adaptive_update_rmsprop};

/* ---- Adagrad: the sum of squares */

static inline void adaptive_step_adagrad(const struct optim_rule *r, struct lanes *l)
{
    l->state[0] += l->g * l->g;
    l->w -= vec_all(r->lr) * (l->g / (vec_sqrt(l->state[0]) + vec_all(r->eps)));
}

static double adaptive_update_adagrad(const struct optim_rule *r, float *w, float *const state[],
                                      const float *g, size_t n)
{
    return update_all(r, adaptive_step_adagrad, w, state, 1, g, n);
}

static void adaptive_refine_adagrad(struct optim_rule *r, const struct job_optimizer_keys *keys,
                                    const struct optim_step *step)
{
    r->lr = (float)(step->lr / (1 + (double)(step->number - 1) * keys->lr_decay));
}

const struct optim_kernel optim_adagrad = {false, adaptive_refine_adagrad, adaptive_update_adagrad};

/* ---- Adadelta: the mean of squares, and that of the steps */

static inline void adaptive_step_adadelta(const struct optim_rule *r, struct lanes *l)
{
    vec keep = vec_all(r->square_keep), add = vec_all(r->square_add), eps = vec_all(r->eps);

    l->state[0] = keep * l->state[0] + add * (l->g * l->g);
    vec down = vec_sqrt(l->state[1] + eps) / vec_sqrt(l->state[0] + eps) * l->g;
    l->state[1] = keep * l->state[1] + add * (down * down);
    l->w -= vec_all(r->lr) * down;
}

static double adaptive_update_adadelta(const struct optim_rule *r, float *w, float *const state[],
                                       const float *g, size_t n)
{
    return update_all(r, adaptive_step_adadelta, w, state, 2, g, n);
}

static void adaptive_refine_adadelta(struct optim_rule *r, const struct job_optimizer_keys *keys,
                                     const struct optim_step *step)
{
    (void)step;
    r->square_keep = (float)keys->rho;
    r->square_add = (float)(1 - keys->rho);
}

const struct optim_kernel optim_adadelta = {false, adaptive_refine_adadelta,
                                            adaptive_update_adadelta};
