/*
 * Backward with bf16 activations and their gradients: backward.c's order and recomputation, over
 * the tensors `half` of units and blocks. Gradients of weights are summed and kept in fp32.
 */
#include "common/run/trace.h"
#include "worker/kernels/batchnorm_bf16.h"
#include "worker/kernels/dry_run.h"
#include "worker/kernels/parallel.h"
#include "worker/kernels/pool_bf16.h"
#include "worker/model/bf16.h"

/* The tensor behind a gradient: its activation and the batch norms that made it. */
struct target {
    const bf16 *y;           /* NULL: known by the sign of scale z + shift */
    struct unit *unit;       /* NULL: nothing to mask and no sums to take */
    struct unit *downsample; /* or NULL */
};

struct pass {
    struct model *m;
    struct unit *u;
    struct lane *lane;
    const void *x;            /* input of the convolution; float of the first */
    const bf16 *g;            /* gradient of its normalised output */
    const struct unit *below; /* whose activation x is, to be made again; NULL: x is there */
    bf16 *dz, *dx;            /* dz may be g's memory */
    bool add_dx, accumulate;
    struct target target; /* of dx */
};

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
    bf16_finish_rows(&p->target, p->lane, p->dx, row, rows);
    trace_part(piece, TRACE_NORM);
}

/* The first thread that has lines writes the gradient, the others' parts are added in order. */
static void add_parts(const struct pass *p, struct parallel_share share)
{
    struct model *m = p->m;
    size_t n = (size_t)m->n * (size_t)p->u->conv.window.out;
    float *sum = m->grads + p->u->weight;
    struct parallel_range mine = parallel_range(conv_weights(&p->u->conv) / 16, share);

    if (share.parts == 1)
        return;
    parallel_barrier(share);
    for (int t = parallel_owner(0, n, share.parts) + 1; t < share.parts; t++)
        if (!parallel_is_empty(n, (struct parallel_share){t, share.parts}) &&
            !dry_run_moves(3 * 16 * (mine.end - mine.first)))
            for (size_t i = 16 * mine.first; i < 16 * mine.end; i++)
                sum[i] += m->lanes[t].dw[i];
}

/* The numbers of the batch norms behind the target's gradient, when all threads have their sums. */
static void bf16_finish_target(const struct pass *p, struct parallel_share share)
{
    struct model *m = p->m;

    if (!p->target.unit)
        return;
    parallel_barrier(share);
    unit_finish_gradients(m, p->target.unit, m->n, false, p->accumulate, share);
    if (p->target.downsample)
        unit_finish_gradients(m, p->target.downsample, m->n, true, p->accumulate, share);
}

/* Do threads share whole images, so that none needs what another one makes? */
static bool shares_images(const struct pass *p, struct parallel_share share)
{
    return p->m->n % share.parts == 0 || conv_bf16_keeps_lines(&p->u->conv);
}

/* A thread's lines, for both gradients. */
static void convolve_back(struct parallel_share share, void *context)
{
    struct pass p = *(struct pass *)context;
    struct model *m = p.m;
    struct parallel_range lines = model_bf16_lines(m, p.u, share);
    size_t out = (size_t)p.u->conv.window.out;
    bool leads = share.part == parallel_owner(0, (size_t)m->n * out, share.parts);
    bool by_images = shares_images(&p, share);

    p.lane = &m->lanes[share.part];
    if (p.target.unit)
        lane_clear(p.lane, p.target.unit);
    if (p.dx)
        model_bf16_pack(m, p.u, CONV_DATA, share);
    struct conv_bf16_backward b = {
        .packed = m->packed,
        .x = p.x,
        .bf16_x = m->config.bf16_images,
        .dz = p.dz,
        .dx = p.dx,
        .add_dx = p.add_dx,
        .dw = leads ? m->grads + p.u->weight : p.lane->dw,
        .add_dw = leads && p.accumulate,
        .scratch = m->own[share.part],
        .ready = by_images ? bf16_make_dz : NULL,
        .done = p.target.unit ? bf16_finish_dx : NULL,
        .context = &p,
    };
    if (!by_images) {
        bf16_make_dz(lines.first * out, (lines.end - lines.first) * out, &p);
        parallel_barrier(share);
    }
    if (lines.first < lines.end)
        conv_bf16_backward(&p.u->conv, &b, lines.first, lines.end);
    add_parts(&p, share);
    bf16_finish_target(&p, share);
}

/* Weight gradient and input gradient of one unit; then the numbers of the batch norms behind the
 * input gradient. */
static void bf16_backward_run_unit(struct pass *p)
{
    double span = trace_begin();

    parallel_team(p->m->config.threads, convolve_back, p);
    trace_end_layer(span, "backward", p->u->name, unit_flops(p->u, p->m->n) * (p->dx ? 2 : 1));
}

static void bf16_announce(const struct announcement *a, const struct unit *u)
{
    model_announce(a, u->weight, u->grads_end);
}

static const bf16 *bf16_block_input(const struct model *m, int i)
{
    return i ? m->blocks[i - 1].half.out_again : m->half.in_again;
}

struct run {
    struct model *m;
    int first, end; /* blocks */
};

/* Rows of the run's outputs, one block after the other: what the next one adds is in cache. */
static void derive_rows(const struct run *r, size_t row, size_t rows)
{
    struct model *m = r->m;

    for (int i = r->first; i < r->end; i++) {
        const struct block *b = &m->blocks[i];
        const struct unit *u = block_last(m, b);
        size_t c = unit_channels(u), at = row * c;
        struct batchnorm_bf16_residual residual = {.rows = bf16_block_input(m, i) + at};
        if (b->downsample >= 0) {
            const struct unit *d = &m->units[b->downsample];
            residual = (struct batchnorm_bf16_residual){d->half.z + at, d->scale, d->shift};
        }
        batchnorm_bf16_apply(u->half.z + at, rows, c, u->scale, u->shift, &residual, true,
                             b->half.out_again + at);
    }
}

enum { DERIVED = 32 * 1024 }; /* elements at once */

static void bf16_derive(struct parallel_share share, void *context)
{
    const struct run *r = context;
    const struct unit *u = block_last(r->m, &r->m->blocks[r->first]), *stem = &r->m->units[0];
    size_t step = DERIVED / unit_channels(u), n = (size_t)r->m->n;

    if (r->first == 0 && !r->m->pools) {
        struct parallel_range rows = parallel_range(n * unit_pixels(stem), share);
        bf16_make_y_again(stem, rows.first, rows.end - rows.first);
        parallel_barrier(share);
    }
    struct parallel_range rows = parallel_range(n * unit_pixels(u), share);
    for (size_t row = rows.first; row < rows.end; row += step)
        derive_rows(r, row, rows.end - row < step ? rows.end - row : step);
}

/* The outputs of the blocks [first, end), as forward had made them. */
static void bf16_derive_run(struct model *m, int first, int end)
{
    struct run r = {m, first, end};
    double span = trace_begin();
    parallel_team(m->config.threads, bf16_derive, &r);
    trace_end(span, "backward", "recompute", 0);
}

static struct target bf16_target_of_block(const struct model *m, int i)
{
    const struct block *b = &m->blocks[i];

    if (i < 0)
        return (struct target){.unit = m->pools ? NULL : &m->units[0]};
    return (struct target){b->half.out_again, block_last(m, b),
                           b->downsample >= 0 ? &m->units[b->downsample] : NULL};
}

/* From the gradient of the block's output to that of its input. */
static void bf16_backward_run_block(struct model *m, int i, bool accumulate,
                                    const struct announcement *a)
{
    const struct block *b = &m->blocks[i];
    bf16 *g_in = i ? m->blocks[i - 1].half.g : m->half.g_in;
    struct pass p = {.m = m, .g = b->half.g, .accumulate = accumulate};

    if (b->derive >= 0)
        bf16_derive_run(m, b->derive, i);
    if (b->downsample >= 0) {
        struct pass d = p;
        d.u = &m->units[b->downsample];
        d.x = bf16_block_input(m, i);
        d.dz = d.u->half.dz;
        d.dx = g_in;
        bf16_backward_run_unit(&d);
        bf16_announce(a, d.u);
    }
    for (int k = b->units - 1; k > 0; k--) {
        struct unit *below = &m->units[b->first + k - 1];
        p.u = &m->units[b->first + k];
        p.dz = p.u->half.dz;
        p.below = below;
        p.x = below->half.y_again;
        p.dx = below->half.g;
        p.target = (struct target){NULL, below, NULL};
        bf16_backward_run_unit(&p);
        bf16_announce(a, p.u);
        p.g = p.dx;
    }
    p.u = &m->units[b->first];
    p.dz = p.u->half.dz;
    p.below = NULL;
    p.x = bf16_block_input(m, i);
    p.dx = g_in;
    p.add_dx = true; /* onto the shortcut's gradient */
    p.target = bf16_target_of_block(m, i - 1);
    bf16_backward_run_unit(&p);
    bf16_announce(a, p.u);
}

/* Gradient of the last block's output, masked and summed. */
static void bf16_spread_average(struct parallel_share share, void *context)
{
    struct pass *p = context;
    struct model *m = p->m;
    size_t pixels = unit_pixels(p->target.unit), c = unit_channels(p->target.unit), step;
    struct parallel_range rows = parallel_range((size_t)m->n * pixels, share);
    struct lane *lane = &m->lanes[share.part];

    lane_clear(lane, p->target.unit);
    for (size_t row = rows.first; row < rows.end; row += step) {
        step = rows.end - row < pixels ? rows.end - row : pixels;
        pool_bf16_average_backward(m->d_head, row, row + step, (int)pixels, c, p->dx);
        bf16_finish_rows(&p->target, lane, p->dx, row, step);
    }
    bf16_finish_target(p, share);
}

/* Gradient of the stem's activation from that of the pool, masked and summed. */
static void bf16_spread_maxima(struct parallel_share share, void *context)
{
    struct pass *p = context;
    struct model *m = p->m;
    size_t in = (size_t)m->pool.in;
    struct parallel_range lines = parallel_range((size_t)m->n * in, share);
    struct lane *lane = &m->lanes[share.part];

    lane_clear(lane, p->target.unit);
    for (size_t line = lines.first; line < lines.end; line++) {
        pool_bf16_max_backward(&m->pool, p->g, m->tap, line * in, (line + 1) * in, p->dx);
        bf16_finish_rows(&p->target, lane, p->dx, line * in, in);
    }
    bf16_finish_target(p, share);
}

static void bf16_start_target(struct pass *p, parallel_team_body *body)
{
    double span = trace_begin();

    parallel_team(p->m->config.threads, body, p);
    trace_end(span, "backward", body == bf16_spread_maxima ? "maxpool" : "avgpool, fc", 0);
}

static void bf16_run_stem(struct model *m, bool accumulate)
{
    struct unit *stem = &m->units[0];
    struct pass p = {.m = m, .accumulate = accumulate};

    if (m->pools) {
        p.g = m->half.g_in;
        p.dx = stem->half.g;
        p.target.unit = stem;
        bf16_start_target(&p, bf16_spread_maxima);
    }
    bf16_backward_run_unit(&(struct pass){.m = m,
                                          .u = stem,
                                          .x = m->images,
                                          .g = stem->half.g,
                                          .dz = stem->half.dz,
                                          .accumulate = accumulate});
}

void model_bf16_backward(struct model *m, bool accumulate, const struct announcement *a)
{
    int last = m->block_count - 1;

    bf16_start_target(&(struct pass){.m = m,
                                     .accumulate = accumulate,
                                     .dx = m->blocks[last].half.g,
                                     .target = bf16_target_of_block(m, last)},
                      bf16_spread_average);
    for (int i = last; i >= 0; i--)
        bf16_backward_run_block(m, i, accumulate, a);
    bf16_run_stem(m, accumulate);
    bf16_announce(a, &m->units[0]);
}
