#include <string.h>

#include "common/trace.h"
#include "worker/kernels/gemm.h"
#include "worker/kernels/parallel.h"
#include "worker/kernels/pool.h"
#include "worker/kernels/softmax_loss.h"
#include "worker/model/internal.h"

struct pass {
    struct model *m;
    struct unit *u;
    const float *in;
    struct lane *lane;
    const struct unit *shortcut; /* apply: the downsample unit, or NULL */
    const float *identity;       /* apply: rows to add, or NULL */
    float *out;
};

static const char *trace_category(const struct model *m)
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

static void convolve(int thread, int first, int end, void *context)
{
    struct pass p = *(struct pass *)context;
    bool sums = !p.m->evaluating && !p.m->frozen;

    p.lane = &p.m->lanes[thread];
    conv_forward(&p.u->conv, p.m->params + p.u->weight, p.in, p.u->z, first, end, p.lane->scratch,
                 sums ? take_sums : NULL, &p);
}

/* z of a unit, and what normalises it. */
static void run_unit(struct model *m, struct unit *u, const float *in, int n)
{
    struct pass p = {.m = m, .u = u, .in = in};

    double span = trace_begin();
    unit_clear_sums(m, u);
    parallel_run(m->config.threads, n, convolve, &p);
    if (m->evaluating || m->frozen)
        unit_use_running_statistics(m, u);
    else
        unit_finish_statistics(m, u, n);
    trace_end_layer(span, trace_category(m), u->name, unit_flops(u, n));
}

static void apply(int thread, int first, int end, void *context)
{
    const struct pass *p = context;
    const struct unit *u = p->u;
    size_t c = unit_channels(u), row = (size_t)first * unit_pixels(u);
    size_t rows = (size_t)(end - first) * unit_pixels(u);
    struct batchnorm_residual residual = {0};

    (void)thread;
    if (p->shortcut)
        residual = (struct batchnorm_residual){p->shortcut->z + row * c, p->shortcut->scale,
                                               p->shortcut->shift};
    else if (p->identity)
        residual.rows = p->identity + row * c;
    batchnorm_apply(u->z + row * c, rows, c, u->scale, u->shift, &residual, true, p->out + row * c);
}

static void run_apply(struct model *m, struct pass *p, int n)
{
    double span = trace_begin();
    parallel_run(m->config.threads, n, apply, p);
    trace_end(span, trace_category(m), p->u->bn_name, 0);
}

static void run_block(struct model *m, const struct block *b, int n)
{
    const float *in = b->in;
    struct pass p = {.m = m};

    for (int k = 0; k < b->units - 1; k++) {
        struct unit *u = &m->units[b->first + k];
        run_unit(m, u, in, n);
        p.u = u;
        p.out = u->y;
        run_apply(m, &p, n);
        in = u->y;
    }
    p.u = block_last(m, b);
    run_unit(m, p.u, in, n);
    if (b->downsample >= 0) {
        run_unit(m, &m->units[b->downsample], b->in, n);
        p.shortcut = &m->units[b->downsample];
    } else {
        p.identity = b->in;
    }
    p.out = b->out;
    run_apply(m, &p, n);
}

static void pool(int thread, int first, int end, void *context)
{
    struct model *m = ((struct pass *)context)->m;
    size_t c = (size_t)m->pool.channels, in = (size_t)m->pool.in, out = (size_t)m->pool.out;
    size_t at = (size_t)first * out * out * c;

    (void)thread;
    pool_max(&m->pool, m->units[0].y + (size_t)first * in * in * c, end - first, m->pooled + at,
             m->pool_tap && !m->evaluating ? m->pool_tap + at : NULL);
}

static void run_pool(struct model *m, struct pass *p, int n)
{
    double span = trace_begin();
    parallel_run(m->config.threads, n, pool, p);
    trace_end(span, trace_category(m), "maxpool", 0);
}

static void run_head(struct model *m, int n)
{
    const struct block *b = &m->blocks[m->block_count - 1];
    size_t classes = (size_t)m->config.classes, features = (size_t)m->features;
    const float *bias = m->params + m->fc_bias;
    double span = trace_begin();

    pool_average(b->out, n, (int)unit_pixels(block_last(m, b)), m->features, m->average);
    for (size_t i = 0; i < (size_t)n * classes; i++)
        m->logits[i] = bias[i % classes];
    gemm_nt((size_t)n, classes, features, m->average, features, m->params + m->fc_weight, features,
            m->logits, classes, true);
    trace_end_layer(span, trace_category(m), "avgpool, fc", 2.0 * n * (double)(classes * features));
}

static void run(struct model *m, const float *images, int n)
{
    struct pass p = {.m = m, .u = &m->units[0], .out = m->units[0].y};

    run_unit(m, &m->units[0], images, n);
    run_apply(m, &p, n);
    if (m->pools)
        run_pool(m, &p, n);
    for (int i = 0; i < m->block_count; i++)
        run_block(m, &m->blocks[i], n);
    run_head(m, n);
}

double model_forward(struct model *m, const float *images, const int32_t *labels, int n,
                     int *correct)
{
    m->evaluating = false;
    m->n = n;
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

void model_predict(struct model *m, const float *images, int n, float *logits)
{
    m->evaluating = true;
    run(m, images, n);
    memcpy(logits, m->logits, (size_t)n * (size_t)m->config.classes * sizeof *logits);
}
