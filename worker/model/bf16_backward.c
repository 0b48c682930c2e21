/*
 * Backward with bf16 activations and their gradients: backward.c's order and recomputation, over
 * the tensors `half` of units and blocks. Gradients of weights are summed and kept in fp32.
 */
#include "worker/kernels/bf16.h"

typedef bf16 number;
#define TENSORS(owner) (&(owner)->half)

#include "worker/kernels/batchnorm.h"
#include "worker/team/dry_run.h"
#include "worker/kernels/pool.h"
#include "worker/model/backward_walk.h"
#include "worker/model/bf16.h"

static void bf16_make_y_again(const struct unit *u, size_t row, size_t rows)
{
    size_t c = unit_channels(u), at = row * c;
    batchnorm_bf16_apply(u->half.z + at, rows, c, u->scale, u->shift, NULL, true,
                         u->half.y_again + at);
}

/* Before the convolution reads rows of dz, and of x where they are the same ones. */
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

/* Masks rows of g and takes the sums of the target's batch norms. */
static void bf16_finish_rows(const struct target *t, struct lane *l, bf16 *g, size_t row,
                             size_t rows)
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
    bf16_finish_rows(&p->target, model_lane(p->m), p->dx, row, rows);
    trace_part(piece, TRACE_NORM);
}

enum { SUMS = 256 }; /* at once: they stay in the first-level cache while all parts are added */

/* Has the thread lines, of which the first thread's are not part? */
static bool bf16_backward_has_part(const struct pass *p, int thread, int threads)
{
    struct parallel_range lines =
        model_bf16_lines(p->m, p->u, (struct parallel_share){thread, threads});
    return 0 < lines.first && lines.first < lines.end;
}

/* The first thread that has lines writes the gradient, the others' parts are added in order. */
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

/* Do threads share whole images, so that none needs what another one makes? */
static bool bf16_backward_shares_images(const struct pass *p, struct parallel_share share)
{
    return p->m->n % share.parts == 0 || conv_bf16_keeps_lines(&p->u->conv);
}

/* A thread's lines, for both gradients. */
static void walk_convolve(struct parallel_share share, void *context)
{
    struct pass p = *(struct pass *)context;
    struct model *m = p.m;
    struct parallel_range lines = model_bf16_lines(m, p.u, share);
    size_t out = (size_t)p.u->conv.window.out;
    bool leads = lines.first == 0 && lines.end > 0;
    bool by_images = bf16_backward_shares_images(&p, share);
    bool shares_dw = m->team && conv_bf16_shares(&p.u->conv, (size_t)m->n, m->config.threads);

    if (p.dx)
        model_bf16_pack(m, p.u, CONV_DATA, share);
    struct conv_bf16_backward b = {
        .packed = m->packed,
        .x = p.x,
        .bf16_x = m->config.bf16_images,
        .dz = p.dz,
        .dx = p.dx,
        .add_dx = p.add_dx,
        .dw = leads || shares_dw ? m->grads + p.u->weight : m->dw[share.part],
        .add_dw = (leads || shares_dw) && p.accumulate,
        .scratch = model_bf16_scratch(m, share),
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

/* Rows of the run's outputs, one block after the other: what the next one adds is in cache. */
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

enum { DERIVED = 32 * 1024 }; /* elements at once */

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

/* Gradient of the last block's output, masked and summed. */
static void walk_spread_average(struct parallel_share share, void *context)
{
    struct pass *p = context;
    struct model *m = p->m;
    size_t pixels = unit_pixels(p->target.unit), c = unit_channels(p->target.unit), step;
    struct parallel_range rows = parallel_range((size_t)m->n * pixels, share);
    struct lane *lane = model_lane(m);

    for (size_t row = rows.first; row < rows.end; row += step) {
        step = rows.end - row < pixels ? rows.end - row : pixels;
        pool_bf16_average_backward(m->d_head, row, row + step, (int)pixels, c, p->dx);
        bf16_finish_rows(&p->target, lane, p->dx, row, step);
    }
    walk_finish_target(p, share);
}

/* Gradient of the stem's activation from that of the pool, masked and summed. */
static void walk_spread_maxima(struct parallel_share share, void *context)
{
    struct pass *p = context;
    struct model *m = p->m;
    size_t in = (size_t)m->layout->pool.in;
    struct parallel_range lines = parallel_range((size_t)m->n * in, share);
    struct lane *lane = model_lane(m);

    for (size_t line = lines.first; line < lines.end; line++) {
        pool_bf16_max_backward(&m->layout->pool, p->g, m->layout->tap, line * in, (line + 1) * in,
                               p->dx);
        bf16_finish_rows(&p->target, lane, p->dx, line * in, in);
    }
    walk_finish_target(p, share);
}

void model_bf16_backward(struct model *m, bool accumulate, const struct announcement *a)
{
    walk_back(m, accumulate, a);
}
