#include "worker/model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert_always.h"
#include "common/xalloc.h"
#include "worker/kernels/gemm.h"
#include "worker/layers/conv_grouped.h"
#include "worker/model/tuning.h"
#include "worker/model/cnn.h"
#include "worker/model/precision.h"
#include "worker/model/units.h"
#include "worker/model/weights.h"
#include "worker/team/memory.h"
#include "worker/team/parallel.h"

static void model_make_pool(const struct model *m, struct layout *l)
{
    const struct conv *stem = &l->units[0].conv;
    bool blurs = m->config.blur_pool;

    l->pool = window_make(stem->window.out, stem->out_channels, 3, blurs ? 1 : 2, 1);
    if (blurs)
        l->pool_blur = window_make(l->pool.out, stem->out_channels, 3, 2, 1);
}

static int model_make_blocks(struct model *m, const struct network *n, struct error *e)
{
    const struct model_config *c = &m->config;

    model_make_units(m, n->convs, n->conv_count);
    m->block_count = n->block_count;
    m->layout->blocks = xcalloc((size_t)m->block_count, sizeof *m->layout->blocks);
    for (int i = 0; i < m->block_count; i++) {
        const struct network_block *b = &n->blocks[i];
        m->layout->blocks[i] =
            (struct block){.first = b->first, .units = b->convs, .downsample = b->downsample};
        block_last(m, &m->layout->blocks[i])->starts_at_zero = true;
    }
    m->frozen_blocks = n->frozen_blocks;
    for (int i = 0; i < n->frozen_convs; i++)
        m->layout->units[i].frozen = true;
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
        model_make_pool(m, m->layout);
    return 0;
}

static int model_allocate_channels(struct model *m, struct unit *u, struct error *e)
{
    float **rows[] = {&u->batch_mean, &u->inv_sd, &u->scale, &u->shift, &u->ga, &u->gb, &u->gc};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (model_allocate_floats(m, rows[i], unit_channels(u), e))
            return -(int)e->code;
    return 0;
}

/* A buffer of the arena for the current layout; the plan counts in numbers of one image. */
static void *model_buffer_at(const struct model *m, const struct activations *a, int buffer)
{
    if (buffer < 0 || !a->buffers[buffer].size)
        return NULL;
    size_t first = (size_t)m->layout->batch * a->buffers[buffer].offset * m->ops->bytes;
    size_t bytes = (size_t)m->layout->batch * a->buffers[buffer].size * m->ops->bytes;
    assert_always(first + bytes <= m->arena_bytes);
    return (char *)m->arena + first;
}

static void model_place(struct model *m, const struct activations *a)
{
    struct layout *l = m->layout;

    for (int i = 0; i < m->unit_count; i++) {
        const struct activation_unit *from = &a->units[i];
        struct unit *u = &l->units[i];
        u->z = model_buffer_at(m, a, from->z);
        u->y = model_buffer_at(m, a, from->y);
        u->y_again = model_buffer_at(m, a, from->y_again);
        u->g = model_buffer_at(m, a, from->g);
        u->dz = model_buffer_at(m, a, from->dz);
        u->x = model_buffer_at(m, a, from->x);
        u->x_again = model_buffer_at(m, a, from->x_again);
        u->g_x = model_buffer_at(m, a, from->g_x);
    }
    for (int i = 0; i < m->block_count; i++) {
        const struct activation_block *from = &a->blocks[i];
        struct block *b = &l->blocks[i];
        b->derive = from->derive;
        b->out = model_buffer_at(m, a, from->out);
        b->out_again = model_buffer_at(m, a, from->out_again);
        b->g = model_buffer_at(m, a, from->g);
    }
    l->tap = model_buffer_at(m, a, a->tap);
    l->maxima = model_buffer_at(m, a, a->maxima);
    l->g_maxima = model_buffer_at(m, a, a->g_maxima);
    l->in = model_buffer_at(m, a, a->in);
    l->in_again = model_buffer_at(m, a, a->in_again);
    l->g_in = model_buffer_at(m, a, a->g_in);
}

/* From the first layout, whose channels and tensors are known by now. */
static void model_copy_layout(struct model *m, struct layout *l)
{
    struct arch_shape shape = model_shape(&m->config);
    size_t units = (size_t)m->unit_count * sizeof *l->units;
    size_t blocks = (size_t)m->block_count * sizeof *l->blocks;
    struct network n;

    shape.image_size = l->image_size;
    network_make(&shape, &n);
    l->units = xmalloc(units);
    l->blocks = xmalloc(blocks);
    memcpy(l->units, m->layout->units, units);
    memcpy(l->blocks, m->layout->blocks, blocks);
    for (int i = 0; i < m->unit_count; i++) {
        struct unit of_size = model_make_unit(&n.convs[i], &m->config);
        l->units[i].conv = of_size.conv;
        l->units[i].blur = of_size.blur;
    }
    if (m->pools)
        model_make_pool(m, l);
}

/* Each buffer of the first layout is first touched by the threads as the passes share it: by
 * images, and by rows of them; in the order of first use, in which buffers kept until backward take
 * precedence. */
static int model_allocate_arena(struct model *m, const struct activations *a, size_t numbers,
                                struct error *e)
{
    size_t batch = (size_t)m->config.batch * m->ops->bytes, bytes = m->ops->bytes * numbers;
    struct memory_extent *extents = xcalloc((size_t)a->count + 1, sizeof *extents);

    for (int i = 0; i < a->count; i++)
        extents[i] =
            (struct memory_extent){batch * a->buffers[i].offset, batch * a->buffers[i].size};
    m->arena = model_count_memory(
        m, memory_allocate_shared(bytes, extents, a->count, m->config.threads), bytes, e);
    m->arena_bytes = bytes;
    free(extents);
    return m->arena ? 0 : -(int)e->code;
}

static void model_plan_layout(const struct model *m, const struct layout *l, struct activations *a)
{
    struct arch_shape shape = model_shape(&m->config);
    struct network n;

    shape.image_size = l->image_size;
    network_make(&shape, &n);
    activations_plan(&n, l->predicts, m->ops->bytes, a);
}

static int model_allocate_activations(struct model *m, struct error *e)
{
    struct activations a;
    size_t numbers = 0;

    if (m->cnn)
        return cnn_allocate(m, e);
    for (int i = m->layout_count - 1; i >= 0; i--) { /* the first layout's plan stays in a */
        model_plan_layout(m, &m->layouts[i], &a);
        numbers = size_max(numbers, (size_t)m->layouts[i].batch * a.numbers);
    }
    if (model_allocate_arena(m, &a, numbers, e))
        return -(int)e->code;
    for (int i = m->layout_count - 1; i >= 0; i--) {
        m->layout = &m->layouts[i];
        model_plan_layout(m, m->layout, &a);
        model_place(m, &a);
    }
    return 0;
}

static int model_allocate_accumulator(struct model *m, struct thread_accumulator *l,
                                      struct error *e)
{
    size_t widest = 0;

    for (int i = 0; i < m->unit_count; i++)
        widest = size_max(widest, unit_channels(&m->layout->units[i]));
    if (model_allocate_floats(m, &l->shift, widest, e))
        return -(int)e->code;
    double **sums[] = {&l->sum, &l->square_sum, &l->branch_sum};
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
        if (!(*sums[i] = model_allocate(m, widest * sizeof(double), e)))
            return -(int)e->code;
    return 0;
}

static int model_allocate_head(struct model *m, struct error *e)
{
    size_t n = (size_t)m->max_images;

    if (model_allocate_floats(m, &m->head, n * (size_t)m->features, e) ||
        model_allocate_floats(m, &m->d_head, n * (size_t)m->features, e) ||
        model_allocate_floats(m, &m->logits, n * (size_t)m->config.classes, e))
        return -(int)e->code;
    m->losses = model_allocate(m, n * sizeof *m->losses, e);
    return m->losses ? 0 : -(int)e->code;
}

/* Those of frozen weights are never touched, and take no memory. */
static int model_allocate_gradients(struct model *m, struct error *e)
{
    size_t first = model_first_trained(m) * sizeof(float), end = m->param_count * sizeof(float);
    struct memory_extent trained = {first, end - first};

    m->grads = model_count_memory(m, memory_allocate_shared(end, &trained, 1, m->config.threads),
                                  trained.bytes, e);
    return m->grads ? 0 : -(int)e->code;
}

static int model_allocate_all(struct model *m, struct error *e)
{
    m->params = model_allocate_shared(m, m->param_count * sizeof(float), e);
    if (!m->params || model_allocate_floats(m, &m->stats, m->stat_count, e))
        return -(int)e->code;
    if (!m->config.inference && model_allocate_gradients(m, e))
        return -(int)e->code;
    for (int i = 0; i < m->unit_count; i++)
        if (model_allocate_channels(m, &m->layout->units[i], e))
            return -(int)e->code;
    for (int i = 0; i < parallel_lanes(m->config.threads); i++)
        if (model_allocate_accumulator(m, &m->accumulators[i], e))
            return -(int)e->code;
    for (int i = 1; i < m->layout_count; i++)
        model_copy_layout(m, &m->layouts[i]);
    if (m->ops->allocate(m, e) || model_allocate_activations(m, e) || model_allocate_head(m, e))
        return -(int)e->code;
    return 0;
}

void model_use_size(struct model *m, int image_size)
{
    int i = 0;

    assert_object(m, MODEL_MAGIC);
    while (i < m->layout_count && m->layouts[i].image_size != image_size)
        i++;
    assert_always(i < m->layout_count);
    m->layout = &m->layouts[i];
}

static void model_add_layout(struct model *m, int size, int batch, bool predicts)
{
    for (int i = 0; i < m->layout_count; i++)
        if (m->layouts[i].image_size == size)
            return;
    m->layouts[m->layout_count++] =
        (struct layout){.image_size = size, .batch = batch, .predicts = predicts};
    m->max_images = batch > m->max_images ? batch : m->max_images;
}

static void model_list_layouts(struct model *m)
{
    const struct model_config *c = &m->config;

    model_add_layout(m, c->image_size, c->batch, c->inference);
    for (int i = 0; i < MODEL_SIZES_MAX && c->more_sizes[i]; i++)
        model_add_layout(m, c->more_sizes[i], c->more_batches[i] ? c->more_batches[i] : c->batch,
                         c->inference);
    if (c->eval_size)
        model_add_layout(m, c->eval_size, c->batch, true);
    m->layout = &m->layouts[0];
}

static int model_check_config(const struct model_config *c, struct error *e)
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

int model_create(const struct model_config *config, struct model **out, struct error *e)
{
    int status = model_check_config(config, e);
    if (status)
        return status;
    gemm_single_threaded();
    struct model *m = xcalloc(1, sizeof *m);
    m->magic = MODEL_MAGIC;
    struct arch_shape shape = model_shape(config);
    struct network n;
    m->config = *config;
    m->ops = precision_ops_of(config->precision);
    model_list_layouts(m);
    if (config->arch->family == ARCH_CNN) {
        cnn_build(m);
    } else {
        network_make(&shape, &n);
        status = model_make_blocks(m, &n, e);
    }
    if (!status) {
        weights_lay_out(m);
        status = model_allocate_all(m, e);
    }
    m->config.tuning = NULL;
    if (status)
        model_destroy(m);
    else
        *out = m;
    return status;
}

void model_destroy(struct model *m)
{
    if (!m)
        return;
    assert_object_ends(m, MODEL_MAGIC);
    for (int i = 0; i < m->unit_count; i++) {
        struct unit *u = &m->layout->units[i];
        float *rows[] = {u->batch_mean, u->inv_sd, u->scale, u->shift, u->ga, u->gb, u->gc};
        for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
            free(rows[k]);
    }
    for (int i = 0; i < m->layout_count; i++) {
        free(m->layouts[i].units);
        free(m->layouts[i].blocks);
    }
    for (int i = 0; m->accumulators && i < parallel_lanes(m->config.threads); i++) {
        free(m->accumulators[i].shift);
        free(m->accumulators[i].sum);
        free(m->accumulators[i].square_sum);
        free(m->accumulators[i].branch_sum);
    }
    for (int t = 0; m->own && m->dw && t < m->config.threads; t++) {
        free(m->own[t]);
        free(m->dw[t]);
    }
    void *rest[] = {m->accumulators, m->own,    m->team,   m->dw,    m->tensors,
                    m->params,       m->grads,  m->stats,  m->arena, m->head,
                    m->logits,       m->d_head, m->losses, m->cnn,   m->packed};
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

size_t model_first_trained(const struct model *m)
{
    return m->first_trained;
}

size_t model_classifier_offset(const struct model *m)
{
    return m->fc_weight;
}

size_t model_param_count(const struct model *m)
{
    return m->param_count;
}

size_t model_stat_count(const struct model *m)
{
    return m->stat_count;
}

double model_bytes_per_image(const struct model *m)
{
    return m->moved_images > 0 ? m->moved_bytes / m->moved_images : NAN;
}

void model_count_bytes(struct model *m, double bytes)
{
    m->moved_bytes += bytes;
}

size_t model_memory_bytes(const struct model *m)
{
    return m->memory_bytes;
}

int model_threads(const struct model *m)
{
    return m->config.threads;
}
