/*
 * Backward. A gradient tensor g lies masked (by the ReLU of its activation) and with its batch norm
 * sums taken: whoever produces it does both in its epilogue. The convolution that consumes it turns
 * it into dz in the tile it is about to read.
 *
 * Four buffers: work[0] and work[1] take turns as gradient of a block's output and of its input,
 * work[2] and work[3] hold what is between the units of a block.
 */
#include <string.h>

#include "common/trace.h"
#include "worker/kernels/gemm.h"
#include "worker/kernels/parallel.h"
#include "worker/kernels/pool.h"
#include "worker/kernels/softmax_loss.h"
#include "worker/model/internal.h"

/* The tensor behind a gradient: its activation and the batch norms that made it. */
struct target {
    const float *y;          /* NULL: nothing to mask */
    struct unit *unit;       /* NULL: no sums to take */
    struct unit *downsample; /* or NULL */
};

struct pass {
    struct model *m;
    struct unit *u;
    struct lane *lane;
    const float *x, *g; /* input of the convolution; gradient of its normalised output */
    float *dz, *dx;     /* dz may be g's memory */
    bool add_dx, accumulate;
    struct target target; /* of dx */
};

static void make_dz(size_t row, size_t rows, void *context)
{
    const struct pass *p = context;
    const struct unit *u = p->u;
    size_t c = unit_channels(u);
    double piece = trace_begin();
    batchnorm_input_gradient(p->g + row * c, u->z + row * c, rows, c, u->ga, u->gb, u->gc,
                             p->dz + row * c);
    trace_part(piece, TRACE_NORM);
}

/* Masks rows of g and takes the sums of the target's batch norms. */
static void finish_rows(const struct target *t, struct lane *l, float *g, size_t row, size_t rows)
{
    size_t c = unit_channels(t->unit), at = row * c;
    struct batchnorm_branch branch[2] = {
        {t->unit->z + at, t->unit->batch_mean, l->square_sum},
        {NULL,            NULL,                l->branch_sum},
    };
    if (t->downsample) {
        branch[1].z = t->downsample->z + at;
        branch[1].mean = t->downsample->batch_mean;
    }
    batchnorm_mask_sums(g + at, t->y + at, rows, c, branch, l->sum);
}

static void finish_dx(size_t row, size_t rows, void *context)
{
    const struct pass *p = context;
    double piece = trace_begin();
    finish_rows(&p->target, p->lane, p->dx, row, rows);
    trace_part(piece, TRACE_NORM);
}

static void convolve_back(int thread, int first, int end, void *context)
{
    struct pass p = *(struct pass *)context;
    struct model *m = p.m;

    p.lane = &m->lanes[thread];
    struct conv_backward b = {
        .w = m->params + p.u->weight,
        .x = p.x,
        .dz = p.dz,
        .dx = p.dx,
        .add_dx = p.add_dx,
        .dw = thread ? p.lane->dw : m->grads + p.u->weight,
        .add_dw = thread ? false : p.accumulate,
        .scratch = p.lane->scratch,
        .ready = make_dz,
        .done = p.target.unit ? finish_dx : NULL,
        .context = &p,
    };
    conv_backward(&p.u->conv, &b, first, end);
}

/* The threads' weight gradients, in order, onto the first one's. */
static void add_lanes(int thread, int first, int end, void *context)
{
    const struct pass *p = context;
    float *sum = p->m->grads + p->u->weight;
    int lanes = parallel_busy(p->m->config.threads, p->m->n);

    (void)thread;
    for (int t = 1; t < lanes; t++)
        for (int i = first; i < end; i++)
            sum[i] += p->m->lanes[t].dw[i];
}

/* Weight gradient and input gradient of one unit; then the numbers of the batch norms behind the
 * input gradient. */
static void run_unit(struct pass *p)
{
    struct model *m = p->m;
    double span = trace_begin();

    if (p->target.unit)
        unit_clear_sums(m, p->target.unit);
    parallel_run(m->config.threads, m->n, convolve_back, p);
    if (parallel_busy(m->config.threads, m->n) > 1)
        parallel_run(m->config.threads, (int)conv_weights(&p->u->conv), add_lanes, p);
    if (p->target.unit)
        unit_finish_gradients(m, p->target.unit, m->n, false, p->accumulate);
    if (p->target.downsample)
        unit_finish_gradients(m, p->target.downsample, m->n, true, p->accumulate);
    trace_end_layer(span, "backward", p->u->name, unit_flops(p->u, m->n) * (p->dx ? 2 : 1));
}

struct announcement {
    model_grads_ready *ready;
    void *context;
};

static void announce(const struct announcement *a, const struct unit *u)
{
    if (a->ready)
        a->ready(u->weight, u->grads_end - u->weight, a->context);
}

/* Gradient of the block's output is in work[*at] when called; of its input when done. */
static void run_block(struct model *m, const struct block *b, struct target before, bool accumulate,
                      int *at, const struct announcement *a)
{
    float *g = m->work[*at], *dx = g;
    bool shortcut = b->downsample >= 0;

    if (shortcut) {
        struct unit *d = &m->units[b->downsample];
        dx = m->work[ *at ^= 1];
        run_unit(&(struct pass){.m = m,
                                .u = d,
                                .x = b->in,
                                .g = g,
                                .dz = m->work[2],
                                .dx = dx,
                                .accumulate = accumulate});
        announce(a, d);
    }
    struct pass p = {.m = m, .g = g, .dz = m->work[2], .dx = m->work[3], .accumulate = accumulate};
    for (int k = b->units - 1; k > 0; k--) {
        struct unit *below = &m->units[b->first + k - 1];
        p.u = &m->units[b->first + k];
        p.x = below->y;
        p.target = (struct target){below->y, below, NULL};
        run_unit(&p);
        announce(a, p.u);
        /* dx becomes the next g, in whose memory its dz is made; the old dz is free. */
        float *free_again = p.dz;
        p.g = p.dz = p.dx;
        p.dx = free_again;
    }
    p.u = &m->units[b->first];
    p.x = b->in;
    p.dx = dx;
    p.add_dx = true; /* onto the shortcut's gradient */
    p.target = before;
    run_unit(&p);
    announce(a, p.u);
}

static struct target target_of_block(const struct model *m, const struct block *b)
{
    return (struct target){b->out, block_last(m, b),
                           b->downsample >= 0 ? &m->units[b->downsample] : NULL};
}

static void run_classifier(struct model *m, double scale, bool accumulate)
{
    size_t n = (size_t)m->n, classes = (size_t)m->config.classes, features = (size_t)m->features;
    float *d_bias = m->grads + m->fc_bias;
    double span = trace_begin();

    softmax_loss_mixed_backward(m->logits, m->labels, m->n, m->config.classes,
                                m->config.label_smoothing, 1 - m->mixed, scale / m->n, m->logits);
    gemm_tn(classes, features, n, m->logits, classes, m->average, features, m->grads + m->fc_weight,
            features, accumulate);
    for (size_t j = 0; j < classes; j++) {
        double sum = accumulate ? d_bias[j] : 0;
        for (size_t i = 0; i < n; i++)
            sum += m->logits[i * classes + j];
        d_bias[j] = (float)sum;
    }
    gemm_nn(n, features, classes, m->logits, classes, m->params + m->fc_weight, features,
            m->d_average, features, false);
    trace_end_layer(span, "backward", "avgpool, fc", 4.0 * (double)(n * classes * features));
}

/* Gradient of the last block's output, masked and summed. */
static void spread_average(int thread, int first, int end, void *context)
{
    struct pass *p = context;
    struct model *m = p->m;
    size_t pixels = unit_pixels(p->target.unit), c = unit_channels(p->target.unit);

    for (size_t i = (size_t)first; i < (size_t)end; i++) {
        pool_average_backward(m->d_average + i * c, 1, (int)pixels, m->features,
                              p->dx + i * pixels * c);
        finish_rows(&p->target, &m->lanes[thread], p->dx, i * pixels, pixels);
    }
}

/* Gradient of the stem's activation from that of the pool, masked and summed. */
static void spread_maxima(int thread, int first, int end, void *context)
{
    struct pass *p = context;
    struct model *m = p->m;
    size_t c = (size_t)m->pool.channels, in = unit_pixels(p->target.unit);
    size_t out = (size_t)m->pool.out * (size_t)m->pool.out;

    for (size_t i = (size_t)first; i < (size_t)end; i++) {
        pool_max_backward(&m->pool, p->g + i * out * c, m->pool_tap + i * out * c, 1,
                          p->dx + i * in * c);
        finish_rows(&p->target, &m->lanes[thread], p->dx, i * in, in);
    }
}

static void start_target(struct pass *p, parallel_body *body)
{
    struct model *m = p->m;
    double span = trace_begin();
    unit_clear_sums(m, p->target.unit);
    parallel_run(m->config.threads, m->n, body, p);
    unit_finish_gradients(m, p->target.unit, m->n, false, p->accumulate);
    if (p->target.downsample)
        unit_finish_gradients(m, p->target.downsample, m->n, true, p->accumulate);
    trace_end(span, "backward", body == spread_maxima ? "maxpool" : "avgpool, fc", 0);
}

static void run_stem(struct model *m, int at, bool accumulate)
{
    struct unit *stem = &m->units[0];
    struct pass p = {
        .m = m,
        .accumulate = accumulate,
        .g = m->work[at],
        .dx = m->work[at ^ 1],
        .target = {stem->y, stem, NULL}
    };

    if (m->pools) {
        start_target(&p, spread_maxima);
        p.g = p.dx;
    }
    p.u = stem;
    p.x = m->images;
    p.dz = (float *)p.g;
    p.dx = NULL;
    p.target = (struct target){0};
    run_unit(&p);
}

void model_backward(struct model *m, double scale, bool accumulate, model_grads_ready *ready,
                    void *context)
{
    struct announcement a = {ready, context};
    int at = 0;

    run_classifier(m, scale, accumulate);
    if (ready)
        ready(m->fc_weight, m->param_count - m->fc_weight, context);
    struct pass top = {.m = m,
                       .accumulate = accumulate,
                       .dx = m->work[0],
                       .target = target_of_block(m, &m->blocks[m->block_count - 1])};
    start_target(&top, spread_average);
    for (int i = m->block_count - 1; i >= 0; i--) {
        struct target before = {0};
        if (i > 0)
            before = target_of_block(m, &m->blocks[i - 1]);
        else if (!m->pools)
            before = (struct target){m->units[0].y, &m->units[0], NULL};
        run_block(m, &m->blocks[i], before, accumulate, &at, &a);
    }
    run_stem(m, at, accumulate);
    announce(&a, &m->units[0]);
}
