/* The passes with bf16 activations and gradients, in the order of forward_backward.c, on the
 * tensors `half` of units and blocks. All threads round and pack the weights just before the
 * convolution that reads them. Sums, batch norm's numbers, averages, logits and weight gradients
 * are fp32. */
#include "worker/model/bf16_forward_backward.h"

#include "common/run/trace.h"
#include "worker/kernels/batchnorm.h"
#include "worker/kernels/bf16.h"
#include "worker/kernels/pool.h"
#include "worker/layers/conv_bf16.h"
#include "worker/team/dry_run.h"
#include "worker/team/parallel.h"

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

/* ---- forward */

struct forward_pass {
    struct model *m;
    struct unit *u;
    const void *in;              /* float for the first unit */
    const struct unit *shortcut; /* the downsample unit, or NULL */
    const bf16 *identity;        /* rows to add, or NULL */
    bf16 *out;
};

/* Packs a thread's part of the weights into m->packed, which is complete on return. */
static void bf16_pack_weights(struct model *m, const struct unit *u, enum conv_direction direction,
                              struct parallel_share share)
{
    struct parallel_range mine = parallel_range(conv_bf16_panels(&u->conv, direction), share);

    conv_bf16_pack(&u->conv, direction, m->params + u->weight, mine.first, mine.end, m->packed);
    parallel_barrier(share);
}

static void bf16_take_sums(size_t row, size_t rows, void *context)
{
    struct forward_pass *p = context;
    struct thread_accumulator *sums = model_accumulator(p->m);
    size_t c = unit_channels(p->u);
    const bf16 *z = p->u->half.z + row * c;
    double piece = trace_begin();

    if (sums->rows[0] == 0 && !dry_run)
        bf16_to_floats(z, c, sums->shift);
    for (size_t j = 0; j < c && !dry_run; j++)
        sums->rows[j] += (double)rows;
    batchnorm_bf16_sums(z, rows, c, sums->shift, sums->sum, sums->square_sum);
    trace_part(piece, TRACE_NORM);
}

static void bf16_normalise(const struct forward_pass *p, size_t row, size_t rows)
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

static conv_bf16_rows *bf16_rows_done(const struct forward_pass *p)
{
    if (p->m->evaluating)
        return p->out ? bf16_normalise_tile : NULL;
    return p->m->frozen ? NULL : bf16_take_sums;
}

static void bf16_forward_convolve(struct parallel_share share, void *context)
{
    struct forward_pass p = *(struct forward_pass *)context;
    struct model *m = p.m;
    struct parallel_range lines = bf16_lines(m, p.u, share);
    conv_bf16_rows *done = bf16_rows_done(&p);

    bf16_pack_weights(m, p.u, CONV_FORWARD, share);
    conv_bf16_forward(&p.u->conv, m->packed, p.in, p.u->half.z, lines.first, lines.end,
                      bf16_scratch(m, share), done, &p, m->config.bf16_images);
    if (done != bf16_take_sums)
        return;
    parallel_barrier(share);
    unit_finish_statistics(m, p.u, m->n, share);
}

static void bf16_forward_run_unit(struct forward_pass *p)
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
    const struct forward_pass *p = context;
    struct parallel_range rows = parallel_range((size_t)p->m->n * unit_pixels(p->u), share);

    bf16_normalise(p, rows.first, rows.end - rows.first);
}

/* Returns p->out of a unit; evaluation overwrites z with it. */
static const bf16 *bf16_run_normalised(struct forward_pass *p, bf16 *out)
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

static const bf16 *bf16_forward_run_block(struct model *m, const struct block *b, const bf16 *in)
{
    struct forward_pass p = {.m = m, .in = in};

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
    const struct forward_pass *p = context;
    struct model *m = p->m;
    size_t pixels = (size_t)(m->n * m->layout->pool.out * m->layout->pool.out);
    struct parallel_range mine = parallel_range(pixels, share);

    pool_bf16_max(&m->layout->pool, p->in, mine.first, mine.end, p->out,
                  m->evaluating ? NULL : m->layout->tap);
}

static void bf16_forward_average(struct parallel_share share, void *context)
{
    const struct forward_pass *p = context;
    size_t n = (size_t)p->m->n, c = unit_channels(p->u);
    struct parallel_block part[PARALLEL_BLOCKS];
    int parts = parallel_matrix(n, n, c, 64, share, part);

    for (int i = 0; i < parts; i++)
        pool_bf16_average(p->in, &part[i], (int)unit_pixels(p->u), c, p->m->head);
}

void model_bf16_forward(struct model *m)
{
    struct forward_pass p = {.m = m, .u = &m->layout->units[0], .in = m->images};
    const bf16 *at = bf16_run_normalised(&p, m->layout->units[0].half.y);
    double span;

    if (m->pools) {
        struct forward_pass pooled = {.m = m, .in = at, .out = m->layout->half.in};
        span = trace_begin();
        parallel_team(m->config.threads, bf16_forward_pool, &pooled);
        trace_end(span, model_trace_category(m), "maxpool", 0);
        at = m->layout->half.in;
    }
    for (int i = 0; i < m->block_count; i++)
        at = bf16_forward_run_block(m, &m->layout->blocks[i], at);
    struct forward_pass averages = {
        .m = m, .u = block_last(m, &m->layout->blocks[m->block_count - 1]), .in = at};
    parallel_team(m->config.threads, bf16_forward_average, &averages);
}

/* ---- backward */

typedef bf16 number;
#define TENSORS(owner) (&(owner)->half)
#include "worker/model/backward_walk.h"

static void bf16_make_y_again(const struct unit *u, size_t row, size_t rows)
{
    size_t c = unit_channels(u), at = row * c;
    batchnorm_bf16_apply(u->half.z + at, rows, c, u->scale, u->shift, NULL, true,
                         u->half.y_again + at);
}

/* Hook before the convolution reads rows of dz, and the same rows of x. */
static void bf16_make_dz(size_t row, size_t rows, void *context)
{
    const struct pass *p = context;
    const struct unit *u = p->u;
    size_t c = unit_channels(u), in = (size_t)u->conv.window.in, out = (size_t)u->conv.window.out;
    double piece = trace_begin();

    if (p->below) {
        size_t first = row * in * in / (out * out), end = (row + rows) * in * in / (out * out);
        bf16_make_y_again(p->below, first, end - first);
    }
    batchnorm_bf16_input_gradient(p->g + row * c, u->half.z + row * c, rows, c, u->ga, u->gb, u->gc,
                                  p->dz + row * c);
    trace_part(piece, TRACE_NORM);
}

static void bf16_finish_rows(const struct target *t, struct thread_accumulator *l, bf16 *g,
                             size_t row, size_t rows)
{
    const struct unit *u = t->unit;
    size_t c = unit_channels(u), at = row * c;
    struct batchnorm_bf16_mask mask = {t->y ? t->y + at : NULL, u->scale, u->shift};
    struct batchnorm_bf16_branch branch[2] = {
        {u->half.z + at, u->batch_mean, l->square_sum},
        {NULL,           NULL,          l->branch_sum},
    };
    if (t->downsample) {
        branch[1].z = t->downsample->half.z + at;
        branch[1].mean = t->downsample->batch_mean;
    }
    batchnorm_bf16_mask_sums(g + at, &mask, rows, c, branch, l->sum);
}

static void bf16_finish_dx(size_t row, size_t rows, void *context)
{
    const struct pass *p = context;
    double piece = trace_begin();
    bf16_finish_rows(&p->target, model_accumulator(p->m), p->dx, row, rows);
    trace_part(piece, TRACE_NORM);
}

enum { SUMS = 256 }; /* so many stay in the first-level cache while all parts are added */

static bool bf16_backward_has_part(const struct pass *p, int thread, int threads)
{
    struct parallel_range lines = bf16_lines(p->m, p->u, (struct parallel_share){thread, threads});
    return 0 < lines.first && lines.first < lines.end;
}

/* The thread with the first line writes the gradient; the others' parts are added in order. */
static void bf16_backward_add_parts(const struct pass *p, struct parallel_share share)
{
    struct model *m = p->m;
    float *sum = m->grads + p->u->weight;
    struct parallel_range mine = parallel_range(conv_weights(&p->u->conv) / 16, share);
    size_t end = 16 * mine.end;
    int parts = 0;

    if (share.parts == 1)
        return;
    parallel_barrier(share);
    for (int t = 1; t < share.parts; t++)
        parts += bf16_backward_has_part(p, t, share.parts);
    if (dry_run_moves((size_t)(parts + 2) * (end - 16 * mine.first)))
        return;
    for (size_t from = 16 * mine.first, to; from < end; from = to) {
        to = end - from < SUMS ? end : from + SUMS;
        for (int t = 1; t < share.parts; t++)
            if (bf16_backward_has_part(p, t, share.parts))
                for (size_t i = from; i < to; i++)
                    sum[i] += m->dw[t][i];
    }
}

/* Whether threads share whole images, so that none needs another's results. */
static bool bf16_backward_shares_images(const struct pass *p, struct parallel_share share)
{
    return p->m->n % share.parts == 0 || conv_bf16_keeps_lines(&p->u->conv);
}

static void walk_convolve(struct parallel_share share, void *context)
{
    struct pass p = *(struct pass *)context;
    struct model *m = p.m;
    struct parallel_range lines = bf16_lines(m, p.u, share);
    size_t out = (size_t)p.u->conv.window.out;
    bool leads = lines.first == 0 && lines.end > 0;
    bool by_images = bf16_backward_shares_images(&p, share);
    bool shares_dw = m->team && conv_bf16_shares(&p.u->conv, (size_t)m->n, m->config.threads);

    if (p.dx)
        bf16_pack_weights(m, p.u, CONV_DATA, share);
    struct conv_bf16_backward b = {
        .packed = m->packed,
        .x = p.x,
        .bf16_x = m->config.bf16_images,
        .dz = p.dz,
        .dx = p.dx,
        .add_dx = p.add_dx,
        .dw = leads || shares_dw ? m->grads + p.u->weight : m->dw[share.part],
        .add_dw = (leads || shares_dw) && p.accumulate,
        .scratch = bf16_scratch(m, share),
        .ready = by_images ? bf16_make_dz : NULL,
        .done = p.target.unit ? bf16_finish_dx : NULL,
        .context = &p,
        .shared = shares_dw ? m->team : NULL,
        .images = (size_t)m->n,
        .share = share,
    };
    if (!by_images) {
        bf16_make_dz(lines.first * out, (lines.end - lines.first) * out, &p);
        parallel_barrier(share);
    }
    if (lines.first < lines.end)
        conv_bf16_backward(&p.u->conv, &b, lines.first, lines.end);
    if (shares_dw) {
        parallel_barrier(share);
        conv_bf16_sum_shared(&p.u->conv, &b);
    } else {
        bf16_backward_add_parts(&p, share);
    }
    walk_finish_target(&p, share);
}

/* Rows of the run's outputs, block after block, so that the next one's addend is in cache. */
static void bf16_backward_derive_rows(const struct run *r, size_t row, size_t rows)
{
    struct model *m = r->m;

    for (int i = r->first; i < r->end; i++) {
        const struct block *b = &m->layout->blocks[i];
        const struct unit *u = block_last(m, b);
        size_t c = unit_channels(u), at = row * c;
        struct batchnorm_bf16_residual residual = {.rows = walk_block_input(m, i) + at};
        if (b->downsample >= 0) {
            const struct unit *d = &m->layout->units[b->downsample];
            residual = (struct batchnorm_bf16_residual){d->half.z + at, d->scale, d->shift};
        }
        batchnorm_bf16_apply(u->half.z + at, rows, c, u->scale, u->shift, &residual, true,
                             b->half.out_again + at);
    }
}

enum { DERIVED = 32 * 1024 }; /* elements at a time */

static void walk_derive(struct parallel_share share, void *context)
{
    const struct run *r = context;
    const struct unit *u = block_last(r->m, &r->m->layout->blocks[r->first]),
                      *stem = &r->m->layout->units[0];
    size_t step = DERIVED / unit_channels(u), n = (size_t)r->m->n;

    if (r->first == 0 && !r->m->pools) {
        struct parallel_range rows = parallel_range(n * unit_pixels(stem), share);
        bf16_make_y_again(stem, rows.first, rows.end - rows.first);
        parallel_barrier(share);
    }
    struct parallel_range rows = parallel_range(n * unit_pixels(u), share);
    for (size_t row = rows.first; row < rows.end; row += step)
        bf16_backward_derive_rows(r, row, rows.end - row < step ? rows.end - row : step);
}

static void walk_spread_average(struct parallel_share share, void *context)
{
    struct pass *p = context;
    struct model *m = p->m;
    size_t pixels = unit_pixels(p->target.unit), c = unit_channels(p->target.unit), step;
    struct parallel_range rows = parallel_range((size_t)m->n * pixels, share);
    struct thread_accumulator *sums = model_accumulator(m);

    for (size_t row = rows.first; row < rows.end; row += step) {
        step = rows.end - row < pixels ? rows.end - row : pixels;
        pool_bf16_average_backward(m->d_head, row, row + step, (int)pixels, c, p->dx);
        bf16_finish_rows(&p->target, sums, p->dx, row, step);
    }
    walk_finish_target(p, share);
}

static void walk_spread_maxima(struct parallel_share share, void *context)
{
    struct pass *p = context;
    struct model *m = p->m;
    size_t in = (size_t)m->layout->pool.in;
    struct parallel_range lines = parallel_range((size_t)m->n * in, share);
    struct thread_accumulator *sums = model_accumulator(m);

    for (size_t line = lines.first; line < lines.end; line++) {
        pool_bf16_max_backward(&m->layout->pool, p->g, m->layout->tap, line * in, (line + 1) * in,
                               p->dx);
        bf16_finish_rows(&p->target, sums, p->dx, line * in, in);
    }
    walk_finish_target(p, share);
}

void model_bf16_backward(struct model *m, bool accumulate, const struct announcement *a)
{
    walk_back(m, accumulate, a);
}
