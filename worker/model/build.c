/* model_create: from the architecture table to units, blocks and memory. */
#include <stdlib.h>
#include <string.h>

#include "worker/kernels/gemm.h"
#include "worker/layers/conv_grouped.h"
#include "worker/model/internal.h"

void *model_allocate(struct model *m, size_t bytes, struct error *e)
{
    void *p;
    bytes = (bytes + 63) & ~(size_t)63;
    if (posix_memalign(&p, 64, bytes ? bytes : 64)) {
        error_set(e, ERR_NO_MEMORY,
                  "no memory for the model: %zu MiB more are needed beside %zu MiB", bytes >> 20,
                  m->memory_bytes >> 20);
        return NULL;
    }
    memset(p, 0, bytes);
    m->memory_bytes += bytes;
    return p;
}

static int allocate_floats(struct model *m, float **p, size_t floats, struct error *e)
{
    *p = model_allocate(m, floats * sizeof(float), e);
    return *p ? 0 : -(int)e->code;
}

static void add_unit(const struct arch_conv *c, void *context)
{
    struct model *m = context;
    struct unit *u = &m->units[m->unit_count++];

    memcpy(u->name, c->name, sizeof u->name);
    memcpy(u->bn_name, c->bn_name, sizeof u->bn_name);
    u->conv = conv_make(c->in_size, c->in_channels, c->out_channels, c->kernel, c->stride,
                        c->padding, c->groups);
}

static void count_unit(const struct arch_conv *c, void *context)
{
    (void)c;
    ++*(int *)context;
}

/* "layer1.0.conv2" belongs to block "layer1.0." */
static size_t block_prefix(const char *name)
{
    const char *dot = strchr(name, '.');
    return dot && (dot = strchr(dot + 1, '.')) ? (size_t)(dot + 1 - name) : 0;
}

static void group_blocks(struct model *m)
{
    const char *open = "";
    for (int i = 1; i < m->unit_count; i++) {
        const char *name = m->units[i].name;
        size_t prefix = block_prefix(name);
        if (block_prefix(open) != prefix || strncmp(open, name, prefix) != 0)
            m->blocks[m->block_count++] = (struct block){.first = i, .downsample = -1};
        open = name;
        struct block *b = &m->blocks[m->block_count - 1];
        if (!strncmp(name + prefix, "downsample", 10))
            b->downsample = i;
        else
            b->units++;
    }
    for (int i = 0; i < m->block_count; i++)
        block_last(m, &m->blocks[i])->starts_at_zero = true;
}

static int build_graph(struct model *m, struct error *e)
{
    const struct model_config *c = &m->config;
    int units = 0;

    arch_each_conv(c->arch, c->stem, c->image_size, count_unit, &units);
    m->units = calloc((size_t)units, sizeof *m->units);
    m->blocks = calloc((size_t)units, sizeof *m->blocks);
    m->lanes = calloc((size_t)c->threads, sizeof *m->lanes);
    if (!m->units || !m->blocks || !m->lanes)
        return error_set(e, ERR_NO_MEMORY, "no memory for a model's layers");
    arch_each_conv(c->arch, c->stem, c->image_size, add_unit, m);
    for (int i = 0; i < m->unit_count; i++)
        if (m->units[i].conv.groups > 1 && !conv_grouped_takes(&m->units[i].conv))
            return error_set(e, ERR_UNSUPPORTED,
                             "%s of %s: %d groups of %d channels are not supported by this version",
                             m->units[i].name, c->arch->name, m->units[i].conv.groups,
                             m->units[i].conv.window.channels / m->units[i].conv.groups);
    group_blocks(m);
    m->features = block_last(m, &m->blocks[m->block_count - 1])->conv.out_channels;
    m->pools = c->stem == JOB_STEM_IMAGENET;
    if (m->pools)
        m->pool = window_make(m->units[0].conv.window.out, m->units[0].conv.out_channels, 3, 2, 1);
    return 0;
}

static size_t unit_floats(const struct model *m, const struct unit *u)
{
    return (size_t)m->config.batch * unit_pixels(u) * unit_channels(u);
}

static size_t input_floats(const struct model *m, const struct unit *u)
{
    const struct window *w = &u->conv.window;
    return (size_t)m->config.batch * (size_t)w->in * (size_t)w->in * (size_t)w->channels;
}

/* Seven rows of C numbers. */
static int allocate_channels(struct model *m, struct unit *u, struct error *e)
{
    float **rows[] = {&u->batch_mean, &u->inv_sd, &u->scale, &u->shift, &u->ga, &u->gb, &u->gc};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (allocate_floats(m, rows[i], unit_channels(u), e))
            return -(int)e->code;
    return 0;
}

static bool ends_block(const struct model *m, int unit)
{
    for (int i = 0; i < m->block_count; i++)
        if (unit == m->blocks[i].first + m->blocks[i].units - 1 || unit == m->blocks[i].downsample)
            return true;
    return false;
}

/* Every z and y is kept for backward. */
static int allocate_activations(struct model *m, struct error *e)
{
    for (int i = 0; i < m->unit_count; i++) {
        struct unit *u = &m->units[i];
        if (allocate_floats(m, &u->z, unit_floats(m, u), e))
            return -(int)e->code;
        if (!ends_block(m, i) && allocate_floats(m, &u->y, unit_floats(m, u), e))
            return -(int)e->code;
    }
    for (int i = 0; i < m->block_count; i++) {
        struct block *b = &m->blocks[i];
        if (allocate_floats(m, &b->out, unit_floats(m, block_last(m, b)), e))
            return -(int)e->code;
    }
    return 0;
}

/* Evaluation: a block's input and three more take turns, and batch norm works in place. */
static void share_activations(struct model *m)
{
    int in = 0;
    m->units[0].z = m->units[0].y = m->work[1];
    if (!m->pools)
        m->pooled = m->work[1], in = 1;
    else
        m->pooled = m->work[0];
    for (int i = 0; i < m->block_count; i++) {
        struct block *b = &m->blocks[i];
        int at = in;
        for (int k = 0; k < b->units; k++) {
            struct unit *u = &m->units[b->first + k];
            at = at == (in + 1) % 4 ? (in + 2) % 4 : (in + 1) % 4;
            u->z = u->y = m->work[at];
        }
        b->out = m->work[at];
        if (b->downsample >= 0)
            m->units[b->downsample].z = m->work[(in + 3) % 4];
        in = at;
    }
}

static int allocate_work(struct model *m, struct error *e)
{
    size_t largest = 0;
    for (int i = 0; i < m->unit_count; i++) {
        size_t out = unit_floats(m, &m->units[i]), in = i ? input_floats(m, &m->units[i]) : 0;
        largest = out > largest ? out : largest;
        largest = in > largest ? in : largest;
    }
    for (int i = 0; i < 4; i++)
        if (allocate_floats(m, &m->work[i], largest, e))
            return -(int)e->code;
    return 0;
}

static int allocate_lane(struct model *m, int t, struct error *e)
{
    struct lane *l = &m->lanes[t];
    size_t scratch = 0, dw = 0, widest = 0;

    for (int i = 0; i < m->unit_count; i++) {
        const struct unit *u = &m->units[i];
        size_t s = conv_scratch_floats(&u->conv), w = conv_weights(&u->conv);
        scratch = s > scratch ? s : scratch;
        dw = w > dw ? w : dw;
        widest = unit_channels(u) > widest ? unit_channels(u) : widest;
    }
    if (allocate_floats(m, &l->scratch, scratch, e) || allocate_floats(m, &l->shift, widest, e))
        return -(int)e->code;
    if (t > 0 && !m->config.inference && allocate_floats(m, &l->dw, dw, e))
        return -(int)e->code;
    double **sums[] = {&l->sum, &l->square_sum, &l->branch_sum};
    for (int i = 0; i < 3; i++)
        if (!(*sums[i] = model_allocate(m, widest * sizeof(double), e)))
            return -(int)e->code;
    return 0;
}

static int allocate_head(struct model *m, struct error *e)
{
    size_t n = (size_t)m->config.batch;
    size_t pooled = n * (size_t)m->pool.out * (size_t)m->pool.out * (size_t)m->pool.channels;

    if (m->pools && !m->config.inference) {
        if (allocate_floats(m, &m->pooled, pooled, e) ||
            !(m->pool_tap = model_allocate(m, pooled, e)))
            return -(int)e->code;
    }
    if (allocate_floats(m, &m->average, n * (size_t)m->features, e) ||
        allocate_floats(m, &m->d_average, n * (size_t)m->features, e) ||
        allocate_floats(m, &m->logits, n * (size_t)m->config.classes, e))
        return -(int)e->code;
    return 0;
}

static int allocate(struct model *m, struct error *e)
{
    if (allocate_floats(m, &m->params, m->param_count, e) ||
        allocate_floats(m, &m->stats, m->stat_count, e))
        return -(int)e->code;
    if (!m->config.inference && allocate_floats(m, &m->grads, m->param_count, e))
        return -(int)e->code;
    for (int i = 0; i < m->unit_count; i++)
        if (allocate_channels(m, &m->units[i], e))
            return -(int)e->code;
    for (int t = 0; t < m->config.threads; t++)
        if (allocate_lane(m, t, e))
            return -(int)e->code;
    if (allocate_work(m, e) || allocate_head(m, e))
        return -(int)e->code;
    if (m->config.inference)
        share_activations(m);
    else if (allocate_activations(m, e))
        return -(int)e->code;
    return 0;
}

/* Who reads whose output. */
static void connect_blocks(struct model *m)
{
    const float *in = m->pools ? m->pooled : m->units[0].y;
    for (int i = 0; i < m->block_count; i++) {
        m->blocks[i].in = in;
        in = m->blocks[i].out;
    }
}

static int check_config(const struct model_config *c, struct error *e)
{
    if (!c->arch->built)
        return error_set(e, ERR_UNSUPPORTED, "model.arch \"%s\" is not supported by this version",
                         c->arch->name);
    if (c->image_size < 32)
        return error_set(e, ERR_INVALID, "model.image_size is %d; at least 32 is needed",
                         c->image_size);
    if (c->classes < 1 || c->batch < 1 || c->threads < 1)
        return error_set(e, ERR_INVALID,
                         "classes, batch and threads must be at least 1 (are %d, %d, %d)",
                         c->classes, c->batch, c->threads);
    return 0;
}

int model_create(const struct model_config *config, struct model **out, struct error *e)
{
    int status = check_config(config, e);
    if (status)
        return status;
    gemm_single_threaded();
    struct model *m = calloc(1, sizeof *m);
    if (!m)
        return error_set(e, ERR_NO_MEMORY, "no memory for a model");
    m->config = *config;
    status = build_graph(m, e);
    if (!status)
        status = model_lay_out_tensors(m, e);
    if (!status)
        status = allocate(m, e);
    if (status) {
        model_destroy(m);
        return status;
    }
    connect_blocks(m);
    *out = m;
    return 0;
}

static void free_unit(struct model *m, struct unit *u)
{
    float *rows[] = {u->batch_mean, u->inv_sd, u->scale, u->shift, u->ga, u->gb, u->gc};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        free(rows[i]);
    if (!m->config.inference) {
        free(u->z);
        free(u->y);
    }
}

static void free_lane(struct lane *l)
{
    free(l->scratch);
    free(l->dw);
    free(l->shift);
    free(l->sum);
    free(l->square_sum);
    free(l->branch_sum);
}

void model_destroy(struct model *m)
{
    if (!m)
        return;
    for (int i = 0; i < m->unit_count; i++)
        free_unit(m, &m->units[i]);
    for (int i = 0; !m->config.inference && i < m->block_count; i++)
        free(m->blocks[i].out);
    for (int t = 0; m->lanes && t < m->config.threads; t++)
        free_lane(&m->lanes[t]);
    if (!m->config.inference && m->pools)
        free(m->pooled);
    for (int i = 0; i < 4; i++)
        free(m->work[i]);
    void *rest[] = {m->units, m->blocks,   m->lanes,   m->tensors, m->params,   m->grads,
                    m->stats, m->pool_tap, m->average, m->logits,  m->d_average};
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++)
        free(rest[i]);
    free(m);
}

float *model_params(struct model *m)
{
    return m->params;
}

float *model_grads(struct model *m)
{
    return m->grads;
}

float *model_stats(struct model *m)
{
    return m->stats;
}

size_t model_param_count(const struct model *m)
{
    return m->param_count;
}

size_t model_stat_count(const struct model *m)
{
    return m->stat_count;
}

size_t model_memory_bytes(const struct model *m)
{
    return m->memory_bytes;
}

int model_threads(const struct model *m)
{
    return m->config.threads;
}

void model_freeze_bn(struct model *m, bool frozen)
{
    m->frozen = frozen;
}

void model_params_changed(struct model *m)
{
    (void)m; /* nothing is derived from the parameters ahead of time */
}
