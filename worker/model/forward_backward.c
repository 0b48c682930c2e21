#include "worker/model/forward_backward.h"

#include <string.h>

#include "common/assert_always.h"
#include "worker/kernels/softmax_loss.h"
#include "worker/model/cnn.h"
#include "worker/model/traffic.h"
#include "worker/team/dry_run.h"

/* ---- forward */

struct forward_pass {
    struct model *m;
    struct unit *u;
    const void *in;              /* images for the first unit */
    const struct unit *shortcut; /* the downsample unit, or NULL */
    const void *identity;        /* rows to add, or NULL */
    const struct window *window; /* of pooling and filters */
    void *out;
};

/* ---- pooling, and the low-pass filters of model.blur_pool */

static void forward_window_piece(const struct parallel_piece *piece, void *context)
{
    const struct forward_pass *p = context;
    const struct model *m = p->m;
    size_t pixels = (size_t)(m->n * p->window->out * p->window->out);
    struct parallel_range mine = parallel_range(pixels, parallel_piece_share(piece));

    if (p->window == &m->layout->pool)
        m->ops->pool_max(p->window, p->in, mine.first, mine.end, p->out,
                         m->evaluating ? NULL : m->layout->tap);
    else
        m->ops->pool_blur(p->window, false, p->in, mine.first, mine.end, false, p->out);
}

static void forward_window(struct parallel_share share, void *context)
{
    const struct forward_pass *p = context;
    size_t lines = p->m->ops->shares_rows ? 0 : (size_t)(p->m->n * p->window->out);

    parallel_take(share, lines / (size_t)share.parts, forward_window_piece, context);
}

/* Returns out. */
static const void *forward_run_window(struct model *m, const struct window *w, const void *in,
                                      void *out)
{
    struct forward_pass p = {.m = m, .in = in, .out = out, .window = w};
    bool maxima = w == &m->layout->pool;
    double span = trace_begin();

    parallel_team(m->config.threads, forward_window, &p);
    traffic_end_layer(m, span, model_trace_category(m), maxima ? "maxpool" : "blur",
                      maxima ? 0 : unit_blur_flops(w, m->n),
                      maxima ? traffic_of_max_pool(m, w) : traffic_of_blur(m, w));
    return out;
}

static const void *forward_run_pool(struct model *m, const void *y)
{
    struct layout *l = m->layout;

    if (!l->pool_blur.stride)
        return forward_run_window(m, &l->pool, y, l->in);
    y = forward_run_window(m, &l->pool, y, l->maxima);
    return forward_run_window(m, &l->pool_blur, y, l->in);
}

static bool forward_adds(const struct forward_pass *p)
{
    return p->shortcut || p->identity;
}

/* The first row of a channel becomes its shift. */
static void forward_count_rows(const struct model *m, struct thread_accumulator *l, const void *z,
                               const struct parallel_block *part)
{
    double *rows = l->rows + part->column;
    bool begins = false;

    if (dry_run)
        return;
    for (size_t j = 0; j < part->columns; j++)
        begins |= rows[j] == 0;
    for (size_t j = 0; j < part->columns && begins; j++)
        if (rows[j] == 0)
            m->ops->to_floats(precision_at(m, z, j), 1, l->shift + part->column + j);
    for (size_t j = 0; j < part->columns; j++)
        rows[j] += (double)part->rows;
}

static void forward_take_sums(const struct parallel_block *part, void *context)
{
    struct forward_pass *p = context;
    struct thread_accumulator *sums = model_accumulator(p->m);
    size_t c = unit_channels(p->u), column = part->column;
    const void *z = precision_at(p->m, p->u->z, part->row * c + column);
    double piece = trace_begin();

    forward_count_rows(p->m, sums, z, part);
    p->m->ops->sums(z, part->rows, part->columns, c, sums->shift + column, sums->sum + column,
                    sums->square_sum + column);
    trace_part(piece, TRACE_NORM);
}

/* A part of out = relu(bn(z) + the downsample unit's bn(z), or identity, or nothing). */
static void forward_normalise(const struct model *m, const struct unit *u,
                              const struct unit *shortcut, const void *identity, void *out,
                              const struct parallel_block *part)
{
    size_t column = part->column, at = part->row * unit_channels(u) + column;
    struct batchnorm_residual residual = {0};

    if (shortcut)
        residual = (struct batchnorm_residual){precision_at(m, shortcut->z, at),
                                               shortcut->scale + column, shortcut->shift + column};
    else if (identity)
        residual.rows = precision_at(m, identity, at);
    m->ops->apply(precision_at(m, u->z, at), part->rows, part->columns, unit_channels(u),
                  u->scale + column, u->shift + column, &residual, true, precision_at(m, out, at));
}

static void forward_normalise_tile(const struct parallel_block *part, void *context)
{
    const struct forward_pass *p = context;
    double piece = trace_begin();

    forward_normalise(p->m, p->u, p->shortcut, p->identity, p->out, part);
    trace_part(piece, TRACE_NORM);
}

static conv_rows *forward_rows_done(const struct forward_pass *p)
{
    if (unit_evaluates(p->m, p->u))
        return p->out ? forward_normalise_tile : NULL;
    return p->m->config.frozen_bn ? NULL : forward_take_sums;
}

static void forward_convolve(struct parallel_share share, void *context)
{
    struct forward_pass *p = context;
    conv_rows *done = forward_rows_done(p);

    p->m->ops->forward(p->m, p->u, p->u->blur.stride ? p->u->x : p->in, share, done, p);
    if (done != forward_take_sums)
        return;
    parallel_barrier(share);
    unit_finish_statistics(p->m, p->u, p->m->n, share);
}

static void forward_run_unit(struct forward_pass *p)
{
    struct model *m = p->m;
    struct unit *u = p->u;

    if (u->blur.stride)
        forward_run_window(m, &u->blur, p->in, u->x);
    double span = trace_begin();
    if (unit_evaluates(m, u) || m->config.frozen_bn)
        unit_use_running_statistics(m, u);
    parallel_team(m->config.threads, forward_convolve, p);
    double bytes = traffic_of_input(m, u) + traffic_of_weights(u) +
                   traffic_of_output(m, u) * (unit_evaluates(m, u) && forward_adds(p) ? 2 : 1);
    traffic_end_layer(m, span, model_trace_category(m), u->name, unit_flops(u, m->n), bytes);
}

static void forward_apply_piece(const struct parallel_piece *piece, void *context)
{
    const struct forward_pass *p = context;
    struct parallel_block part[PARALLEL_BLOCKS];
    int parts = precision_parts(p->m, p->u, parallel_piece_share(piece), part);

    for (int i = 0; i < parts; i++)
        forward_normalise(p->m, p->u, p->shortcut, p->identity, p->out, &part[i]);
}

static void forward_apply(struct parallel_share share, void *context)
{
    const struct forward_pass *p = context;
    parallel_take(share, precision_grains(p->m, p->u, share), forward_apply_piece, context);
}

/* Returns p->out of a unit; evaluation and frozen units overwrite z with it. */
static const void *forward_run_normalised(struct forward_pass *p, void *out)
{
    struct model *m = p->m;

    p->out = unit_evaluates(m, p->u) ? p->u->z : NULL;
    forward_run_unit(p);
    if (p->out)
        return p->out;
    p->out = out;
    double span = trace_begin();
    parallel_team(m->config.threads, forward_apply, p);
    traffic_end_layer(m, span, model_trace_category(m), p->u->bn_name, 0,
                      traffic_of_output(m, p->u) * (forward_adds(p) ? 3 : 2));
    return p->out;
}

static const void *forward_run_block(struct model *m, const struct block *b, const void *in)
{
    struct forward_pass p = {.m = m, .in = in};

    if (b->downsample >= 0) {
        p.u = &m->layout->units[b->downsample];
        forward_run_unit(&p);
    }
    for (int k = 0; k < b->units - 1; k++) {
        p.u = &m->layout->units[b->first + k];
        p.in = forward_run_normalised(&p, p.u->y);
    }
    p.u = block_last(m, b);
    p.shortcut = block_shortcut(m, b);
    if (!p.shortcut)
        p.identity = in;
    return forward_run_normalised(&p, b->out);
}

/* The averages (of p->in, if not NULL), dropout, logits; in training losses and probabilities. */
static void forward_classify(struct parallel_share share, void *context)
{
    const struct forward_pass *p = context;
    struct model *m = p->m;
    struct linear classifier = model_classifier(m);
    struct parallel_block part[PARALLEL_BLOCKS];
    struct parallel_range images = parallel_range((size_t)m->n, share);
    size_t n = (size_t)m->n;

    if (p->in) {
        int parts = parallel_matrix(n, n, classifier.in, 64, share, part);
        for (int i = 0; i < parts; i++)
            m->ops->pool_average(p->in, &part[i], (int)unit_pixels(p->u), classifier.in, m->head);
        parallel_barrier(share);
    }
    if (!m->evaluating && m->config.dropout > 0) {
        for (size_t i = images.first; i < images.end; i++)
            model_drop(m, (int)i, m->head + i * classifier.in);
        parallel_barrier(share);
    }
    int parts = model_matrix_parts(n, classifier.out, share, part);
    for (int i = 0; i < parts; i++)
        linear_forward(&classifier, m->params + m->fc_weight, m->params + m->fc_bias, m->head,
                       &part[i], m->logits);
    if (m->evaluating)
        return;
    parallel_barrier(share);
    struct softmax_target target = model_target(m);
    softmax_loss_rows(&target, m->logits, (int)images.first, (int)images.end, m->logits, m->losses);
}

/* in: to be averaged; NULL: the head is complete. */
static void forward_run_head(struct model *m, const void *in)
{
    struct forward_pass p = {.m = m, .in = in};
    struct linear classifier = model_classifier(m);
    double span = trace_begin();

    if (in)
        p.u = block_last(m, &m->layout->blocks[m->block_count - 1]);
    parallel_team(m->config.threads, forward_classify, &p);
    traffic_end_layer(m, span, model_trace_category(m), m->cnn ? "fc2" : "avgpool, fc",
                      2.0 * m->n * (double)m->config.classes * m->features,
                      traffic_of_linear(m, &classifier, false, false) +
                          (in ? traffic_of_output(m, p.u) : 0));
}

static void forward_run(struct model *m, const void *images, int n)
{
    assert_object(m, MODEL_MAGIC);
    /* a dry run may count batches that exceed the memory */
    assert_always(n <= m->layout->batch || (team_watch && team_watch->dry));
    m->n = n;
    m->moved_images += n;
    m->images = images;
    if (m->cnn) {
        cnn_forward(m);
        forward_run_head(m, NULL);
        return;
    }
    struct forward_pass p = {.m = m, .u = &m->layout->units[0], .in = images};
    const void *at = forward_run_normalised(&p, m->layout->units[0].y);

    if (m->pools)
        at = forward_run_pool(m, at);
    for (int i = 0; i < m->block_count; i++)
        at = forward_run_block(m, &m->layout->blocks[i], at);
    forward_run_head(m, at);
}

double model_forward(struct model *m, const void *images, const int32_t *labels, int n,
                     int *correct)
{
    m->evaluating = false;
    m->labels = labels;
    forward_run(m, images, n);
    return softmax_loss_sum(m->losses, n, correct) / n;
}

void model_mix(struct model *m, double lambda)
{
    m->mixed = 1 - lambda;
}

void model_weigh_classes(struct model *m, const double *weights)
{
    m->class_weights = weights;
}

void model_draw(struct model *m, const struct model_draw *draw)
{
    m->draw = *draw;
}

void model_predict(struct model *m, const void *images, int n, float *logits)
{
    m->evaluating = true;
    forward_run(m, images, n);
    memcpy(logits, m->logits, (size_t)n * (size_t)m->config.classes * sizeof *logits);
}

/* ---- backward */

/*
 * A gradient tensor g is stored masked (by the ReLU of its activation) and with its batch norm sums
 * taken: whoever produces it does both in its epilogue. The convolution that consumes it turns it
 * into dz in the tile it is about to read.
 *
 * Activations are not kept: a unit's input is recomputed from the z before it, just before the
 * convolution reads it, and the outputs of a run of blocks at once (backward_run_derive).
 */
/* Destination of a gradient: its activation and the batch norms that made it */
struct target {
    const void *y;           /* NULL: the mask is scale z + shift > 0 */
    struct unit *unit;       /* NULL: no mask and no sums */
    struct unit *downsample; /* or NULL */
};

struct pass {
    struct model *m;
    struct unit *u;
    const void *x;            /* input of the convolution; images of the first one */
    const void *g;            /* gradient of its normalised output */
    const struct unit *below; /* unit whose activation x is, to be recomputed; NULL: x exists */
    bool below_by_rows;       /* recompute with the rows of dz, instead of before the convolution */
    void *dz, *dx;            /* dz may share g's memory */
    double scale;             /* of the loss */
    bool add_dx, accumulate;
    struct target target;        /* of dx */
    const struct window *window; /* of pooling and filters: g is of its output, dx of its input */
};

static void backward_make_y_again(const struct model *m, const struct unit *u,
                                  const struct parallel_block *part)
{
    forward_normalise(m, u, NULL, NULL, u->y_again, part);
}

/* Before the convolution reads rows of dz, and the rows of x that these are computed from. */
static void backward_make_dz(const struct parallel_block *part, void *context)
{
    const struct pass *p = context;
    const struct model *m = p->m;
    const struct unit *u = p->u;
    size_t c = unit_channels(u), column = part->column, at = part->row * c + column;
    double piece = trace_begin();

    if (p->below_by_rows) {
        size_t in = conv_pixels_in(&u->conv), out = conv_pixels_out(&u->conv);
        size_t first = part->row * in / out, end = (part->row + part->rows) * in / out;
        struct parallel_block rows = {first, end - first, 0, unit_channels(p->below)};
        backward_make_y_again(m, p->below, &rows);
    }
    m->ops->input_gradient(precision_at(m, p->g, at), precision_at(m, u->z, at), part->rows,
                           part->columns, c, u->ga + column, u->gb + column, u->gc + column,
                           precision_at(m, p->dz, at));
    trace_part(piece, TRACE_NORM);
}

/* Masks rows of dx and takes their sums. */
static void backward_finish_rows(const struct pass *p, const struct parallel_block *part)
{
    const struct model *m = p->m;
    const struct target *t = &p->target;
    const struct unit *u = t->unit;
    struct thread_accumulator *l = model_accumulator(m);
    size_t c = unit_channels(u), column = part->column, at = part->row * c + column;
    struct batchnorm_mask mask = {t->y ? precision_at(m, t->y, at) : NULL, u->scale + column,
                                  u->shift + column};
    struct batchnorm_branch branch[2] = {
        {precision_at(m,          u->z, at), u->batch_mean + column, l->square_sum + column},
        {NULL, NULL,     l->branch_sum + column    },
    };
    if (t->downsample) {
        branch[1].z = precision_at(m, t->downsample->z, at);
        branch[1].mean = t->downsample->batch_mean + column;
    }
    m->ops->mask_sums(precision_at(m, p->dx, at), &mask, part->rows, part->columns, c, branch,
                      l->sum + column);
}

static void backward_finish_dx(const struct parallel_block *part, void *context)
{
    double piece = trace_begin();
    backward_finish_rows(context, part);
    trace_part(piece, TRACE_NORM);
}

/* After a barrier, computes the gradients of the target's batch norms. */
static void backward_finish_target(const struct pass *p, struct parallel_share share)
{
    struct model *m = p->m;

    if (!p->target.unit)
        return;
    parallel_barrier(share);
    unit_finish_gradients(m, p->target.unit, m->n, false, p->accumulate, share);
    if (p->target.downsample)
        unit_finish_gradients(m, p->target.downsample, m->n, true, p->accumulate, share);
    unit_clear_sums(m, p->target.unit, share);
}

/* Recomputes the input of a convolution that reads beyond the rows of a tile. */
static void backward_input_piece(const struct parallel_piece *of, void *context)
{
    const struct pass *p = context;
    struct parallel_block part[PARALLEL_BLOCKS];
    int parts = precision_parts(p->m, p->below, parallel_piece_share(of), part);
    double piece = trace_begin();

    for (int i = 0; i < parts; i++)
        backward_make_y_again(p->m, p->below, &part[i]);
    trace_part(piece, TRACE_NORM);
}

/* A thread's part of both gradients of a unit, then those of the batch norms before it. */
static void backward_convolve(struct parallel_share share, void *context)
{
    struct pass p = *(struct pass *)context;
    struct model *m = p.m;
    struct precision_backward b = {
        .x = p.x,
        .dz = p.dz,
        .dx = p.dx,
        .add_dx = p.add_dx,
        .add_dw = p.accumulate,
        .ready = backward_make_dz,
        .done = p.target.unit ? backward_finish_dx : NULL,
        .context = &p,
    };

    p.below_by_rows = p.below && m->ops->reads_x_by_rows(m, p.u, p.dx);
    if (p.below && !p.below_by_rows)
        parallel_take(share, precision_grains(m, p.below, share), backward_input_piece, &p);
    m->ops->backward(m, p.u, &b, share);
    backward_finish_target(&p, share);
}

/* By what backward_finish_rows reads: y, and z of the target's batch norms. */
static double backward_target_bytes(const struct model *m, const struct target *t)
{
    int tensors = 1 + (t->y != NULL) + (t->downsample != NULL);
    return t->unit ? traffic_of_output(m, t->unit) * tensors : 0;
}

/* g, z and dz; x, or what it is recomputed from and x; dx; the weights and their gradient. */
static double backward_unit_bytes(const struct pass *p)
{
    const struct model *m = p->m;
    const struct unit *u = p->u;
    double bytes = 3 * traffic_of_output(m, u) + backward_target_bytes(m, &p->target);

    bytes += p->below ? 2 * traffic_of_output(m, p->below) : traffic_of_input(m, u);
    if (p->dx)
        bytes += traffic_of_input_gradient(m, u) * (p->add_dx ? 2 : 1);
    return bytes + traffic_of_weights(u) * ((p->dx != NULL) + 1 + p->accumulate);
}

static void backward_run_unfiltered(struct pass *p, const struct announcement *a)
{
    double span = trace_begin();

    parallel_team(p->m->config.threads, backward_convolve, p);
    traffic_end_layer(p->m, span, "backward", p->u->name,
                      unit_flops(p->u, p->m->n) * (p->dx ? 2 : 1), backward_unit_bytes(p));
    model_announce(a, p->u->weight, p->u->grads_end);
}

/* Rows up to the image's end. */
static size_t backward_rows_of_image(size_t row, size_t end, size_t pixels)
{
    return size_min((row / pixels + 1) * pixels, end) - row;
}

static void backward_window_piece(const struct parallel_piece *piece, void *context)
{
    const struct pass *p = context;
    struct model *m = p->m;
    const struct window *w = p->window;
    size_t c = (size_t)w->channels, in = (size_t)w->in;
    struct parallel_range lines = parallel_range((size_t)m->n * in, parallel_piece_share(piece));

    for (size_t line = lines.first, count; line < lines.end; line += count) {
        count = m->ops->shares_rows ? 1 : backward_rows_of_image(line, lines.end, in);
        struct parallel_block of = {line * in, count * in, 0, c};
        if (w == &m->layout->pool)
            m->ops->pool_max_backward(w, p->g, m->layout->tap, line, line + count, p->dx);
        else
            m->ops->pool_blur(w, true, p->g, of.row, of.row + of.rows, p->add_dx, p->dx);
        if (p->target.unit)
            backward_finish_rows(p, &of);
    }
}

/* Gradient of the input of pooling or of a filter */
static void backward_window(struct parallel_share share, void *context)
{
    const struct pass *p = context;
    size_t in = (size_t)p->window->in, c = (size_t)p->window->channels;
    size_t grains = precision_grains_of(p->m, (size_t)p->m->n * in * in * c, share);

    parallel_take(share, grains, backward_window_piece, context);
    backward_finish_target(p, share);
}

/* bytes: of the pass, besides what backward_finish_rows reads */
static void backward_start_target(struct pass *p, parallel_team_body *body, const char *name,
                                  double flops, double bytes)
{
    double span = trace_begin();

    parallel_team(p->m->config.threads, body, p);
    traffic_end_layer(p->m, span, "backward", name, flops,
                      bytes + backward_target_bytes(p->m, &p->target));
}

/* The input of a filter, if it is not kept, and then of the convolution */
static void backward_filter(struct parallel_share share, void *context)
{
    const struct pass *p = context;
    struct forward_pass f = {.m = p->m, .in = p->x, .out = p->u->x_again, .window = &p->u->blur};

    if (p->below) {
        parallel_take(share, precision_grains(p->m, p->below, share), backward_input_piece,
                      context);
        parallel_barrier(share);
    }
    forward_window(share, &f);
}

static void backward_run_unit(struct pass *p, const struct announcement *a)
{
    struct model *m = p->m;
    const struct unit *u = p->u;
    double flops = unit_blur_flops(&u->blur, m->n), bytes = traffic_of_blur(m, &u->blur);
    struct pass conv = *p, back = *p;

    if (!u->blur.stride) {
        backward_run_unfiltered(p, a);
        return;
    }
    double span = trace_begin();
    parallel_team(m->config.threads, backward_filter, p);
    traffic_end_layer(m, span, "backward", "blur", flops,
                      bytes + (p->below ? traffic_of_output(m, p->below) : 0));
    conv.x = u->x_again;
    conv.below = NULL;
    conv.dx = p->dx ? u->g_x : NULL;
    conv.add_dx = false;
    conv.target = (struct target){0};
    backward_run_unfiltered(&conv, a);
    if (!p->dx)
        return;
    back.g = u->g_x;
    back.window = &u->blur;
    backward_start_target(&back, backward_window, "blur", flops, bytes);
}

/* ---- recomputation of the outputs of a run of blocks */

struct run {
    struct model *m;
    int first, end; /* blocks */
};

static const void *backward_block_input(const struct model *m, int i)
{
    return i ? m->layout->blocks[i - 1].out_again : m->layout->in_again;
}

/* Block after block, so that the next one's addend is in cache. */
static void backward_derive_part(const struct run *r, const struct parallel_block *part)
{
    const struct model *m = r->m;

    for (int i = r->first; i < r->end; i++) {
        const struct block *b = &m->layout->blocks[i];
        forward_normalise(m, block_last(m, b), block_shortcut(m, b), backward_block_input(m, i),
                          b->out_again, part);
    }
}

enum { DERIVED_BYTES = 64 * 1024 }; /* at a time */

static const struct unit *backward_derived_unit(const struct run *r)
{
    return block_last(r->m, &r->m->layout->blocks[r->first]);
}

static void backward_derive_piece(const struct parallel_piece *piece, void *context)
{
    const struct run *r = context;
    const struct model *m = r->m;
    struct parallel_block part[PARALLEL_BLOCKS];
    int parts = precision_parts(m, backward_derived_unit(r), parallel_piece_share(piece), part);

    for (int i = 0; i < parts; i++) {
        size_t step = DERIVED_BYTES / m->ops->bytes / part[i].columns,
               end = part[i].row + part[i].rows;
        for (size_t row = part[i].row; row < end; row += step)
            backward_derive_part(r, &(struct parallel_block){row, size_min(end - row, step),
                                                             part[i].column, part[i].columns});
    }
}

static void backward_derive(struct parallel_share share, void *context)
{
    const struct run *r = context;
    struct model *m = r->m;
    const struct unit *stem = &m->layout->units[0];
    struct parallel_block part[PARALLEL_BLOCKS];

    if (r->first == 0 && !m->pools && !stem->frozen) {
        int parts = precision_parts(m, stem, share, part);
        for (int i = 0; i < parts; i++)
            backward_make_y_again(m, stem, &part[i]);
        parallel_barrier(share);
    }
    parallel_take(share, precision_grains(m, backward_derived_unit(r), share),
                  backward_derive_piece, context);
}

/* The outputs of the run, and what they are made from but for each other. */
static double backward_derive_bytes(const struct run *r)
{
    const struct model *m = r->m;
    double output = traffic_of_output(m, backward_derived_unit(r));
    double bytes = 2 * output * (r->end - r->first) + output;

    if (r->first == 0 && !m->pools && !m->layout->units[0].frozen)
        bytes += 2 * traffic_of_output(m, &m->layout->units[0]);
    return bytes;
}

static void backward_run_derive(struct model *m, int first, int end)
{
    struct run r = {m, first, end};
    double span = trace_begin();
    parallel_team(m->config.threads, backward_derive, &r);
    traffic_end_layer(m, span, "backward", "recompute", 0, backward_derive_bytes(&r));
}

/* ---- classifier, pools */

enum { WEIGHTS_AT_ONCE = 128 };

static void backward_classifier_back(struct parallel_share share, void *context)
{
    const struct pass *p = context;
    struct model *m = p->m;
    struct linear classifier = model_classifier(m);
    struct parallel_block part[PARALLEL_BLOCKS];
    struct parallel_range images = parallel_range((size_t)m->n, share);

    struct softmax_target target = model_target(m);
    softmax_loss_backward(&target, m->logits, (int)images.first, (int)images.end, p->scale / m->n,
                          m->logits);
    parallel_barrier(share);
    int parts = parallel_matrix(classifier.out, classifier.out, classifier.in, WEIGHTS_AT_ONCE,
                                share, part);
    for (int i = 0; i < parts; i++)
        linear_weight_gradients(&classifier, m->head, m->logits, (size_t)m->n, &part[i],
                                m->grads + m->fc_weight, m->grads + m->fc_bias, p->accumulate);
    if (model_trains_classifier_only(m))
        return;
    parts = model_matrix_parts((size_t)m->n, classifier.in, share, part);
    for (int i = 0; i < parts; i++)
        linear_input_gradient(&classifier, m->params + m->fc_weight, m->logits, &part[i],
                              m->d_head);
    if (m->config.dropout == 0)
        return;
    parallel_barrier(share);
    for (size_t i = images.first; i < images.end; i++)
        model_drop(m, (int)i, m->d_head + i * classifier.in);
}

static void backward_run_classifier(struct model *m, double scale, bool accumulate)
{
    struct pass p = {.m = m, .scale = scale, .accumulate = accumulate};
    struct linear classifier = model_classifier(m);
    double span = trace_begin();

    parallel_team(m->config.threads, backward_classifier_back, &p);
    traffic_end_layer(m, span, "backward", m->cnn ? "fc2" : "avgpool, fc",
                      (model_trains_classifier_only(m) ? 2.0 : 4.0) * m->n *
                          (double)m->config.classes * m->features,
                      traffic_of_linear(m, &classifier, true, accumulate));
}

static void backward_average_piece(const struct parallel_piece *piece, void *context)
{
    const struct pass *p = context;
    struct model *m = p->m;
    size_t pixels = unit_pixels(p->target.unit), c = unit_channels(p->target.unit);
    struct parallel_block part[PARALLEL_BLOCKS];
    int parts = precision_parts(m, p->target.unit, parallel_piece_share(piece), part);

    for (int i = 0; i < parts; i++)
        for (size_t row = part[i].row, end = row + part[i].rows, rows; row < end; row += rows) {
            rows = m->ops->shares_rows ? size_min(end - row, pixels)
                                       : backward_rows_of_image(row, end, pixels);
            struct parallel_block of = {row, rows, part[i].column, part[i].columns};
            m->ops->pool_average_backward(m->d_head, &of, (int)pixels, c, p->dx);
            backward_finish_rows(p, &of);
        }
}

/* Gradient of the last block's output */
static void backward_spread_average(struct parallel_share share, void *context)
{
    const struct pass *p = context;

    parallel_take(share, precision_grains(p->m, p->target.unit, share), backward_average_piece,
                  context);
    backward_finish_target(p, share);
}

/* ---- order */

static struct target backward_target_of_block(const struct model *m, int i)
{
    const struct block *b = &m->layout->blocks[i];

    if (i < 0)
        return (struct target){.unit = m->pools ? NULL : &m->layout->units[0]};
    return (struct target){b->out_again, block_last(m, b), block_shortcut(m, b)};
}

/* From the gradient of the block's output to that of its input, unless all before it is frozen. */
static void backward_run_block(struct model *m, int i, bool accumulate,
                               const struct announcement *a)
{
    const struct block *b = &m->layout->blocks[i];
    void *g_in = i ? m->layout->blocks[i - 1].g : m->layout->g_in;
    struct pass p = {.m = m, .g = b->g, .accumulate = accumulate};

    if (b->derive >= 0)
        backward_run_derive(m, b->derive, i);
    if (b->downsample >= 0) {
        struct pass d = p;
        d.u = block_shortcut(m, b);
        d.x = backward_block_input(m, i);
        d.dz = d.u->dz;
        d.dx = g_in;
        backward_run_unit(&d, a);
    }
    for (int k = b->units - 1; k > 0; k--) {
        struct unit *below = &m->layout->units[b->first + k - 1];
        p.u = &m->layout->units[b->first + k];
        p.dz = p.u->dz;
        p.below = below;
        p.x = below->y_again;
        p.dx = below->g;
        p.target = (struct target){NULL, below, NULL};
        backward_run_unit(&p, a);
        p.g = p.dx;
    }
    p.u = &m->layout->units[b->first];
    p.dz = p.u->dz;
    p.below = NULL;
    p.x = backward_block_input(m, i);
    p.dx = g_in;
    p.add_dx = g_in; /* to the shortcut's gradient */
    p.target = g_in ? backward_target_of_block(m, i - 1) : (struct target){0};
    backward_run_unit(&p, a);
}

static void backward_run_stem(struct model *m, bool accumulate, const struct announcement *a)
{
    struct unit *stem = &m->layout->units[0];
    struct pass p = {.m = m, .accumulate = accumulate};

    if (m->pools) {
        struct layout *l = m->layout;
        p.g = l->g_in;
        if (l->pool_blur.stride) {
            p.window = &l->pool_blur;
            p.dx = l->g_maxima;
            backward_start_target(&p, backward_window, "blur", unit_blur_flops(p.window, m->n),
                                  traffic_of_blur(m, p.window));
            p.g = p.dx;
        }
        p.window = &l->pool;
        p.dx = stem->g;
        p.target.unit = stem;
        backward_start_target(&p, backward_window, "maxpool", 0, traffic_of_max_pool(m, p.window));
    }
    struct pass last = {
        .m = m, .u = stem, .x = m->images, .g = stem->g, .dz = stem->dz, .accumulate = accumulate};
    backward_run_unit(&last, a);
}

void model_backward(struct model *m, double scale, bool accumulate, model_grads_ready *ready,
                    void *context)
{
    struct announcement a = {ready, context};

    assert_object(m, MODEL_MAGIC);
    assert_always(!m->evaluating && !m->layout->predicts); /* follows model_forward */
    backward_run_classifier(m, scale, accumulate);
    if (ready)
        ready(m->fc_weight, m->param_count - m->fc_weight, context);
    if (model_trains_classifier_only(m))
        return;
    if (m->cnn) {
        cnn_backward(m, accumulate, &a);
        return;
    }
    int last = m->block_count - 1;
    struct pass averages = {.m = m,
                            .accumulate = accumulate,
                            .dx = m->layout->blocks[last].g,
                            .target = backward_target_of_block(m, last)};
    backward_start_target(&averages, backward_spread_average, "avgpool, fc", 0,
                          traffic_of_output(m, averages.target.unit));
    for (int i = last; i >= m->frozen_blocks; i--)
        backward_run_block(m, i, accumulate, &a);
    if (!m->layout->units[0].frozen)
        backward_run_stem(m, accumulate, &a);
}
