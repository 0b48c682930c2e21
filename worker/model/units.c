#include "worker/model/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/xalloc.h"
#include "worker/layers/conv_grouped.h"
#include "worker/model/tuning.h"
#include "worker/team/dry_run.h"
#include "worker/team/memory.h"

void *model_count_memory(struct model *m, void *p, size_t bytes, struct error *e)
{
    if (!p) {
        error_set(e, ERR_NO_MEMORY,
                  "no memory for the model: %zu MiB more are needed beside %zu MiB", bytes >> 20,
                  m->memory_bytes >> 20);
        return NULL;
    }
    m->memory_bytes += bytes;
    return p;
}

void *model_allocate(struct model *m, size_t bytes, struct error *e)
{
    return model_count_memory(m, memory_allocate(bytes), bytes, e);
}

void *model_allocate_shared(struct model *m, size_t bytes, struct error *e)
{
    struct memory_extent all = {0, bytes};

    return model_count_memory(m, memory_allocate_shared(bytes, &all, 1, m->config.threads), bytes,
                              e);
}

int model_allocate_floats(struct model *m, float **p, size_t floats, struct error *e)
{
    *p = model_allocate(m, floats * sizeof(float), e);
    return *p ? 0 : -(int)e->code;
}

int model_allocate_own(struct model *m, size_t bytes, struct error *e)
{
    memory_allocate_each((void **)m->own, bytes, m->config.threads);
    for (int t = 0; t < m->config.threads; t++)
        if (!model_count_memory(m, m->own[t], bytes, e))
            return -(int)e->code;
    return 0;
}

struct unit model_make_unit(const struct arch_conv *c, const struct model_config *config)
{
    struct unit u = {.conv = conv_make(c->in_size, c->in_channels, c->out_channels, c->kernel,
                                       c->stride, c->padding, c->groups)};
    if (c->blur_size)
        u.blur = window_make(c->blur_size, c->in_channels, 3, c->blur_stride, 1);
    memcpy(u.name, c->name, sizeof u.name);
    memcpy(u.bn_name, c->bn_name, sizeof u.bn_name);
    model_tuning_apply(config->tuning, &u.conv);
    conv_choose_gemm(&u.conv, config->gemm);
    return u;
}

void model_make_units(struct model *m, const struct arch_conv *convs, int count)
{
    m->layout->units = xcalloc((size_t)count, sizeof *m->layout->units);
    m->accumulators = xcalloc((size_t)parallel_lanes(m->config.threads), sizeof *m->accumulators);
    m->dw = xcalloc((size_t)m->config.threads, sizeof *m->dw);
    m->own = xcalloc((size_t)m->config.threads, sizeof *m->own);
    for (m->unit_count = 0; m->unit_count < count; m->unit_count++)
        m->layout->units[m->unit_count] = model_make_unit(&convs[m->unit_count], &m->config);
}

/* ---- batch norm per channel, between two passes over the images */

void unit_clear_sums(struct model *m, const struct unit *u, struct parallel_share share)
{
    struct parallel_range mine = unit_channel_share(u, share);
    size_t bytes = (mine.end - mine.first) * sizeof(double);

    for (int i = 0; i < parallel_lanes(share.parts) && !dry_run; i++) {
        const struct thread_accumulator *l = &m->accumulators[i];
        memset(l->sum + mine.first, 0, bytes);
        memset(l->square_sum + mine.first, 0, bytes);
        memset(l->branch_sum + mine.first, 0, bytes);
    }
}

struct moments {
    double count, mean, m2;
};

/* Chan et al. 1983: combines the moments of two sets. */
static void units_add_moments(struct moments *a, double count, double mean, double m2)
{
    double total = a->count + count, delta = mean - a->mean;
    if (count == 0)
        return;
    a->m2 += m2 + delta * delta * a->count * count / total;
    a->mean += delta * count / total;
    a->count = total;
}

static struct moments units_moments_of_channel(const struct model *m, size_t j, int lanes)
{
    struct moments all = {0};
    for (int i = 0; i < lanes; i++) {
        const struct thread_accumulator *l = &m->accumulators[i];
        double n = l->rows[j], mean = l->sum[j] / n;
        if (n == 0)
            continue;
        double m2 = l->square_sum[j] - l->sum[j] * mean;
        units_add_moments(&all, n, l->shift[j] + mean, m2 > 0 ? m2 : isnan(m2) ? m2 : 0);
    }
    return all;
}

static void units_set_scale(struct model *m, struct unit *u, size_t j, double mean, double var)
{
    double inv_sd = 1 / sqrt(var + ARCH_BATCHNORM_EPSILON);
    u->batch_mean[j] = (float)mean;
    u->inv_sd[j] = (float)inv_sd;
    u->scale[j] = (float)(m->params[u->gamma + j] * inv_sd);
    u->shift[j] = (float)(m->params[u->beta + j] - m->params[u->gamma + j] * inv_sd * mean);
}

void unit_finish_statistics(struct model *m, struct unit *u, int n, struct parallel_share share)
{
    struct parallel_range mine = unit_channel_share(u, share);
    double momentum = m->config.bn_momentum, count = (double)n * (double)unit_pixels(u);
    float *mean = m->stats + u->mean, *var = m->stats + u->var;

    for (size_t j = mine.first; j < mine.end && !dry_run; j++) {
        struct moments all = units_moments_of_channel(m, j, parallel_lanes(share.parts));
        double biased = all.m2 / count;
        double unbiased =
            count > 1 ? all.m2 / (count - 1) : biased; /* a single value has no variance */
        units_set_scale(m, u, j, all.mean, biased);
        mean[j] = (float)((1 - momentum) * mean[j] + momentum * all.mean);
        var[j] = (float)((1 - momentum) * var[j] + momentum * unbiased);
    }
    unit_clear_sums(m, u, share);
}

void unit_use_running_statistics(struct model *m, struct unit *u)
{
    for (size_t j = 0; j < unit_channels(u); j++)
        units_set_scale(m, u, j, m->stats[u->mean + j], m->stats[u->var + j]);
}

void unit_finish_gradients(struct model *m, struct unit *u, int n, bool shortcut, bool accumulate,
                           struct parallel_share share)
{
    struct parallel_range mine = unit_channel_share(u, share);
    double count = (double)n * (double)unit_pixels(u);
    float *d_gamma = m->grads + u->gamma, *d_beta = m->grads + u->beta;

    for (size_t j = mine.first; j < mine.end && !dry_run; j++) {
        double g = 0, gz = 0;
        for (int i = 0; i < parallel_lanes(share.parts); i++) {
            g += m->accumulators[i].sum[j];
            gz += shortcut ? m->accumulators[i].branch_sum[j] : m->accumulators[i].square_sum[j];
        }
        double inv_sd = u->inv_sd[j], gx = gz * inv_sd; /* sum of g xhat */
        double a = m->params[u->gamma + j] * inv_sd;
        double b = m->config.frozen_bn ? 0 : -a * inv_sd * gx / count;
        u->ga[j] = (float)a;
        u->gb[j] = (float)b;
        u->gc[j] = m->config.frozen_bn ? 0 : (float)(-a * g / count - b * u->batch_mean[j]);
        d_gamma[j] = (float)((accumulate ? d_gamma[j] : 0) + gx);
        d_beta[j] = (float)((accumulate ? d_beta[j] : 0) + g);
    }
}
