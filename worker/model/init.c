/* Tensor t draws from the stream (seed, 0, t), so the weights depend on the seed only. */
#include "worker/model/init.h"

#include <math.h>
#include <stdbool.h>

#include "common/rng.h"
#include "common/run/stall_report.h"
#include "worker/model/units.h"
#include "worker/model/weights.h"

/* ---- normal random numbers */

/* glibc has vector versions (libmvec), exact to 4 units in the last place, but <math.h> declares
 * them only under -ffast-math. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
extern double log(double) __attribute__((simd("notinbranch")));
extern double sin(double) __attribute__((simd("notinbranch")));
extern double cos(double) __attribute__((simd("notinbranch")));
#endif

enum { PAIRS = 256 }; /* at a time */

/* Relative; libmvec's errors add up to less than 2^-48. */
#define DOUBT 0x1p-44

/* 1 - u and 2 pi v of pairs from `first` on; a pair takes one block of the generator. */
static void init_normal_draw_pairs(const struct rng *stream, size_t first, double rest[PAIRS],
                                   double angle[PAIRS])
{
    const uint32_t *counter = stream->counter;

    for (int i = 0; i < PAIRS; i++) {
        uint32_t at[4] = {counter[0] + (uint32_t)first + (uint32_t)i, counter[1], counter[2],
                          counter[3]};
        uint32_t words[4];
        rng_philox(stream->key, at, words);
        rest[i] = 1 - rng_unit_of(words[0], words[1]);
        angle[i] = 2 * M_PI * rng_unit_of(words[2], words[3]);
    }
}

/* Separate loops, or the compiler combines sine and cosine into one scalar call. */
static void init_normal_fast(const double rest[PAIRS], const double angle[PAIRS], double sd,
                             double normals[2][PAIRS])
{
    double radius[PAIRS];

    for (int i = 0; i < PAIRS; i++)
        radius[i] = sqrt(-2 * log(rest[i]));
    for (int i = 0; i < PAIRS; i++)
        normals[0][i] = sd * (radius[i] * cos(angle[i]));
    for (int i = 0; i < PAIRS; i++)
        normals[1][i] = sd * (radius[i] * sin(angle[i]));
}

static bool init_normal_has_doubtful(const double x[PAIRS])
{
    int count = 0;

    for (int i = 0; i < PAIRS; i++)
        count += (float)(x[i] * (1 - DOUBT)) != (float)(x[i] * (1 + DOUBT));
    return count > 0;
}

static void init_normal_exact(const double rest[PAIRS], const double angle[PAIRS], double sd,
                              double normals[2][PAIRS])
{
    for (int i = 0; i < PAIRS; i++) {
        volatile double one_rest = rest[i]; /* prevents vectorisation */
        double radius = sqrt(-2 * log(one_rest));
        normals[0][i] = sd * (radius * cos(angle[i]));
        normals[1][i] = sd * (radius * sin(angle[i]));
    }
}

void normal_fill(float *x, size_t count, double sd, const struct rng *stream)
{
    double rest[PAIRS], angle[PAIRS], normals[2][PAIRS];

    for (size_t done = 0; done < count; done += 2 * PAIRS) {
        init_normal_draw_pairs(stream, done / 2, rest, angle);
        init_normal_fast(rest, angle, sd, normals);
        if (init_normal_has_doubtful(normals[0]) || init_normal_has_doubtful(normals[1]))
            init_normal_exact(rest, angle, sd, normals);
        for (size_t i = 0; i < 2 * PAIRS && done + i < count; i++)
            x[done + i] = (float)normals[i % 2][i / 2];
    }
}

/* ---- tensors */

static void init_fill(float *x, size_t count, float value)
{
    for (size_t i = 0; i < count; i++)
        x[i] = value;
}

static void init_fill_uniform(float *x, size_t count, double low, double high, struct rng r)
{
    for (size_t i = 0; i < count; i++)
        x[i] = (float)rng_range(&r, low, high);
}

/* Glorot and Bengio 2010, eq. 16, as in TensorFlow. Biases are 0. */
static void init_cnn_tensor(struct model *m, const struct model_tensor *t, struct rng r)
{
    double taps = t->dims == 4 ? (double)(t->shape[2] * t->shape[3]) : 1;
    double bound = sqrt(6 / (taps * (double)(t->shape[0] + t->shape[1])));

    if (t->dims > 1)
        init_fill_uniform(m->params + t->offset, t->count, -bound, bound, r);
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
        init_fill_uniform(x, t->count, -bound, bound, r);
        break;
    case MODEL_BN_GAMMA:
        if (m->config.bn_init == JOB_BN_UNIFORM)
            init_fill_uniform(x, t->count, 0, 1, r);
        else
            init_fill(x, t->count, 1);
        break;
    default:
        init_fill(x, t->count, 0);
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
    if (m->config.loss == JOB_LOSS_BCE)
        init_fill(m->params + m->fc_bias, (size_t)m->config.classes,
                  -logf((float)m->config.classes));
    for (int i = 0; i < m->unit_count && !m->cnn; i++) {
        const struct unit *u = &m->layout->units[i];
        if (u->starts_at_zero && m->config.zero_init_residual)
            init_fill(m->params + u->gamma, unit_channels(u), 0);
        init_fill(m->stats + u->mean, unit_channels(u), 0);
        init_fill(m->stats + u->var, unit_channels(u), 1);
    }
}
