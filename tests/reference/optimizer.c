/* The definitions of the optimisers, without tricks. */
#include <math.h>

#include "tests/reference/reference.h"

static double decay_of(const struct job_optimizer_keys *k, const struct optim_step *s)
{
    return s->decays ? k->weight_decay : 0;
}

static void sgd_with(double shrink, double decay, const struct job_optimizer_keys *k,
                     const struct optim_step *s, float *w, float *v, const float *g, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double d = g[i] + decay * w[i], velocity = k->momentum * v[i] + d;
        double step = k->nesterov ? d + k->momentum * velocity : velocity;
        v[i] = (float)velocity;
        w[i] = (float)(shrink * w[i] - s->lr * step);
    }
}

static void reference_sgd(const struct job_optimizer_keys *k, const struct optim_step *s, float *w,
                          float *const state[], const float *g, size_t n)
{
    sgd_with(1, decay_of(k, s), k, s, w, state[0], g, n);
}

static void reference_sgdw(const struct job_optimizer_keys *k, const struct optim_step *s, float *w,
                           float *const state[], const float *g, size_t n)
{
    sgd_with(1 - s->lr / s->peak_lr * decay_of(k, s), 0, k, s, w, state[0], g, n);
}

static void reference_lars(const struct job_optimizer_keys *k, const struct optim_step *s, float *w,
                           float *const state[], const float *g, size_t n)
{
    double ww = 0, gg = 0, decay = decay_of(k, s), trust = 1, correction = 1;
    float *m = state[0];

    for (size_t i = 0; i < n; i++) {
        ww += (double)w[i] * w[i];
        gg += (double)g[i] * g[i];
    }
    if (!s->excluded && ww > 0 && gg > 0)
        trust = k->lars_eta * sqrt(ww) / (sqrt(gg) + decay * sqrt(ww));
    if (k->momentum_correction && s->last_lr > 0)
        correction = s->lr / s->last_lr;
    for (size_t i = 0; i < n; i++) {
        double step = s->lr * trust * (g[i] + decay * w[i]);
        double momentum = k->momentum * correction * m[i] + step;
        m[i] = (float)momentum;
        w[i] = (float)(w[i] - (k->nesterov ? k->momentum * momentum + step : momentum));
    }
}

static void adam_with(double shrink, double decay, const struct job_optimizer_keys *k,
                      const struct optim_step *s, float *w, float *const state[], const float *g,
                      size_t n)
{
    double rest1 = 1 - pow(k->beta1, (double)s->number);
    double rest2 = 1 - pow(k->beta2, (double)s->number);

    for (size_t i = 0; i < n; i++) {
        double d = g[i] + decay * w[i];
        double m = k->beta1 * state[0][i] + (1 - k->beta1) * d;
        double v = k->beta2 * state[1][i] + (1 - k->beta2) * d * d;
        double mean = m / rest1, square = v / rest2;
        state[0][i] = (float)m;
        state[1][i] = (float)v;
        w[i] = (float)(shrink * w[i] - s->lr * mean / (sqrt(square) + k->eps));
    }
}

static void reference_adam(const struct job_optimizer_keys *k, const struct optim_step *s, float *w,
                           float *const state[], const float *g, size_t n)
{
    adam_with(1, decay_of(k, s), k, s, w, state, g, n);
}

static void reference_adamw(const struct job_optimizer_keys *k, const struct optim_step *s,
                            float *w, float *const state[], const float *g, size_t n)
{
    adam_with(1 - s->lr * decay_of(k, s), 0, k, s, w, state, g, n);
}

static void reference_rmsprop(const struct job_optimizer_keys *k, const struct optim_step *s,
                              float *w, float *const state[], const float *g, size_t n)
{
    float *mean = k->centered ? state[1] : NULL;
    float *velocity = k->momentum > 0 ? state[k->centered ? 2 : 1] : NULL;

    for (size_t i = 0; i < n; i++) {
        double d = g[i] + decay_of(k, s) * w[i];
        double v = k->alpha * state[0][i] + (1 - k->alpha) * d * d, variance = v;
        state[0][i] = (float)v;
        if (mean) {
            double m = k->alpha * mean[i] + (1 - k->alpha) * d;
            mean[i] = (float)m;
            variance = fmax(v - m * m, 0);
        }
        double step = d / (sqrt(variance) + k->eps);
        if (velocity) {
            step += k->momentum * velocity[i];
            velocity[i] = (float)step;
        }
        w[i] = (float)(w[i] - s->lr * step);
    }
}

static void reference_adagrad(const struct job_optimizer_keys *k, const struct optim_step *s,
                              float *w, float *const state[], const float *g, size_t n)
{
    double lr = s->lr / (1 + (double)(s->number - 1) * k->lr_decay);

    for (size_t i = 0; i < n; i++) {
        double d = g[i] + decay_of(k, s) * w[i], sum = state[0][i] + d * d;
        state[0][i] = (float)sum;
        w[i] = (float)(w[i] - lr * d / (sqrt(sum) + k->eps));
    }
}

static void reference_adadelta(const struct job_optimizer_keys *k, const struct optim_step *s,
                               float *w, float *const state[], const float *g, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double d = g[i] + decay_of(k, s) * w[i];
        double v = k->rho * state[0][i] + (1 - k->rho) * d * d;
        double step = sqrt(state[1][i] + k->eps) / sqrt(v + k->eps) * d;
        state[0][i] = (float)v;
        state[1][i] = (float)(k->rho * state[1][i] + (1 - k->rho) * step * step);
        w[i] = (float)(w[i] - s->lr * step);
    }
}

optim_reference *optim_reference_of(enum job_optimizer name)
{
    static optim_reference *const references[] = {
        [JOB_OPTIMIZER_SGD] = reference_sgd,         [JOB_OPTIMIZER_SGDW] = reference_sgdw,
        [JOB_OPTIMIZER_LARS] = reference_lars,       [JOB_OPTIMIZER_ADAM] = reference_adam,
        [JOB_OPTIMIZER_ADAMW] = reference_adamw,     [JOB_OPTIMIZER_RMSPROP] = reference_rmsprop,
        [JOB_OPTIMIZER_ADAGRAD] = reference_adagrad, [JOB_OPTIMIZER_ADADELTA] = reference_adadelta,
    };
    return references[name];
}
