/* model_create: from the architecture table to units, blocks and memory. */
#include <stdlib.h>
#include <string.h>

#include "worker/kernels/gemm.h"
#include "worker/layers/conv_grouped.h"
#include "worker/model/bf16.h"
#include "worker/model/tune.h"
#include "worker/team/memory.h"
#include "worker/team/parallel.h"

static int build_model_allocate_floats(struct model *m, float **p, size_t floats, struct error *e)
{
    *p = model_allocate(m, floats * sizeof(float), e);
    return *p ? 0 : -(int)e->code;
}

/* The threads' scratch, each written first by its own. */
static int build_allocate_own(struct model *m, size_t bytes, struct error *e)
{
    memory_allocate_each((void **)m->own, bytes, m->config.threads);
    for (int t = 0; t < m->config.threads; t++)
        if (!model_count_memory(m, m->own[t], bytes, e))
            return -(int)e->code;
    return 0;
}

/* Of the ImageNet stem, behind its convolution. */
static struct window build_pool_of(const struct unit *stem)
{
    return window_make(stem->conv.window.out, stem->conv.out_channels, 3, 2, 1);
}

static int build_blocks(struct model *m, const struct network *n, struct error *e)
{
    const struct model_config *c = &m->config;
    int status = model_make_units(m, n->convs, n->conv_count, e);

    if (status)
        return status;
    m->block_count = n->block_count;
    m->layout->blocks = calloc((size_t)m->block_count, sizeof *m->layout->blocks);
    if (!m->layout->blocks)
        return error_set(e, ERR_NO_MEMORY, "no memory for a model's layers");
    for (int i = 0; i < m->block_count; i++) {
        const struct network_block *b = &n->blocks[i];
        m->layout->blocks[i] =
            (struct block){.first = b->first, .units = b->convs, .downsample = b->downsample};
        block_last(m, &m->layout->blocks[i])->starts_at_zero = true;
    }
    for (int i = 0; i < m->unit_count; i++)
        if (m->layout->units[i].conv.groups > 1 && !conv_grouped_takes(&m->layout->units[i].conv))
            return error_set(
                e, ERR_UNSUPPORTED,
                "%s of %s: %d groups of %d channels are not supported by this version",
                m->layout->units[i].name, c->arch->name, m->layout->units[i].conv.groups,
                m->layout->units[i].conv.window.channels / m->layout->units[i].conv.groups);
    m->features = block_last(m, &m->layout->blocks[m->block_count - 1])->conv.out_channels;
    m->pools = n->pools;
    if (m->pools)
        m->layout->pool = build_pool_of(&m->layout->units[0]);
    return 0;
}

/* Seven rows of C numbers. */
static int build_allocate_channels(struct model *m, struct unit *u, struct error *e)
{
    float **rows[] = {&u->batch_mean, &u->inv_sd, &u->scale, &u->shift, &u->ga, &u->gb, &u->gc};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (build_model_allocate_floats(m, rows[i], unit_channels(u), e))
            return -(int)e->code;
    return 0;
}

static size_t build_number_bytes(const struct model *m)
{
    return model_is_bf16(m) ? sizeof(bf16) : sizeof(float);
}

/* A buffer of the arena for the layout in use; its plan counts in numbers of one image. */
static void *build_buffer_at(const struct model *m, const struct activations *a, int buffer)
{
    if (buffer < 0 || !a->buffers[buffer].size)
        return NULL;
    return (char *)m->arena +
           (size_t)m->layout->batch * a->buffers[buffer].offset * build_number_bytes(m);
}

static void build_place_units(struct model *m, const struct activations *a)
{
    for (int i = 0; i < m->unit_count; i++) {
        const struct activation_unit *from = &a->units[i];
        struct unit *u = &m->layout->units[i];
        if (model_is_bf16(m)) {
            u->half.z = build_buffer_at(m, a, from->z);
            u->half.y = build_buffer_at(m, a, from->y);
            u->half.y_again = build_buffer_at(m, a, from->y_again);
            u->half.g = build_buffer_at(m, a, from->g);
            u->half.dz = build_buffer_at(m, a, from->dz);
            continue;
        }
        u->z = build_buffer_at(m, a, from->z);
        u->y = build_buffer_at(m, a, from->y);
        u->y_again = build_buffer_at(m, a, from->y_again);
        u->g = build_buffer_at(m, a, from->g);
        u->dz = build_buffer_at(m, a, from->dz);
    }
}

static void build_place_blocks(struct model *m, const struct activations *a)
{
    for (int i = 0; i < m->block_count; i++) {
        const struct activation_block *from = &a->blocks[i];
        struct block *b = &m->layout->blocks[i];
        b->derive = from->derive;
        if (model_is_bf16(m)) {
            b->half.out = build_buffer_at(m, a, from->out);
            b->half.out_again = build_buffer_at(m, a, from->out_again);
            b->half.g = build_buffer_at(m, a, from->g);
            continue;
        }
        b->out = build_buffer_at(m, a, from->out);
        b->out_again = build_buffer_at(m, a, from->out_again);
        b->g = build_buffer_at(m, a, from->g);
    }
}

/* For the weights of one convolution after the other. */
static int build_allocate_packed(struct model *m, struct error *e)
{
    size_t most = 0;

    for (int i = 0; i < m->unit_count; i++)
        for (int k = 0; k < 2; k++) {
            size_t n = conv_bf16_packed(&m->layout->units[i].conv, k ? CONV_DATA : CONV_FORWARD);
            most = n > most ? n : most;
        }
    m->packed = model_allocate(m, most * sizeof *m->packed, e);
    return m->packed ? 0 : -(int)e->code;
}

/* Units and blocks of another size, from those of the first, which know their channels and
 * tensors by now. */
static int build_copy_layout(struct model *m, struct layout *l, struct error *e)
{
    struct arch_shape shape = model_shape(&m->config);
    size_t units = (size_t)m->unit_count * sizeof *l->units;
    size_t blocks = (size_t)m->block_count * sizeof *l->blocks;
    struct network n;

    shape.image_size = l->image_size;
    network_make(&shape, &n);
    l->units = malloc(units);
    l->blocks = malloc(blocks);
    if (!l->units || !l->blocks)
        return error_set(e, ERR_NO_MEMORY, "no memory for a model's layers");
    memcpy(l->units, m->layout->units, units);
    memcpy(l->blocks, m->layout->blocks, blocks);
    for (int i = 0; i < m->unit_count; i++)
        l->units[i].conv = model_make_unit(&n.convs[i], &m->config).conv;
    if (m->pools)
        l->pool = build_pool_of(&l->units[0]);
    return 0;
}

static int build_copy_layouts(struct model *m, struct error *e)
{
    for (int i = 1; i < m->layout_count; i++)
        if (build_copy_layout(m, &m->layouts[i], e))
            return -(int)e->code;
    return 0;
}

static void build_place(struct model *m, const struct activations *a)
{
    build_place_units(m, a);
    build_place_blocks(m, a);
    m->layout->tap = build_buffer_at(m, a, a->tap);
    if (model_is_bf16(m)) {
        m->layout->half.in = build_buffer_at(m, a, a->in);
        m->layout->half.in_again = build_buffer_at(m, a, a->in_again);
        m->layout->half.g_in = build_buffer_at(m, a, a->g_in);
        return;
    }
    m->layout->in = build_buffer_at(m, a, a->in);
    m->layout->in_again = build_buffer_at(m, a, a->in_again);
    m->layout->g_in = build_buffer_at(m, a, a->g_in);
}

/* Of so many numbers. Each buffer of the first layout shared out as the passes over it are: by
 * images, and by rows of them. In the order of their first use, so that what is kept until backward
 * has its way. */
static int build_allocate_arena(struct model *m, const struct activations *a, size_t numbers,
                                struct error *e)
{
    size_t batch = (size_t)m->config.batch * build_number_bytes(m),
           bytes = build_number_bytes(m) * numbers;
    struct memory_extent *extents = calloc((size_t)a->count + 1, sizeof *extents);

    if (!extents)
        return error_set(e, ERR_NO_MEMORY, "no memory for a model's layers");
    for (int i = 0; i < a->count; i++)
        extents[i] =
            (struct memory_extent){batch * a->buffers[i].offset, batch * a->buffers[i].size};
    m->arena = model_count_memory(
        m, memory_allocate_shared(bytes, extents, a->count, m->config.threads), bytes, e);
    free(extents);
    return m->arena ? 0 : -(int)e->code;
}

static void build_plan_layout(const struct model *m, const struct layout *l, struct activations *a)
{
    struct arch_shape shape = model_shape(&m->config);
    struct network n;

    shape.image_size = l->image_size;
    network_make(&shape, &n);
    activations_plan(&n, l->predicts, build_number_bytes(m), a);
}

/* One arena for all sizes. The units of each are placed in it once. */
static int build_allocate_activations(struct model *m, struct error *e)
{
    struct activations a;
    size_t numbers = 0;

    if (m->cnn)
        return cnn_allocate(m, e);
    for (int i = m->layout_count - 1; i >= 0; i--) { /* the first one's stays in a */
        build_plan_layout(m, &m->layouts[i], &a);
        numbers = size_max(numbers, (size_t)m->layouts[i].batch * a.numbers);
    }
    if (build_allocate_arena(m, &a, numbers, e))
        return -(int)e->code;
    for (int i = m->layout_count - 1; i >= 0; i--) {
        m->layout = &m->layouts[i];
        build_plan_layout(m, m->layout, &a);
        build_place(m, &a);
    }
    return model_is_bf16(m) ? build_allocate_packed(m, e) : 0;
}

/* bf16: each thread's scratch; from the second thread on its part of a weight gradient; and the
 * factors of those that threads make for each other. */
static int build_allocate_bf16(struct model *m, struct error *e)
{
    struct arch_shape shape = model_shape(&m->config);
    struct bf16_thread_bytes bytes = {0};

    for (int i = 0; i < m->layout_count; i++) {
        shape.image_size = m->layouts[i].image_size;
        struct bf16_thread_bytes one = bf16_thread_bytes_of(
            &shape, !m->config.inference, (size_t)m->layouts[i].batch, m->config.threads);
        bytes.scratch = size_max(bytes.scratch, one.scratch);
        bytes.dw = size_max(bytes.dw, one.dw);
        bytes.shared = size_max(bytes.shared, one.shared);
    }

    for (int t = 1; t < m->config.threads && bytes.dw; t++)
        if (build_model_allocate_floats(m, &m->dw[t], bytes.dw / sizeof(float), e))
            return -(int)e->code;
    if (bytes.shared && build_model_allocate_floats(m, &m->team, bytes.shared / sizeof(float), e))
        return -(int)e->code;
    return build_allocate_own(m, bytes.scratch, e);
}

/* Of the convolutions: a single thread's scratch, or what a team and its threads want. Batches may
 * be smaller than those of the layouts. */
static int build_allocate_team(struct model *m, struct error *e)
{
    int threads = m->config.threads;
    size_t own = 0, team = 0;

    if (model_is_bf16(m))
        return build_allocate_bf16(m, e);
    for (int k = 0; k < m->layout_count; k++)
        for (int i = 0; i < m->unit_count; i++) {
            const struct conv *c = &m->layouts[k].units[i].conv;
            own = size_max(own, threads == 1 ? conv_scratch_floats(c) : conv_own_floats(c));
            team = size_max(team, conv_team_floats(c, m->layouts[k].batch, threads));
        }
    if (threads > 1 && build_model_allocate_floats(m, &m->team, team, e))
        return -(int)e->code;
    return build_allocate_own(m, own * sizeof(float), e);
}

static int build_allocate_lane(struct model *m, struct lane *l, struct error *e)
{
    size_t widest = 0;

    for (int i = 0; i < m->unit_count; i++)
        widest = size_max(widest, unit_channels(&m->layout->units[i]));
    if (build_model_allocate_floats(m, &l->shift, widest, e))
        return -(int)e->code;
    double **sums[] = {&l->sum, &l->square_sum, &l->branch_sum};
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
        if (!(*sums[i] = model_allocate(m, widest * sizeof(double), e)))
            return -(int)e->code;
    return 0;
}

static int build_allocate_head(struct model *m, struct error *e)
{
    size_t n = (size_t)m->most_images;

    if (build_model_allocate_floats(m, &m->head, n * (size_t)m->features, e) ||
        build_model_allocate_floats(m, &m->d_head, n * (size_t)m->features, e) ||
        build_model_allocate_floats(m, &m->logits, n * (size_t)m->config.classes, e))
        return -(int)e->code;
    m->losses = model_allocate(m, n * sizeof *m->losses, e);
    return m->losses ? 0 : -(int)e->code;
}

static int build_allocate(struct model *m, struct error *e)
{
    m->params = model_allocate_shared(m, m->param_count * sizeof(float), e);
    if (!m->params || build_model_allocate_floats(m, &m->stats, m->stat_count, e))
        return -(int)e->code;
    if (!m->config.inference &&
        !(m->grads = model_allocate_shared(m, m->param_count * sizeof(float), e)))
        return -(int)e->code;
    for (int i = 0; i < m->unit_count; i++)
        if (build_allocate_channels(m, &m->layout->units[i], e))
            return -(int)e->code;
    for (int i = 0; i < parallel_lanes(m->config.threads); i++)
        if (build_allocate_lane(m, &m->lanes[i], e))
            return -(int)e->code;
    if (build_copy_layouts(m, e) || build_allocate_team(m, e))
        return -(int)e->code;
    if (build_allocate_activations(m, e) || build_allocate_head(m, e))
        return -(int)e->code;
    return 0;
}

static int build_check_precision(const struct model *m, struct error *e)
{
    for (int i = 0; model_is_bf16(m) && i < m->unit_count; i++) {
        const struct conv *c = &m->layout->units[i].conv;
        if (!conv_bf16_takes(c))
            return error_set(e, ERR_UNSUPPORTED,
                             "precision \"bf16\" needs channels in multiples of 32, in groups of "
                             "4, 8, 16 or multiples of 32; %s has %d to %d in %d groups",
                             m->layout->units[i].name, c->window.channels, c->out_channels,
                             c->groups);
    }
    return 0;
}

static int build_check_config(const struct model_config *c, struct error *e)
{
    int least = c->arch->family == ARCH_CNN ? 4 : 32, smallest = c->image_size;
    for (int i = 0; i < MODEL_SIZES_MAX && c->more_sizes[i]; i++)
        smallest = c->more_sizes[i] < smallest ? c->more_sizes[i] : smallest;
    if (c->eval_size && c->eval_size < smallest)
        smallest = c->eval_size;
    if (smallest < least)
        return error_set(e, ERR_INVALID, "model.image_size is %d; at least %d is needed", smallest,
                         least);
    if (c->arch->family == ARCH_CNN && (c->more_sizes[0] || c->eval_size))
        return error_set(e, ERR_UNSUPPORTED, "model.arch \"%s\" takes images of one size",
                         c->arch->name);
    if (c->arch->family == ARCH_CNN && c->precision == JOB_PRECISION_BF16)
        return error_set(e, ERR_UNSUPPORTED,
                         "precision \"bf16\" is not supported for model.arch \"%s\"",
                         c->arch->name);
    if (c->classes < 1 || c->batch < 1 || c->threads < 1)
        return error_set(e, ERR_INVALID,
                         "classes, batch and threads must be at least 1 (are %d, %d, %d)",
                         c->classes, c->batch, c->threads);
    return 0;
}

/* n: of the residual family. */
static int build(struct model *m, struct network *n, struct error *e)
{
    struct arch_shape shape = model_shape(&m->config);

    if (m->config.arch->family == ARCH_CNN)
        return cnn_build(m, e);
    network_make(&shape, n);
    int status = build_blocks(m, n, e);
    return status ? status : build_check_precision(m, e);
}

int model_create(const struct model_config *config, struct model **out, struct error *e)
{
    int status = build_check_config(config, e);
    if (status)
        return status;
    gemm_single_threaded();
    struct model *m = calloc(1, sizeof *m);
    if (!m)
        return error_set(e, ERR_NO_MEMORY, "no memory for a model");
    m->config = *config;
    struct network n;
    model_list_layouts(m);
    status = build(m, &n, e);
    if (!status)
        status = model_lay_out_tensors(m, e);
    if (!status)
        status = build_allocate(m, e);
    m->config.tuning = NULL;
    if (status) {
        model_destroy(m);
        return status;
    }
    *out = m;
    return 0;
}

static void build_free_unit(struct unit *u)
{
    float *rows[] = {u->batch_mean, u->inv_sd, u->scale, u->shift, u->ga, u->gb, u->gc};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        free(rows[i]);
}

static void build_free_lane(struct lane *l)
{
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
        build_free_unit(&m->layout->units[i]);
    for (int i = 0; i < m->layout_count; i++) {
        free(m->layouts[i].units);
        free(m->layouts[i].blocks);
    }
    for (int i = 0; m->lanes && i < parallel_lanes(m->config.threads); i++)
        build_free_lane(&m->lanes[i]);
    for (int t = 0; m->own && m->dw && t < m->config.threads; t++) {
        free(m->own[t]);
        free(m->dw[t]);
    }
    void *rest[] = {m->lanes,  m->own,    m->team,   m->dw,    m->tensors,
                    m->params, m->grads,  m->stats,  m->arena, m->head,
                    m->logits, m->d_head, m->losses, m->cnn,   m->packed};
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
