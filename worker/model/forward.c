#include <string.h>

#include "common/run/trace.h"
#include "worker/kernels/parallel.h"
#include "worker/kernels/pool.h"
#include "worker/kernels/softmax_loss.h"
#include "worker/layers/dropout.h"
#include "worker/model/internal.h"

/* A unit's convolution, or what comes behind it. */
struct pass {
    struct model *m;
    struct unit *u;
    const float *in;
    struct lane *lane;
    const struct unit *shortcut; /* the downsample unit, or NULL */
    const float *identity;       /* rows to add, or NULL */
    float *out;
    int stage;
};

const char *model_trace_category(const struct model *m)
{
    return m->evaluating ? "predict" : "forward";
}

static void take_sums(size_t row, size_t rows, void *context)
{
    struct pass *p = context;
    size_t c = unit_channels(p->u);
    const float *z = p->u->z + row * c;
    double piece = trace_begin();

    if (!p->lane->rows)
        memcpy(p->lane->shift, z, c * sizeof *z);
    batchnorm_sums(z, rows, c, p->lane->shift, p->lane->sum, p->lane->square_sum);
    p->lane->rows += rows;
    trace_part(piece, TRACE_NORM);
}

static void normalise(const struct pass *p, size_t row, size_t rows)
{
    const struct unit *u = p->u;
    size_t at = row * unit_channels(u);
    struct batchnorm_residual residual = {0};

    if (p->shortcut)
        residual = (struct batchnorm_residual){p->shortcut->z + at, p->shortcut->scale,
                                               p->shortcut->shift};
    else if (p->identity)
        residual.rows = p->identity + at;
    batchnorm_apply(u->z + at, rows, unit_channels(u), u->scale, u->shift, &residual, true,
                    p->out + at);
}

static void normalise_tile(size_t row, size_t rows, void *context)
{
    double piece = trace_begin();
    normalise(context, row, rows);
    trace_part(piece, TRACE_NORM);
}

/* What a thread does with rows of z. */
static conv_rows *rows_done(const struct pass *p)
{
    if (p->m->evaluating)
        return p->out ? normalise_tile : NULL;
    return p->m->frozen ? NULL : take_sums;
}

static void convolve(int thread, int first, int end, void *context)
{
    struct pass p = *(struct pass *)context;

    p.lane = &p.m->lanes[thread];
    conv_forward(&p.u->conv, p.m->params + p.u->weight, p.in, p.u->z, first, end, p.lane->scratch,
                 rows_done(&p), &p);
}

static void convolve_stage(int thread, int first, int end, void *context)
{
    struct pass p = *(struct pass *)context;
    struct conv_share share = {thread, p.m->config.threads};

    (void)first, (void)end;
    p.lane = &p.m->lanes[thread];
    conv_forward_stage(&p.u->conv, p.m->params + p.u->weight, p.in, p.u->z, p.m->n, p.stage, share,
                       p.m->lanes[0].scratch, rows_done(&p), &p);
}

/* z of a unit, and what normalises it; in evaluation p->out, if wanted, is made of it at once. */
static void run_unit(struct pass *p)
{
    struct model *m = p->m;
    struct unit *u = p->u;
    double span = trace_begin();
    bool running = m->evaluating || m->frozen;
    int stages = m->config.threads > 1 ? conv_forward_stages(&u->conv, m->n) : 0;

    if (running)
        unit_use_running_statistics(m, u);
    else
        unit_clear_sums(m, u);
    for (p->stage = 0; p->stage < stages; p->stage++)
        parallel_run(m->config.threads, m->config.threads, convolve_stage, p);
    if (!stages)
        parallel_run(m->config.threads, m->n, convolve, p);
    if (!running)
        unit_finish_statistics(m, u, m->n);
    trace_end_layer(span, model_trace_category(m), u->name, unit_flops(u, m->n));
}

static void apply(int thread, int first, int end, void *context)
{
    const struct pass *p = context;
    size_t pixels = unit_pixels(p->u);

    (void)thread;
    normalise(p, (size_t)first * pixels, (size_t)(end - first) * pixels);
}

/* p->out of a unit, and where it lies. Evaluation has it in the place of z. */
static const float *run_normalised(struct pass *p, float *out)
{
    struct model *m = p->m;

    p->out = m->evaluating ? p->u->z : NULL;
    run_unit(p);
    if (m->evaluating)
        return p->out;
    p->out = out;
    double span = trace_begin();
    parallel_run(m->config.threads, m->n, apply, p);
    trace_end(span, model_trace_category(m), p->u->bn_name, 0);
    return p->out;
}

/* Returns the block's output. */
static const float *run_block(struct model *m, const struct block *b, const float *in)
{
    struct pass p = {.m = m, .in = in};

    if (b->downsample >= 0) {
        p.u = &m->units[b->downsample];
        run_unit(&p);
    }
    for (int k = 0; k < b->units - 1; k++) {
        p.u = &m->units[b->first + k];
        p.in = run_normalised(&p, p.u->y);
    }
    p.u = block_last(m, b);
    if (b->downsample >= 0)
        p.shortcut = &m->units[b->downsample];
    else
        p.identity = in;
    return run_normalised(&p, b->out);
}

static void pool(int thread, int first, int end, void *context)
{
    const struct pass *p = context;
    struct model *m = p->m;
    size_t c = (size_t)m->pool.channels, in = (size_t)m->pool.in, out = (size_t)m->pool.out;
    size_t at = (size_t)first * out * out * c;

    (void)thread;
    pool_max(&m->pool, p->in + (size_t)first * in * in * c, end - first, p->out + at,
             m->evaluating ? NULL : m->tap + at);
}

static const float *run_pool(struct model *m, const float *y)
{
    struct pass p = {.m = m, .in = y, .out = m->in};
    double span = trace_begin();
    parallel_run(m->config.threads, m->n, pool, &p);
    trace_end(span, model_trace_category(m), "maxpool", 0);
    return m->in;
}

/* Averages (of p->in, if there is one) and logits of a thread's images. */
static void classify(int thread, int first, int end, void *context)
{
    const struct pass *p = context;
    struct model *m = p->m;
    struct linear classifier = model_classifier(m);
    float *head = m->head + (size_t)first * classifier.in;

    (void)thread;
    if (p->in) {
        size_t pixels = unit_pixels(p->u);
        pool_average(p->in + (size_t)first * pixels * classifier.in, end - first, (int)pixels,
                     m->features, head);
    }
    for (int i = first; i < end && !m->evaluating; i++)
        model_drop(m, i, m->head + (size_t)i * classifier.in);
    linear_forward(&classifier, m->params + m->fc_weight, m->params + m->fc_bias, head,
                   (size_t)(end - first), m->logits + (size_t)first * classifier.out);
}

/* in: of the averages; NULL: the head is there. */
static void run_head(struct model *m, const float *in)
{
    struct pass p = {.m = m, .in = in};
    double span = trace_begin();

    if (in)
        p.u = block_last(m, &m->blocks[m->block_count - 1]);
    parallel_run(m->config.threads, m->n, classify, &p);
    trace_end_layer(span, model_trace_category(m), in ? "avgpool, fc" : "fc2",
                    2.0 * m->n * (double)m->config.classes * m->features);
}

static void run(struct model *m, const float *images, int n)
{
    m->n = n;
    if (m->cnn) {
        m->images = images;
        cnn_forward(m);
        run_head(m, NULL);
        return;
    }
    struct pass p = {.m = m, .u = &m->units[0], .in = images};
    const float *at = run_normalised(&p, m->units[0].y);

    if (m->pools)
        at = run_pool(m, at);
    for (int i = 0; i < m->block_count; i++)
        at = run_block(m, &m->blocks[i], at);
    run_head(m, at);
}

double model_forward(struct model *m, const float *images, const int32_t *labels, int n,
                     int *correct)
{
    m->evaluating = false;
    m->images = images;
    m->labels = labels;
    run(m, images, n);
    return softmax_loss_mixed(m->logits, labels, n, m->config.classes, m->config.label_smoothing,
                              1 - m->mixed, m->logits, correct) /
           n;
}

void model_mix(struct model *m, double lambda)
{
    m->mixed = 1 - lambda;
}

void model_draw(struct model *m, const struct model_draw *draw)
{
    m->draw = *draw;
}

void model_drop(const struct model *m, int i, float *row)
{
    const struct model_draw *d = &m->draw;
    int64_t epoch = d->epoch + (d->indices && i >= d->next_epoch_at);
    int64_t image = d->indices ? d->first_number + d->indices[i] : i;

    if (m->config.dropout > 0)
        dropout_apply(row, (size_t)m->features, m->config.dropout,
                      rng_stream(d->seed, epoch, image, RNG_DROPOUT));
}

void model_predict(struct model *m, const float *images, int n, float *logits)
{
    m->evaluating = true;
    run(m, images, n);
    memcpy(logits, m->logits, (size_t)n * (size_t)m->config.classes * sizeof *logits);
}
