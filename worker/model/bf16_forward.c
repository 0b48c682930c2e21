/*
 * Forward with bf16 activations (precision "bf16"): forward.c's order, over the tensors `half` of
 * units and blocks. Weights are rounded and packed just before the convolution that reads them, by
 * all threads; sums, batch norm's numbers, averages and logits are fp32.
 */
#include "common/run/trace.h"
#include "worker/kernels/batchnorm.h"
#include "worker/kernels/pool.h"
#include "worker/model/bf16.h"
#include "worker/team/dry_run.h"
#include "worker/team/parallel.h"

/* A unit's convolution, or what comes behind it. */
struct pass {
    struct model *m;
    struct unit *u;
    const void *in;              /* float of the first unit */
    const struct unit *shortcut; /* the downsample unit, or NULL */
    const bf16 *identity;        /* rows to add, or NULL */
    bf16 *out;
};

void model_bf16_pack(struct model *m, const struct unit *u, enum conv_direction direction,
                     struct parallel_share share)
{
    struct parallel_range mine = parallel_range(conv_bf16_panels(&u->conv, direction), share);

    conv_bf16_pack(&u->conv, direction, m->params + u->weight, mine.first, mine.end, m->packed);
    parallel_barrier(share);
}

static void bf16_take_sums(size_t row, size_t rows, void *context)
{
    struct pass *p = context;
    struct lane *lane = model_lane(p->m);
    size_t c = unit_channels(p->u);
    const bf16 *z = p->u->half.z + row * c;
    double piece = trace_begin();

    if (lane->rows[0] == 0 && !dry_run)
        bf16_to_floats(z, c, lane->shift);
    for (size_t j = 0; j < c && !dry_run; j++)
        lane->rows[j] += (double)rows;
    batchnorm_bf16_sums(z, rows, c, lane->shift, lane->sum, lane->square_sum);
    trace_part(piece, TRACE_NORM);
}

static void bf16_normalise(const struct pass *p, size_t row, size_t rows)
{
    const struct unit *u = p->u;
    size_t at = row * unit_channels(u);
    struct batchnorm_bf16_residual residual = {0};

    if (p->shortcut)
        residual = (struct batchnorm_bf16_residual){p->shortcut->half.z + at, p->shortcut->scale,
                                                    p->shortcut->shift};
    else if (p->identity)
        residual.rows = p->identity + at;
    batchnorm_bf16_apply(u->half.z + at, rows, unit_channels(u), u->scale, u->shift, &residual,
                         true, p->out + at);
}

static void bf16_normalise_tile(size_t row, size_t rows, void *context)
{
    double piece = trace_begin();
    bf16_normalise(context, row, rows);
    trace_part(piece, TRACE_NORM);
}

/* What a thread does with rows of z. */
static conv_bf16_rows *bf16_rows_done(const struct pass *p)
{
    if (p->m->evaluating)
        return p->out ? bf16_normalise_tile : NULL;
    return p->m->frozen ? NULL : bf16_take_sums;
}

/* A thread's lines: z, its sums, and the batch's statistics of them. */
static void bf16_forward_convolve(struct parallel_share share, void *context)
{
    struct pass p = *(struct pass *)context;
    struct model *m = p.m;
    struct parallel_range lines = model_bf16_lines(m, p.u, share);
    conv_bf16_rows *done = bf16_rows_done(&p);

    model_bf16_pack(m, p.u, CONV_FORWARD, share);
    conv_bf16_forward(&p.u->conv, m->packed, p.in, p.u->half.z, lines.first, lines.end,
                      model_bf16_scratch(m, share), done, &p, m->config.bf16_images);
    if (done != bf16_take_sums)
        return;
    parallel_barrier(share);
    unit_finish_statistics(m, p.u, m->n, share);
}

/* z of a unit, and what normalises it; in evaluation p->out, if wanted, is made of it at once. */
static void bf16_forward_run_unit(struct pass *p)
{
    struct model *m = p->m;
    struct unit *u = p->u;
    double span = trace_begin();

    if (m->evaluating || m->frozen)
        unit_use_running_statistics(m, u);
    parallel_team(m->config.threads, bf16_forward_convolve, p);
    trace_end_layer(span, model_trace_category(m), u->name, unit_flops(u, m->n));
}

static void bf16_forward_apply(struct parallel_share share, void *context)
{
    const struct pass *p = context;
    struct parallel_range rows = parallel_range((size_t)p->m->n * unit_pixels(p->u), share);

    bf16_normalise(p, rows.first, rows.end - rows.first);
}

/* p->out of a unit, and where it lies. Evaluation has it in the place of z. */
static const bf16 *bf16_run_normalised(struct pass *p, bf16 *out)
{
    struct model *m = p->m;

    p->out = m->evaluating ? p->u->half.z : NULL;
    bf16_forward_run_unit(p);
    if (m->evaluating)
        return p->out;
    p->out = out;
    double span = trace_begin();
    parallel_team(m->config.threads, bf16_forward_apply, p);
    trace_end(span, model_trace_category(m), p->u->bn_name, 0);
    return p->out;
}

/* Returns the block's output. */
static const bf16 *bf16_forward_run_block(struct model *m, const struct block *b, const bf16 *in)
{
    struct pass p = {.m = m, .in = in};

    if (b->downsample >= 0) {
        p.u = &m->layout->units[b->downsample];
        bf16_forward_run_unit(&p);
    }
    for (int k = 0; k < b->units - 1; k++) {
        p.u = &m->layout->units[b->first + k];
        p.in = bf16_run_normalised(&p, p.u->half.y);
    }
    p.u = block_last(m, b);
    if (b->downsample >= 0)
        p.shortcut = &m->layout->units[b->downsample];
    else
        p.identity = in;
    return bf16_run_normalised(&p, b->half.out);
}

static void bf16_forward_pool(struct parallel_share share, void *context)
{
    const struct pass *p = context;
    struct model *m = p->m;
    size_t pixels = (size_t)(m->n * m->layout->pool.out * m->layout->pool.out);
    struct parallel_range mine = parallel_range(pixels, share);

    pool_bf16_max(&m->layout->pool, p->in, mine.first, mine.end, p->out,
                  m->evaluating ? NULL : m->layout->tap);
}

static void bf16_forward_average(struct parallel_share share, void *context)
{
    const struct pass *p = context;
    size_t n = (size_t)p->m->n, c = unit_channels(p->u);
    struct parallel_block part[PARALLEL_BLOCKS];
    int parts = parallel_matrix(n, n, c, 64, share, part);

    for (int i = 0; i < parts; i++)
        pool_bf16_average(p->in, &part[i], (int)unit_pixels(p->u), c, p->m->head);
}

void model_bf16_forward(struct model *m)
{
    struct pass p = {.m = m, .u = &m->layout->units[0], .in = m->images};
    const bf16 *at = bf16_run_normalised(&p, m->layout->units[0].half.y);
    double span;

    if (m->pools) {
        struct pass pooled = {.m = m, .in = at, .out = m->layout->half.in};
        span = trace_begin();
        parallel_team(m->config.threads, bf16_forward_pool, &pooled);
        trace_end(span, model_trace_category(m), "maxpool", 0);
        at = m->layout->half.in;
    }
    for (int i = 0; i < m->block_count; i++)
        at = bf16_forward_run_block(m, &m->layout->blocks[i], at);
    struct pass averages = {
        .m = m, .u = block_last(m, &m->layout->blocks[m->block_count - 1]), .in = at};
    parallel_team(m->config.threads, bf16_forward_average, &averages);
}
