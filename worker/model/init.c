/* Initial weights: tensor t draws from the stream (seed, 0, t), so the seed alone decides. */
#include <math.h>

#include "common/rng.h"
#include "common/run/stall_report.h"
#include "worker/model/internal.h"
#include "worker/model/normal.h"

static void init_fill(float *x, size_t count, float value)
{
    for (size_t i = 0; i < count; i++)
        x[i] = value;
}

static void init_fill_uniform(float *x, size_t count, double bound, struct rng r)
{
    for (size_t i = 0; i < count; i++)
        x[i] = (float)rng_range(&r, -bound, bound);
}

/* Glorot and Bengio 2010, eq. 16: of TensorFlow's layers. Biases are 0. */
static void init_cnn_tensor(struct model *m, const struct model_tensor *t, struct rng r)
{
    double taps = t->dims == 4 ? (double)(t->shape[2] * t->shape[3]) : 1;
    double bound = sqrt(6 / (taps * (double)(t->shape[0] + t->shape[1])));

    if (t->dims > 1)
        init_fill_uniform(m->params + t->offset, t->count, bound, r);
    else
        init_fill(m->params + t->offset, t->count, 0);
}

static void init_tensor(struct model *m, const struct model_tensor *t, struct rng r)
{
    float *x = m->params + t->offset;
    double bound = 1 / sqrt(m->features);

    switch (t->kind) {
    case MODEL_CONV_WEIGHT: /* He et al., arXiv:1502.01852, fan_out */
        normal_fill(x, t->count, sqrt(2.0 / (double)(t->shape[0] * t->shape[2] * t->shape[3])), &r);
        break;
    case MODEL_FC_WEIGHT:
    case MODEL_FC_BIAS:
        init_fill_uniform(x, t->count, bound, r);
        break;
    default:
        init_fill(x, t->count, t->kind == MODEL_BN_GAMMA);
    }
}

void model_init(struct model *m, int64_t seed)
{
    for (size_t i = 0; i < m->trainable_count; i++) {
        struct rng r = rng_stream(seed, 0, (int64_t)i, RNG_MODEL);
        if (m->cnn)
            init_cnn_tensor(m, &m->tensors[i], r);
        else
            init_tensor(m, &m->tensors[i], r);
        stall_progress_add(1);
    }
    for (int i = 0; i < m->unit_count && !m->cnn; i++) {
        const struct unit *u = &m->layout->units[i];
        if (u->starts_at_zero && m->config.zero_init_residual)
            init_fill(m->params + u->gamma, unit_channels(u), 0);
        init_fill(m->stats + u->mean, unit_channels(u), 0);
        init_fill(m->stats + u->var, unit_channels(u), 1);
    }
}
