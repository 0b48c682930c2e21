#include <string.h>

#include "common/run/trace.h"
#include "worker/kernels/pool.h"
#include "worker/model/bf16.h"
#include "worker/team/dry_run.h"

/* A unit's convolution, or what comes behind it. */
struct pass {
    struct model *m;
    struct unit *u;
    const float *in;
    const struct unit *shortcut; /* the downsample unit, or NULL */
    const float *identity;       /* rows to add, or NULL */
    float *out;
};

/* The first row of a channel is its shift. */
static void forward_count_rows(struct lane *l, const float *z, const struct parallel_block *part)
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
    struct pass *p = context;
    struct lane *lane = model_lane(p->m);
    size_t c = unit_channels(p->u), column = part->column;
    const float *z = p->u->z + part->row * c + column;
    double piece = trace_begin();

    forward_count_rows(lane, z, part);
    batchnorm_sums(z, part->rows, part->columns, c, lane->shift + column, lane->sum + column,
                   lane->square_sum + column);
    trace_part(piece, TRACE_NORM);
}

static void forward_normalise(const struct pass *p, const struct parallel_block *part)
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

/* What a thread does with rows of z. */
static conv_rows *forward_rows_done(const struct pass *p)
{
    if (p->m->evaluating)
        return p->out ? forward_normalise_tile : NULL;
    return p->m->frozen ? NULL : forward_take_sums;
}

/* A thread's part: z, its sums, and the batch's statistics of them. */
static void forward_convolve(struct parallel_share share, void *context)
{
    struct pass *p = context;
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

/* z of a unit, and what normalises it; in evaluation p->out, if wanted, is made of it at once. */
static void forward_run_unit(struct pass *p)
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
    const struct pass *p = context;
    struct parallel_block part[PARALLEL_BLOCKS];
    int parts = unit_parts(p->u, p->m->n, parallel_piece_share(piece), part);

    for (int i = 0; i < parts; i++)
        forward_normalise(p, &part[i]);
}

static void forward_apply(struct parallel_share share, void *context)
{
    const struct pass *p = context;
    parallel_take(share, unit_grains(p->u, p->m->n, share), forward_apply_piece, context);
}

/* p->out of a unit, and where it lies. Evaluation has it in the place of z. */
static const float *forward_run_normalised(struct pass *p, float *out)
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

/* Returns the block's output. */
static const float *forward_run_block(struct model *m, const struct block *b, const float *in)
{
    struct pass p = {.m = m, .in = in};

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
    const struct pass *p = context;
    struct model *m = p->m;
    size_t pixels = (size_t)(m->n * m->layout->pool.out * m->layout->pool.out);
    struct parallel_range mine = parallel_range(pixels, parallel_piece_share(piece));

    pool_max(&m->layout->pool, p->in, mine.first, mine.end, p->out,
             m->evaluating ? NULL : m->layout->tap);
}

static void forward_pool(struct parallel_share share, void *context)
{
    const struct pass *p = context;
    size_t lines = (size_t)(p->m->n * p->m->layout->pool.out);

    parallel_take(share, lines / (size_t)share.parts, forward_pool_piece, context);
}

static const float *forward_run_pool(struct model *m, const float *y)
{
    struct pass p = {.m = m, .in = y, .out = m->layout->in};
    double span = trace_begin();
    parallel_team(m->config.threads, forward_pool, &p);
    trace_end(span, model_trace_category(m), "maxpool", 0);
    return m->layout->in;
}

/* A thread's part of the averages (of p->in, if there is one), of the drops, of the logits, and of
 * what a training makes of them: losses and probabilities. */
static void forward_classify(struct parallel_share share, void *context)
{
    const struct pass *p = context;
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

/* in: of the averages; NULL: the head is there. */
static void forward_run_head(struct model *m, const float *in)
{
    struct pass p = {.m = m, .in = in};
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
    struct pass p = {.m = m, .u = &m->layout->units[0], .in = images};
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
