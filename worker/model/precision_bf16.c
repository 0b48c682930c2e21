#include "worker/layers/conv_bf16.h"
#include "worker/layers/conv_winograd.h"
#include "worker/model/precision.h"
#include "worker/team/dry_run.h"

static void bf16_copy_to_floats(const void *from, size_t n, float *to)
{
    bf16_to_floats(from, n, to);
}

static struct parallel_range bf16_lines(const struct model *m, const struct unit *u,
                                        struct parallel_share share)
{
    return conv_bf16_lines(&u->conv, (size_t)m->n, share);
}

static struct conv_bf16_scratch bf16_scratch(const struct model *m, struct parallel_share share)
{
    /* a dry run may count batches that exceed the memory */
    int images = m->n > m->layout->batch ? m->n : m->layout->batch;
    return (struct conv_bf16_scratch){m->own[share.part], (size_t)images, m->config.threads};
}

/* Packs a thread's part of the weights into m->packed, which is complete on return. */
static void bf16_pack_weights(struct model *m, const struct unit *u, enum conv_direction direction,
                              struct parallel_share share)
{
    struct parallel_range mine = parallel_range(conv_bf16_panels(&u->conv, direction), share);

    conv_bf16_pack(&u->conv, direction, m->params + u->weight, mine.first, mine.end, m->packed);
    parallel_barrier(share);
}

static void bf16_forward_by_winograd(struct model *m, const struct unit *u, const void *x,
                                     struct parallel_share share, conv_rows *done, void *context)
{
    struct conv_memory memory = model_memory(m);
    struct conv_part part = {&u->conv, m->n, share, &memory};
    struct conv_winograd_pass pass = {.m = u->conv.winograd[CONV_FORWARD],
                                      .half = true,
                                      .w = m->params + u->weight,
                                      .from = x,
                                      .to = u->z,
                                      .done = done,
                                      .context = context};

    conv_winograd_run(&part, &pass);
}

static void bf16_forward(struct model *m, const struct unit *u, const void *x,
                         struct parallel_share share, conv_rows *done, void *context)
{
    struct parallel_range lines = bf16_lines(m, u, share);

    if (u->conv.winograd[CONV_FORWARD]) {
        bf16_forward_by_winograd(m, u, x, share, done, context);
        return;
    }
    bf16_pack_weights(m, u, CONV_FORWARD, share);
    conv_bf16_forward(&u->conv, m->packed, x, u->z, lines.first, lines.end, bf16_scratch(m, share),
                      done, context, m->config.bf16_images);
}

enum { SUMS = 256 }; /* at a time: they stay in the first-level cache while all parts are added */

static bool bf16_has_part(const struct model *m, const struct unit *u, int thread, int threads)
{
    struct parallel_range lines = bf16_lines(m, u, (struct parallel_share){thread, threads});
    return 0 < lines.first && lines.first < lines.end;
}

/* The thread with the first line writes the gradient; the others' parts are added in order. */
static void bf16_add_parts(struct model *m, const struct unit *u, struct parallel_share share)
{
    float *sum = m->grads + u->weight;
    struct parallel_range mine = parallel_range(conv_weights(&u->conv) / 16, share);
    size_t end = 16 * mine.end;
    int parts = 0;

    if (share.parts == 1)
        return;
    parallel_barrier(share);
    for (int t = 1; t < share.parts; t++)
        parts += bf16_has_part(m, u, t, share.parts);
    if (dry_run_moves((size_t)(parts + 2) * (end - 16 * mine.first)))
        return;
    for (size_t from = 16 * mine.first, to; from < end; from = to) {
        to = end - from < SUMS ? end : from + SUMS;
        for (int t = 1; t < share.parts; t++)
            if (bf16_has_part(m, u, t, share.parts))
                for (size_t i = from; i < to; i++)
                    sum[i] += m->dw[t][i];
    }
}

static void bf16_make_ready(struct model *m, const struct unit *u,
                            const struct precision_backward *b, struct parallel_share share)
{
    struct parallel_range lines = bf16_lines(m, u, share);
    size_t out = (size_t)u->conv.window.out;

    conv_call_hook_rows(b->ready, lines.first * out, (lines.end - lines.first) * out,
                        unit_channels(u), b->context);
    parallel_barrier(share);
}

/* The gradients that are not by Winograd: one of them, or both. */
static void bf16_backward_directly(struct model *m, const struct unit *u,
                                   const struct precision_backward *b, struct parallel_share share)
{
    struct parallel_range lines = bf16_lines(m, u, share);
    bool wants_dw = !u->conv.winograd[CONV_WEIGHTS];
    bool wants_dx = b->dx && !u->conv.winograd[CONV_DATA];
    bool leads = lines.first == 0 && lines.end > 0;
    bool shares_dw =
        wants_dw && m->team && conv_bf16_shares(&u->conv, (size_t)m->n, m->config.threads);
    /* else a thread's lines need dz and x of an image that another thread makes */
    bool by_images = m->n % share.parts == 0 || conv_bf16_keeps_lines(&u->conv);
    float *dw = leads || shares_dw ? m->grads + u->weight : m->dw[share.part];

    if (wants_dx)
        bf16_pack_weights(m, u, CONV_DATA, share);
    struct conv_bf16_backward of = {
        .packed = m->packed,
        .x = b->x,
        .bf16_x = m->config.bf16_images,
        .dz = b->dz,
        .dx = wants_dx ? b->dx : NULL,
        .add_dx = b->add_dx,
        .dw = wants_dw ? dw : NULL,
        .add_dw = (leads || shares_dw) && b->add_dw,
        .scratch = bf16_scratch(m, share),
        .ready = by_images ? b->ready : NULL,
        .done = b->done,
        .context = b->context,
        .shared = shares_dw ? m->team : NULL,
        .images = (size_t)m->n,
        .share = share,
    };
    if (!by_images)
        bf16_make_ready(m, u, b, share);
    if (lines.first < lines.end)
        conv_bf16_backward(&u->conv, &of, lines.first, lines.end);
    if (shares_dw) {
        parallel_barrier(share);
        conv_bf16_sum_shared(&u->conv, &of);
    } else if (wants_dw) {
        bf16_add_parts(m, u, share);
    }
}

static void bf16_weights_by_winograd(struct model *m, const struct unit *u,
                                     const struct precision_backward *b, conv_rows *ready,
                                     struct parallel_share share)
{
    struct conv_memory memory = model_memory(m);
    struct conv_part part = {&u->conv, m->n, share, &memory};
    struct conv_winograd_sums sums = {.m = u->conv.winograd[CONV_WEIGHTS],
                                      .half = true,
                                      .x = b->x,
                                      .dz = b->dz,
                                      .dw = m->grads + u->weight,
                                      .add_dw = b->add_dw,
                                      .ready = ready,
                                      .context = b->context};

    conv_winograd_sum(&part, &sums);
}

static void bf16_data_by_winograd(struct model *m, const struct unit *u,
                                  const struct precision_backward *b, struct parallel_share share)
{
    struct conv_memory memory = model_memory(m);
    struct conv_part part = {&u->conv, m->n, share, &memory};
    struct conv_winograd_pass pass = {.m = u->conv.winograd[CONV_DATA],
                                      .half = true,
                                      .turned = true,
                                      .add = b->add_dx,
                                      .w = m->params + u->weight,
                                      .from = b->dz,
                                      .to = b->dx,
                                      .done = b->done,
                                      .context = b->context};

    conv_winograd_run(&part, &pass);
}

/* What is computed first makes dz and x ready, line by line if it can. */
static void bf16_backward(struct model *m, const struct unit *u, const struct precision_backward *b,
                          struct parallel_share share)
{
    bool dw = u->conv.winograd[CONV_WEIGHTS], dx = u->conv.winograd[CONV_DATA] && b->dx;
    bool single = m->config.threads == 1, directly = !dw || (b->dx && !dx);

    if (directly)
        bf16_backward_directly(m, u, b, share);
    else if (!single)
        bf16_make_ready(m, u, b, share);
    if (dw) {
        parallel_barrier(share);
        bf16_weights_by_winograd(m, u, b, directly ? NULL : b->ready, share);
    }
    if (dx) {
        parallel_barrier(share);
        bf16_data_by_winograd(m, u, b, share);
    }
}

/* x is written with dz: for the rows of z that the rows of dz are computed from. */
static bool bf16_reads_x_by_rows(const struct model *m, const struct unit *u, bool wants_dx)
{
    (void)m, (void)u, (void)wants_dx;
    return true;
}

static int bf16_allocate_packed(struct model *m, struct error *e)
{
    size_t max = 0;

    for (int i = 0; i < m->unit_count; i++)
        for (int k = 0; k < 2; k++)
            max = size_max(
                max, conv_bf16_packed(&m->layout->units[i].conv, k ? CONV_DATA : CONV_FORWARD));
    m->packed = model_allocate(m, max * sizeof *m->packed, e);
    return m->packed ? 0 : -(int)e->code;
}

static int bf16_check(const struct model *m, struct error *e)
{
    for (int i = 0; i < m->unit_count; i++) {
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

/* Batches may be smaller than the layouts'. */
static void bf16_count_winograd(struct model *m)
{
    for (int k = 0; k < m->layout_count; k++)
        for (int i = 0; i < m->unit_count; i++) {
            const struct conv *c = &m->layouts[k].units[i].conv;
            size_t team = conv_winograd_team_floats(c, m->layouts[k].batch, m->config.threads);
            size_t own = conv_winograd_own_floats(c, m->config.threads);
            m->team_floats = size_max(m->team_floats, team);
            m->own_floats = size_max(m->own_floats, own);
        }
}

/* Of the direct convolutions, which all layers but some of the 3x3 use. */
static struct bf16_thread_bytes bf16_thread_bytes(const struct model *m)
{
    struct arch_shape shape = model_shape(&m->config);
    struct bf16_thread_bytes most = {0};

    for (int i = 0; i < m->layout_count; i++) {
        shape.image_size = m->layouts[i].image_size;
        struct bf16_thread_bytes one = bf16_thread_bytes_of(
            &shape, !m->config.inference, (size_t)m->layouts[i].batch, m->config.threads);
        most.scratch = size_max(most.scratch, one.scratch);
        most.dw = size_max(most.dw, one.dw);
        most.shared = size_max(most.shared, one.shared);
    }
    return most;
}

static int bf16_allocate(struct model *m, struct error *e)
{
    int threads = m->config.threads;

    if (bf16_check(m, e))
        return -(int)e->code;
    struct bf16_thread_bytes bytes = bf16_thread_bytes(m);
    bf16_count_winograd(m);
    m->team_floats = size_max(m->team_floats, bytes.shared / sizeof(float));
    m->own_floats = size_max(m->own_floats, bytes.scratch / sizeof(float));
    for (int t = 1; t < threads && bytes.dw; t++)
        if (model_allocate_floats(m, &m->dw[t], bytes.dw / sizeof(float), e))
            return -(int)e->code;
    if (m->team_floats && model_allocate_floats(m, &m->team, m->team_floats, e))
        return -(int)e->code;
    return bf16_allocate_packed(m, e) ? -(int)e->code
                                      : model_allocate_own(m, m->own_floats * sizeof(float), e);
}

const struct precision_ops precision_bf16 = {
    .bytes = sizeof(bf16),
    .winograd_margin = 0.95, /* its errors are smaller: weights are not rounded */
    .shares_rows = true,
    .to_floats = bf16_copy_to_floats,
    .forward = bf16_forward,
    .backward = bf16_backward,
    .reads_x_by_rows = bf16_reads_x_by_rows,
    .allocate = bf16_allocate,
    .sums = batchnorm_bf16_sums,
    .apply = batchnorm_bf16_apply,
    .mask_sums = batchnorm_bf16_mask_sums,
    .input_gradient = batchnorm_bf16_input_gradient,
    .pool_max = pool_bf16_max,
    .pool_max_backward = pool_bf16_max_backward,
    .pool_blur = pool_bf16_blur,
    .pool_average = pool_bf16_average,
    .pool_average_backward = pool_bf16_average_backward,
};
