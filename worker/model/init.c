/* Initial weights: tensor t draws from the stream (seed, 0, t), so they depend on the seed alone.
 */
#include <math.h>

#include "common/progress.h"
#include "common/rng.h"
#include "worker/model/internal.h"

/* Two standard normals (Box and Muller 1958). */
static void normal_pair(struct rng *r, double out[2])
{
    double radius = sqrt(-2 * log(1 - rng_unit(r))), angle = 2 * M_PI * rng_unit(r);
    out[0] = radius * cos(angle);
    out[1] = radius * sin(angle);
}

static void fill(float *x, size_t count, float value)
{
    for (size_t i = 0; i < count; i++)
        x[i] = value;
}

static void fill_normal(float *x, size_t count, double sd, struct rng r)
{
    double pair[2];
    for (size_t i = 0; i < count; i++) {
        if (i % 2 == 0)
            normal_pair(&r, pair);
        x[i] = (float)(sd * pair[i % 2]);
    }
}

static void init_tensor(struct model *m, const struct model_tensor *t, struct rng r)
{
    float *x = m->params + t->offset;
    double bound = 1 / sqrt(m->features);

    switch (t->kind) {
    case MODEL_CONV_WEIGHT: /* He et al., arXiv:1502.01852, fan_out */
        fill_normal(x, t->count, sqrt(2.0 / (double)(t->shape[0] * t->shape[2] * t->shape[3])), r);
        break;
    case MODEL_FC_WEIGHT:
    case MODEL_FC_BIAS:
        for (size_t i = 0; i < t->count; i++)
            x[i] = (float)rng_range(&r, -bound, bound);
        break;
    default:
        fill(x, t->count, t->kind == MODEL_BN_GAMMA);
    }
}

void model_init(struct model *m, int64_t seed)
{
    for (size_t i = 0; i < m->trainable_count; i++) {
        init_tensor(m, &m->tensors[i], rng_stream(seed, 0, (int64_t)i, RNG_MODEL));
        progress_add(1);
    }
    for (int i = 0; i < m->unit_count; i++) {
        const struct unit *u = &m->units[i];
        if (u->starts_at_zero && m->config.zero_init_residual)
            fill(m->params + u->gamma, unit_channels(u), 0);
        fill(m->stats + u->mean, unit_channels(u), 0);
        fill(m->stats + u->var, unit_channels(u), 1);
    }
    model_params_changed(m);
}
