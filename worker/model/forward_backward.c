#include "worker/model/forward_backward.h"

#include <string.h>

#include "common/run/trace.h"
#include "worker/kernels/pool.h"
#include "worker/kernels/softmax_loss.h"
#include "worker/model/bf16_forward_backward.h"
#include "worker/model/cnn.h"
#include "worker/team/dry_run.h"

/* ---- forward */

struct forward_pass {
    struct model *m;
    struct unit *u;
    const float *in;
    const struct unit *shortcut; /* the downsample unit, or NULL */
    const float *identity;       /* rows to add, or NULL */
    float *out;
};

/* The first row of a channel becomes its shift. */
static void forward_count_rows(struct thread_accumulator *l, const float *z,
                               const struct parallel_block *part)
{
    for (size_t j = 0; j < part->columns && !dry_run; j++) {
        size_t channel = part->column + j;
        if (l->rows[channel] == 0)
            l->shift[channel] = z[j];
        l->rows[channel] += (double)part->rows;
    }
}

static void forward_take_sums(const struct parallel_block *part, void *context)
{
    struct forward_pass *p = context;
    struct thread_accumulator *sums = model_accumulator(p->m);
    size_t c = unit_channels(p->u), column = part->column;
    const float *z = p->u->z + part->row * c + column;
    double piece = trace_begin();

    forward_count_rows(sums, z, part);
    batchnorm_sums(z, part->rows, part->columns, c, sums->shift + column, sums->sum + column,
                   sums->square_sum + column);
    trace_part(piece, TRACE_NORM);
}

static void forward_normalise(const struct forward_pass *p, const struct parallel_block *part)
{
    const struct unit *u = p->u;
    size_t column = part->column, at = part->row * unit_channels(u) + column;
    struct batchnorm_residual residual = {0};

    if (p->shortcut)
        residual = (struct batchnorm_residual){p->shortcut->z + at, p->shortcut->scale + column,
                                               p->shortcut->shift + column};
    else if (p->identity)
        residual.rows = p->identity + at;
    batchnorm_apply(u->z + at, part->rows, part->columns, unit_channels(u), u->scale + column,
                    u->shift + column, &residual, true, p->out + at);
}

static void forward_normalise_tile(const struct parallel_block *part, void *context)
{
    double piece = trace_begin();
    forward_normalise(context, part);
    trace_part(piece, TRACE_NORM);
}

static conv_rows *forward_rows_done(const struct forward_pass *p)
{
    if (p->m->evaluating)
        return p->out ? forward_normalise_tile : NULL;
    return p->m->frozen ? NULL : forward_take_sums;
}

static void forward_convolve(struct parallel_share share, void *context)
{
    struct forward_pass *p = context;
    struct model *m = p->m;
    struct conv_memory memory = model_memory(m);
    const float *w = m->params + p->u->weight;
    conv_rows *done = forward_rows_done(p);

    if (m->config.threads == 1)
        conv_forward(&p->u->conv, w, p->in, p->u->z, 0, m->n, m->own[0], done, p);
    else
        conv_forward_team(&p->u->conv, w, p->in, p->u->z, m->n, share, &memory, done, p);
    if (done != forward_take_sums)
        return;
    parallel_barrier(share);
    unit_finish_statistics(m, p->u, m->n, share);
}

static void forward_run_unit(struct forward_pass *p)
{
    struct model *m = p->m;
    struct unit *u = p->u;
    double span = trace_begin();

    if (m->evaluating || m->frozen)
        unit_use_running_statistics(m, u);
    parallel_team(m->config.threads, forward_convolve, p);
    trace_end_layer(span, model_trace_category(m), u->name, unit_flops(u, m->n));
}

static void forward_apply_piece(const struct parallel_piece *piece, void *context)
{
    const struct forward_pass *p = context;
    struct parallel_block part[PARALLEL_BLOCKS];
    int parts = unit_parts(p->u, p->m->n, parallel_piece_share(piece), part);

    for (int i = 0; i < parts; i++)
        forward_normalise(p, &part[i]);
}

static void forward_apply(struct parallel_share share, void *context)
{
    const struct forward_pass *p = context;
    parallel_take(share, unit_grains(p->u, p->m->n, share), forward_apply_piece, context);
}

/* Returns p->out of a unit; evaluation overwrites z with it. */
static const float *forward_run_normalised(struct forward_pass *p, float *out)
{
    struct model *m = p->m;

    p->out = m->evaluating ? p->u->z : NULL;
    forward_run_unit(p);
    if (m->evaluating)
        return p->out;
    p->out = out;
    double span = trace_begin();
    parallel_team(m->config.threads, forward_apply, p);
    trace_end(span, model_trace_category(m), p->u->bn_name, 0);
    return p->out;
}

static const float *forward_run_block(struct model *m, const struct block *b, const float *in)
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
    if (b->downsample >= 0)
        p.shortcut = &m->layout->units[b->downsample];
    else
        p.identity = in;
    return forward_run_normalised(&p, b->out);
}

static void forward_pool_piece(const struct parallel_piece *piece, void *context)
{
    const struct forward_pass *p = context;
    struct model *m = p->m;
    size_t pixels = (size_t)(m->n * m->layout->pool.out * m->layout->pool.out);
    struct parallel_range mine = parallel_range(pixels, parallel_piece_share(piece));

    pool_max(&m->layout->pool, p->in, mine.first, mine.end, p->out,
             m->evaluating ? NULL : m->layout->tap);
}

static void forward_pool(struct parallel_share share, void *context)
{
    const struct forward_pass *p = context;
    size_t lines = (size_t)(p->m->n * p->m->layout->pool.out);

    parallel_take(share, lines / (size_t)share.parts, forward_pool_piece, context);
}

static const float *forward_run_pool(struct model *m, const float *y)
{
    struct forward_pass p = {.m = m, .in = y, .out = m->layout->in};
    double span = trace_begin();
    parallel_team(m->config.threads, forward_pool, &p);
    trace_end(span, model_trace_category(m), "maxpool", 0);
    return m->layout->in;
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
            pool_average(p->in, &part[i], (int)unit_pixels(p->u), classifier.in, m->head);
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
    softmax_loss_rows(m->logits, m->labels, m->n, (int)images.first, (int)images.end,
                      m->config.classes, m->config.label_smoothing, 1 - m->mixed, m->logits,
                      m->losses);
}

/* in: to be averaged; NULL: the head is complete. */
static void forward_run_head(struct model *m, const float *in)
{
    struct forward_pass p = {.m = m, .in = in};
    double span = trace_begin();

    if (in)
        p.u = block_last(m, &m->layout->blocks[m->block_count - 1]);
    parallel_team(m->config.threads, forward_classify, &p);
    trace_end_layer(span, model_trace_category(m), m->cnn ? "fc2" : "avgpool, fc",
                    2.0 * m->n * (double)m->config.classes * m->features);
}

static void forward_run(struct model *m, const void *images, int n)
{
    m->n = n;
    if (m->cnn) {
        m->images = images;
        cnn_forward(m);
        forward_run_head(m, NULL);
        return;
    }
    if (model_is_bf16(m)) {
        m->images = images;
        model_bf16_forward(m);
        forward_run_head(m, NULL);
        return;
    }
    struct forward_pass p = {.m = m, .u = &m->layout->units[0], .in = images};
    const float *at = forward_run_normalised(&p, m->layout->units[0].y);

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
    m->images = images;
    m->labels = labels;
    forward_run(m, images, n);
    return softmax_loss_sum(m->losses, n, correct) / n;
}

void model_mix(struct model *m, double lambda)
{
    m->mixed = 1 - lambda;
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
 * convolution reads it, and the outputs of a run of blocks at once (walk_derive_run).
 */
typedef float number;
#define TENSORS(owner) (owner)
#include "worker/model/backward_walk.h"

static void backward_make_y_again(const struct unit *u, const struct parallel_block *part)
{
    size_t c = unit_channels(u), at = part->row * c + part->column;
    batchnorm_apply(u->z + at, part->rows, part->columns, c, u->scale + part->column,
                    u->shift + part->column, NULL, true, u->y_again + at);
}

/* Whether x and dz can be computed in the tile: a 1x1 convolution reads the same rows of both. */
static bool backward_reads_rows(const struct pass *p, int threads)
{
    const struct conv *c = &p->u->conv;
    return c->window.kernel == 1 && c->window.stride == 1 &&
           (threads == 1 || conv_backward_by_rows(c, p->m->n, threads, p->dx != NULL));
}

static void backward_make_dz(const struct parallel_block *part, void *context)
{
    const struct pass *p = context;
    const struct unit *u = p->u;
    size_t c = unit_channels(u), column = part->column, at = part->row * c + column;
    double piece = trace_begin();

    if (p->below_by_rows) {
        struct parallel_block rows = {part->row, part->rows, 0, unit_channels(p->below)};
        backward_make_y_again(p->below, &rows);
    }
    batchnorm_input_gradient(p->g + at, u->z + at, part->rows, part->columns, c, u->ga + column,
                             u->gb + column, u->gc + column, p->dz + at);
    trace_part(piece, TRACE_NORM);
}

static void backward_finish_rows(const struct target *t, struct thread_accumulator *l, float *g,
                                 const struct parallel_block *part)
{
    const struct unit *u = t->unit;
    size_t c = unit_channels(u), column = part->column, at = part->row * c + column;
    struct batchnorm_mask mask = {t->y ? t->y + at : NULL, u->scale + column, u->shift + column};
    struct batchnorm_branch branch[2] = {
        {u->z + at, u->batch_mean + column, l->square_sum + column},
        {NULL,      NULL,                   l->branch_sum + column},
    };
    if (t->downsample) {
        branch[1].z = t->downsample->z + at;
        branch[1].mean = t->downsample->batch_mean + column;
    }
    batchnorm_mask_sums(g + at, &mask, part->rows, part->columns, c, branch, l->sum + column);
}

static void backward_finish_dx(const struct parallel_block *part, void *context)
{
    const struct pass *p = context;
    double piece = trace_begin();
    backward_finish_rows(&p->target, model_accumulator(p->m), p->dx, part);
    trace_part(piece, TRACE_NORM);
}

static struct conv_backward backward_arguments(struct pass *p)
{
    const struct model *m = p->m;
    return (struct conv_backward){
        .w = m->params + p->u->weight,
        .x = p->x,
        .dz = p->dz,
        .dx = p->dx,
        .add_dx = p->add_dx,
        .dw = m->grads + p->u->weight,
        .add_dw = p->accumulate,
        .scratch = m->own[0],
        .ready = backward_make_dz,
        .done = p->target.unit ? backward_finish_dx : NULL,
        .context = p,
    };
}

/* Recomputes the input of a convolution that reads beyond the rows of a tile. */
static void backward_input_piece(const struct parallel_piece *of, void *context)
{
    const struct pass *p = context;
    struct parallel_block part[PARALLEL_BLOCKS];
    int parts = unit_parts(p->below, p->m->n, parallel_piece_share(of), part);
    double piece = trace_begin();

    for (int i = 0; i < parts; i++)
        backward_make_y_again(p->below, &part[i]);
    trace_part(piece, TRACE_NORM);
}

static void walk_convolve(struct parallel_share share, void *context)
{
    struct pass p = *(struct pass *)context;
    struct model *m = p.m;
    struct conv_memory memory = model_memory(m);

    p.below_by_rows = p.below && backward_reads_rows(&p, share.parts);
    struct conv_backward b = backward_arguments(&p);
    if (p.below && !p.below_by_rows)
        parallel_take(share, unit_grains(p.below, m->n, share), backward_input_piece, &p);
    if (m->config.threads == 1)
        conv_backward(&p.u->conv, &b, 0, m->n);
    else
        conv_backward_team(&p.u->conv, &b, m->n, share, &memory);
    walk_finish_target(&p, share);
}

/* Part of the run's outputs, block after block, so that the next one's addend is in cache. */
static void backward_derive_part(const struct run *r, const struct parallel_block *part)
{
    struct model *m = r->m;
    size_t column = part->column;

    for (int i = r->first; i < r->end; i++) {
        const struct block *b = &m->layout->blocks[i];
        const struct unit *u = block_last(m, b);
        size_t c = unit_channels(u), at = part->row * c + column;
        struct batchnorm_residual residual = {.rows = walk_block_input(m, i) + at};
        if (b->downsample >= 0) {
            const struct unit *d = &m->layout->units[b->downsample];
            residual = (struct batchnorm_residual){d->z + at, d->scale + column, d->shift + column};
        }
        batchnorm_apply(u->z + at, part->rows, part->columns, c, u->scale + column,
                        u->shift + column, &residual, true, b->out_again + at);
    }
}

enum { DERIVED_FLOATS = 16 * 1024 }; /* at a time */

static const struct unit *backward_derived_unit(const struct run *r)
{
    return block_last(r->m, &r->m->layout->blocks[r->first]);
}

static void backward_derive_piece(const struct parallel_piece *piece, void *context)
{
    const struct run *r = context;
    struct parallel_block part[PARALLEL_BLOCKS];
    int parts = unit_parts(backward_derived_unit(r), r->m->n, parallel_piece_share(piece), part);

    for (int i = 0; i < parts; i++) {
        size_t step = DERIVED_FLOATS / part[i].columns, end = part[i].row + part[i].rows;
        for (size_t row = part[i].row; row < end; row += step) {
            size_t rows = end - row < step ? end - row : step;
            backward_derive_part(
                r, &(struct parallel_block){row, rows, part[i].column, part[i].columns});
        }
    }
}

static void walk_derive(struct parallel_share share, void *context)
{
    const struct run *r = context;
    struct model *m = r->m;
    const struct unit *stem = &m->layout->units[0];
    struct parallel_block part[PARALLEL_BLOCKS];

    if (r->first == 0 && !m->pools) {
        int parts = unit_parts(stem, m->n, share, part);
        for (int i = 0; i < parts; i++)
            backward_make_y_again(stem, &part[i]);
        parallel_barrier(share);
    }
    parallel_take(share, unit_grains(backward_derived_unit(r), m->n, share), backward_derive_piece,
                  context);
}

enum { WEIGHTS_AT_ONCE = 128 };

static void backward_classifier_back(struct parallel_share share, void *context)
{
    const struct pass *p = context;
    struct model *m = p->m;
    struct linear classifier = model_classifier(m);
    struct parallel_block part[PARALLEL_BLOCKS];
    struct parallel_range images = parallel_range((size_t)m->n, share);

    softmax_loss_backward(m->logits, m->labels, m->n, (int)images.first, (int)images.end,
                          m->config.classes, m->config.label_smoothing, 1 - m->mixed,
                          p->scale / m->n, m->logits);
    parallel_barrier(share);
    int parts = parallel_matrix(classifier.out, classifier.out, classifier.in, WEIGHTS_AT_ONCE,
                                share, part);
    for (int i = 0; i < parts; i++)
        linear_weight_gradients(&classifier, m->head, m->logits, (size_t)m->n, &part[i],
                                m->grads + m->fc_weight, m->grads + m->fc_bias, p->accumulate);
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
    double span = trace_begin();

    parallel_team(m->config.threads, backward_classifier_back, &p);
    trace_end_layer(span, "backward", m->cnn ? "fc2" : "avgpool, fc",
                    4.0 * m->n * (double)m->config.classes * m->features);
}

static size_t backward_rows_of_image(size_t row, size_t end, size_t pixels)
{
    size_t after = (row / pixels + 1) * pixels;
    return (after < end ? after : end) - row;
}

static void backward_average_piece(const struct parallel_piece *piece, void *context)
{
    const struct pass *p = context;
    struct model *m = p->m;
    size_t pixels = unit_pixels(p->target.unit), c = unit_channels(p->target.unit);
    struct parallel_block part[PARALLEL_BLOCKS];
    int parts = unit_parts(p->target.unit, m->n, parallel_piece_share(piece), part);

    for (int i = 0; i < parts; i++)
        for (size_t row = part[i].row, end = row + part[i].rows, rows; row < end; row += rows) {
            rows = backward_rows_of_image(row, end, pixels);
            struct parallel_block of = {row, rows, part[i].column, part[i].columns};
            pool_average_backward(m->d_head, &of, (int)pixels, c, p->dx);
            backward_finish_rows(&p->target, model_accumulator(m), p->dx, &of);
        }
}

static void walk_spread_average(struct parallel_share share, void *context)
{
    const struct pass *p = context;

    parallel_take(share, unit_grains(p->target.unit, p->m->n, share), backward_average_piece,
                  context);
    walk_finish_target(p, share);
}

static void backward_maxima_piece(const struct parallel_piece *piece, void *context)
{
    const struct pass *p = context;
    struct model *m = p->m;
    size_t c = (size_t)m->layout->pool.channels, in = (size_t)m->layout->pool.in;
    struct parallel_range lines = parallel_range((size_t)m->n * in, parallel_piece_share(piece));

    for (size_t line = lines.first, count; line < lines.end; line += count) {
        count = backward_rows_of_image(line, lines.end, in);
        struct parallel_block of = {line * in, count * in, 0, c};
        pool_max_backward(&m->layout->pool, p->g, m->layout->tap, line, line + count, p->dx);
        backward_finish_rows(&p->target, model_accumulator(m), p->dx, &of);
    }
}

static void walk_spread_maxima(struct parallel_share share, void *context)
{
    const struct pass *p = context;

    parallel_take(share, unit_grains(p->target.unit, p->m->n, share), backward_maxima_piece,
                  context);
    walk_finish_target(p, share);
}

void model_backward(struct model *m, double scale, bool accumulate, model_grads_ready *ready,
                    void *context)
{
    struct announcement a = {ready, context};

    backward_run_classifier(m, scale, accumulate);
    if (ready)
        ready(m->fc_weight, m->param_count - m->fc_weight, context);
    if (m->cnn) {
        cnn_backward(m, accumulate, &a);
        return;
    }
    if (model_is_bf16(m)) {
        model_bf16_backward(m, accumulate, &a);
        return;
    }
    walk_back(m, accumulate, &a);
}
