/*
 * Backward. A gradient tensor g lies masked (by the ReLU of its activation) and with its batch norm
 * sums taken: whoever produces it does both in its epilogue. The convolution that consumes it turns
 * it into dz in the tile it is about to read.
 *
 * Activations were not kept: a unit's input is made again from the z before it, just before the
 * convolution reads it, and outputs of blocks for a run of them at once (derive_run).
 */
#include <string.h>

#include "common/run/trace.h"
#include "worker/kernels/parallel.h"
#include "worker/kernels/pool.h"
#include "worker/kernels/softmax_loss.h"
#include "worker/model/internal.h"

/* The tensor behind a gradient: its activation and the batch norms that made it. */
struct target {
    const float *y;          /* NULL: known by the sign of scale z + shift */
    struct unit *unit;       /* NULL: nothing to mask and no sums to take */
    struct unit *downsample; /* or NULL */
};

struct pass {
    struct model *m;
    struct unit *u;
    struct lane *lane;
    const float *x, *g;       /* input of the convolution; gradient of its normalised output */
    const struct unit *below; /* whose activation x is, to be made again; NULL: x is there */
    float *dz, *dx;           /* dz may be g's memory */
    bool add_dx, accumulate;
    struct target target; /* of dx */
    int stage;
};

static void make_y_again(const struct unit *u, size_t row, size_t rows)
{
    size_t c = unit_channels(u), at = row * c;
    batchnorm_apply(u->z + at, rows, c, u->scale, u->shift, NULL, true, u->y_again + at);
}

/* A 1x1 convolution reads the same rows of x and dz: both are made in the tile. */
static bool reads_rows(const struct conv *c)
{
    return c->window.kernel == 1 && c->window.stride == 1;
}

static void make_dz(size_t row, size_t rows, void *context)
{
    const struct pass *p = context;
    const struct unit *u = p->u;
    size_t c = unit_channels(u);
    double piece = trace_begin();

    if (p->below && reads_rows(&u->conv))
        make_y_again(p->below, row, rows);
    batchnorm_input_gradient(p->g + row * c, u->z + row * c, rows, c, u->ga, u->gb, u->gc,
                             p->dz + row * c);
    trace_part(piece, TRACE_NORM);
}

/* Masks rows of g and takes the sums of the target's batch norms. */
static void finish_rows(const struct target *t, struct lane *l, float *g, size_t row, size_t rows)
{
    const struct unit *u = t->unit;
    size_t c = unit_channels(u), at = row * c;
    struct batchnorm_mask mask = {t->y ? t->y + at : NULL, u->scale, u->shift};
    struct batchnorm_branch branch[2] = {
        {u->z + at, u->batch_mean, l->square_sum},
        {NULL,      NULL,          l->branch_sum},
    };
    if (t->downsample) {
        branch[1].z = t->downsample->z + at;
        branch[1].mean = t->downsample->batch_mean;
    }
    batchnorm_mask_sums(g + at, &mask, rows, c, branch, l->sum);
}

static void finish_dx(size_t row, size_t rows, void *context)
{
    const struct pass *p = context;
    double piece = trace_begin();
    finish_rows(&p->target, p->lane, p->dx, row, rows);
    trace_part(piece, TRACE_NORM);
}

static struct conv_backward arguments(struct pass *p)
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
        .scratch = m->lanes[0].scratch,
        .ready = make_dz,
        .done = p->target.unit ? finish_dx : NULL,
        .context = p,
    };
}

/* The input of a thread's images, for a convolution that reads beyond the rows of a tile. */
static void make_input_again(int thread, int first, int end, void *context)
{
    const struct pass *p = context;
    size_t pixels = unit_pixels(p->below);
    double piece = trace_begin();

    (void)thread;
    make_y_again(p->below, (size_t)first * pixels, (size_t)(end - first) * pixels);
    trace_part(piece, TRACE_NORM);
}

static void convolve_back(int thread, int first, int end, void *context)
{
    struct pass p = *(struct pass *)context;

    p.lane = &p.m->lanes[thread];
    if (p.below && !reads_rows(&p.u->conv))
        make_input_again(thread, first, end, &p);
    struct conv_backward b = arguments(&p);
    b.scratch = p.lane->scratch;
    if (thread) {
        b.dw = p.lane->dw;
        b.add_dw = false;
    }
    conv_backward(&p.u->conv, &b, first, end);
}

static void convolve_back_stage(int thread, int first, int end, void *context)
{
    struct pass p = *(struct pass *)context;
    struct conv_share share = {thread, p.m->config.threads};

    (void)first, (void)end;
    p.lane = &p.m->lanes[thread];
    struct conv_backward b = arguments(&p);
    conv_backward_stage(&p.u->conv, &b, p.m->n, p.stage, share);
}

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

void unit_add_lanes(struct model *m, struct unit *u)
{
    if (parallel_busy(m->config.threads, m->n) > 1)
        parallel_run(m->config.threads, (int)conv_weights(&u->conv), add_lanes,
                     &(struct pass){.m = m, .u = u});
}

static void convolve_back_together(struct pass *p, int stages)
{
    struct model *m = p->m;

    if (p->below)
        parallel_run(m->config.threads, m->n, make_input_again, p);
    for (p->stage = 0; p->stage < stages; p->stage++)
        parallel_run(m->config.threads, m->config.threads, convolve_back_stage, p);
}

static void convolve_back_by_images(struct pass *p)
{
    struct model *m = p->m;

    parallel_run(m->config.threads, m->n, convolve_back, p);
    unit_add_lanes(m, p->u);
}

/* Weight gradient and input gradient of one unit; then the numbers of the batch norms behind the
 * input gradient. */
static void run_unit(struct pass *p)
{
    struct model *m = p->m;
    double span = trace_begin();
    int stages = m->config.threads > 1 ? conv_backward_stages(&p->u->conv, m->n, p->dx != NULL) : 0;

    if (p->target.unit)
        unit_clear_sums(m, p->target.unit);
    if (stages)
        convolve_back_together(p, stages);
    else
        convolve_back_by_images(p);
    if (p->target.unit)
        unit_finish_gradients(m, p->target.unit, m->n, false, p->accumulate);
    if (p->target.downsample)
        unit_finish_gradients(m, p->target.downsample, m->n, true, p->accumulate);
    trace_end_layer(span, "backward", p->u->name, unit_flops(p->u, m->n) * (p->dx ? 2 : 1));
}

void model_announce(const struct announcement *a, size_t offset, size_t end)
{
    if (a->ready)
        a->ready(offset, end - offset, a->context);
}

static void announce(const struct announcement *a, const struct unit *u)
{
    model_announce(a, u->weight, u->grads_end);
}

static const float *block_input(const struct model *m, int i)
{
    return i ? m->blocks[i - 1].out_again : m->in_again;
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
        struct batchnorm_residual residual = {.rows = block_input(m, i) + at};
        if (b->downsample >= 0) {
            const struct unit *d = &m->units[b->downsample];
            residual = (struct batchnorm_residual){d->z + at, d->scale, d->shift};
        }
        batchnorm_apply(u->z + at, rows, c, u->scale, u->shift, &residual, true, b->out_again + at);
    }
}

enum { DERIVED_FLOATS = 16 * 1024 }; /* at once */

static void derive_images(int thread, int first, int end, void *context)
{
    const struct run *r = context;
    const struct unit *u = block_last(r->m, &r->m->blocks[r->first]);
    size_t rows = DERIVED_FLOATS / unit_channels(u), last = (size_t)end * unit_pixels(u);

    (void)thread;
    if (r->first == 0 && !r->m->pools) {
        size_t pixels = unit_pixels(&r->m->units[0]);
        make_y_again(&r->m->units[0], (size_t)first * pixels, (size_t)(end - first) * pixels);
    }
    for (size_t row = (size_t)first * unit_pixels(u); row < last; row += rows)
        derive_rows(r, row, last - row < rows ? last - row : rows);
}

/* The outputs of the blocks [first, end), as forward had made them. */
static void derive_run(struct model *m, int first, int end)
{
    struct run r = {m, first, end};
    double span = trace_begin();
    parallel_run(m->config.threads, m->n, derive_images, &r);
    trace_end(span, "backward", "recompute", 0);
}

static struct target target_of_block(const struct model *m, int i)
{
    const struct block *b = &m->blocks[i];

    if (i < 0)
        return (struct target){.unit = m->pools ? NULL : &m->units[0]};
    return (struct target){b->out_again, block_last(m, b),
                           b->downsample >= 0 ? &m->units[b->downsample] : NULL};
}

/* From the gradient of the block's output to that of its input. */
static void run_block(struct model *m, int i, bool accumulate, const struct announcement *a)
{
    const struct block *b = &m->blocks[i];
    float *g_in = i ? m->blocks[i - 1].g : m->g_in;
    struct pass p = {.m = m, .g = b->g, .accumulate = accumulate};

    if (b->derive >= 0)
        derive_run(m, b->derive, i);
    if (b->downsample >= 0) {
        struct pass d = p;
        d.u = &m->units[b->downsample];
        d.x = block_input(m, i);
        d.dz = d.u->dz;
        d.dx = g_in;
        run_unit(&d);
        announce(a, d.u);
    }
    for (int k = b->units - 1; k > 0; k--) {
        struct unit *below = &m->units[b->first + k - 1];
        p.u = &m->units[b->first + k];
        p.dz = p.u->dz;
        p.below = below;
        p.x = below->y_again;
        p.dx = below->g;
        p.target = (struct target){NULL, below, NULL};
        run_unit(&p);
        announce(a, p.u);
        p.g = p.dx;
    }
    p.u = &m->units[b->first];
    p.dz = p.u->dz;
    p.below = NULL;
    p.x = block_input(m, i);
    p.dx = g_in;
    p.add_dx = true; /* onto the shortcut's gradient */
    p.target = target_of_block(m, i - 1);
    run_unit(&p);
    announce(a, p.u);
}

/* Gradients of the weights and biases of a thread's classes. */
static void classes_back(int thread, int first, int end, void *context)
{
    const struct pass *p = context;
    struct model *m = p->m;
    struct linear classifier = model_classifier(m);

    (void)thread;
    linear_weight_gradients(&classifier, m->head, m->logits, (size_t)m->n, (size_t)first,
                            (size_t)end, m->grads + m->fc_weight, m->grads + m->fc_bias,
                            p->accumulate);
}

/* Gradients of the head of a thread's images. */
static void head_back(int thread, int first, int end, void *context)
{
    struct model *m = ((struct pass *)context)->m;
    struct linear classifier = model_classifier(m);
    size_t at = (size_t)first;

    (void)thread;
    linear_input_gradient(&classifier, m->params + m->fc_weight, m->logits + at * classifier.out,
                          (size_t)(end - first), m->d_head + at * classifier.in);
    for (int i = first; i < end; i++)
        model_drop(m, i, m->d_head + (size_t)i * classifier.in);
}

static void run_classifier(struct model *m, double scale, bool accumulate)
{
    struct pass p = {.m = m, .accumulate = accumulate};
    double span = trace_begin();

    softmax_loss_mixed_backward(m->logits, m->labels, m->n, m->config.classes,
                                m->config.label_smoothing, 1 - m->mixed, scale / m->n, m->logits);
    parallel_run(m->config.threads, m->config.classes, classes_back, &p);
    parallel_run(m->config.threads, m->n, head_back, &p);
    trace_end_layer(span, "backward", m->cnn ? "fc2" : "avgpool, fc",
                    4.0 * m->n * (double)m->config.classes * m->features);
}

/* Gradient of the last block's output, masked and summed. */
static void spread_average(int thread, int first, int end, void *context)
{
    struct pass *p = context;
    struct model *m = p->m;
    size_t pixels = unit_pixels(p->target.unit), c = unit_channels(p->target.unit);

    for (size_t i = (size_t)first; i < (size_t)end; i++) {
        pool_average_backward(m->d_head + i * c, 1, (int)pixels, m->features,
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
        pool_max_backward(&m->pool, p->g + i * out * c, m->tap + i * out * c, 1,
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

static void run_stem(struct model *m, bool accumulate)
{
    struct unit *stem = &m->units[0];
    struct pass p = {.m = m, .accumulate = accumulate};

    if (m->pools) {
        p.g = m->g_in;
        p.dx = stem->g;
        p.target.unit = stem;
        start_target(&p, spread_maxima);
    }
    run_unit(&(struct pass){
        .m = m, .u = stem, .x = m->images, .g = stem->g, .dz = stem->dz, .accumulate = accumulate});
}

void model_backward(struct model *m, double scale, bool accumulate, model_grads_ready *ready,
                    void *context)
{
    struct announcement a = {ready, context};
    int last = m->block_count - 1;

    run_classifier(m, scale, accumulate);
    if (ready)
        ready(m->fc_weight, m->param_count - m->fc_weight, context);
    if (m->cnn) {
        cnn_backward(m, accumulate, &a);
        return;
    }
    start_target(&(struct pass){.m = m,
                                .accumulate = accumulate,
                                .dx = m->blocks[last].g,
                                .target = target_of_block(m, last)},
                 spread_average);
    for (int i = last; i >= 0; i--)
        run_block(m, i, accumulate, &a);
    run_stem(m, accumulate);
    announce(&a, &m->units[0]);
}
