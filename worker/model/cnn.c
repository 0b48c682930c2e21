/*
 * arch cnn (common/net/cnn.h), forward and backward up to the classifier, which all networks share.
 * A unit's z holds y = relu(convolution + bias), made in the convolution's tiles.
 */
#include <stdlib.h>

#include "common/net/cnn.h"
#include "common/run/trace.h"
#include "worker/kernels/parallel.h"
#include "worker/kernels/pool.h"
#include "worker/model/internal.h"

struct cnn {
    struct cnn_layout layout;
    struct window pools[CNN_STAGES];
    float *pooled[CNN_STAGES]; /* (N, size / 2, size / 2, C) */
    uint8_t *tap[CNN_STAGES];
    float *d_pooled; /* of the stage in work */
    struct linear hidden;
    size_t weight, bias, grads_end; /* of the hidden layer: offsets in the parameters */
};

int cnn_build(struct model *m, struct error *e)
{
    struct arch_shape shape = model_shape(&m->config);

    m->cnn = calloc(1, sizeof *m->cnn);
    if (!m->cnn)
        return error_set(e, ERR_NO_MEMORY, "no memory for a model's layers");
    struct cnn_layout *l = &m->cnn->layout;
    cnn_lay_out(&shape, m->config.inference, l);
    for (int s = 0; s < CNN_STAGES; s++)
        m->cnn->pools[s] = window_make(l->convs[s].out_size, l->convs[s].out_channels,
                                       ARCH_CNN_POOL, ARCH_CNN_POOL, 0);
    m->cnn->hidden = (struct linear){(size_t)l->linears[0].in, (size_t)l->linears[0].out};
    m->features = l->linears[0].out;
    return model_make_units(m, l->convs, CNN_STAGES, e);
}

/* The next buffer of so many floats an image. */
static float *take_buffer(struct model *m, float **next, size_t floats)
{
    float *buffer = *next;
    *next += (size_t)m->config.batch * floats;
    return buffer;
}

int cnn_allocate(struct model *m, struct error *e)
{
    struct cnn *c = m->cnn;
    const struct cnn_layout *l = &c->layout;

    if (model_allocate_floats(m, &m->arena, (size_t)m->config.batch * l->floats, e))
        return -(int)e->code;
    float *next = m->arena, *dy;
    for (int s = 0; s < CNN_STAGES; s++) {
        m->units[s].z = take_buffer(m, &next, l->y[s]);
        c->pooled[s] = take_buffer(m, &next, l->pooled[s]);
        c->tap[s] = (uint8_t *)take_buffer(m, &next, l->tap[s]);
    }
    dy = take_buffer(m, &next, l->largest_y);
    c->d_pooled = take_buffer(m, &next, l->largest_pooled);
    for (int s = 0; s < CNN_STAGES; s++) {
        struct unit *u = &m->units[s];
        u->g = u->dz = dy;
        for (size_t j = 0; j < unit_channels(u); j++)
            u->scale[j] = 1; /* the bias is the shift of a batch norm that leaves values alone */
    }
    return 0;
}

void cnn_lay_out_tensors(struct model *m, size_t weight, size_t bias)
{
    m->cnn->weight = weight;
    m->cnn->bias = bias;
    m->cnn->grads_end = m->param_count;
}

/* What the threads work on: stage s, or the hidden layer. */
struct pass {
    struct model *m;
    struct unit *u;
    int s;
    const float *in; /* of the stage's convolution */
    bool accumulate;
};

static struct pass stage_pass(struct model *m, int s, bool accumulate)
{
    const float *in = s ? m->cnn->pooled[s - 1] : m->images;
    return (struct pass){m, &m->units[s], s, in, accumulate};
}

static const char *pool_name(int s)
{
    return s ? "pool2" : "pool1";
}

static double hidden_flops(const struct model *m)
{
    return 2.0 * m->n * (double)m->cnn->hidden.in * (double)m->cnn->hidden.out;
}

/* ---- forward */

static void add_bias(size_t row, size_t rows, void *context)
{
    const struct pass *p = context;
    const struct unit *u = p->u;
    float *y = u->z + row * unit_channels(u);
    double piece = trace_begin();

    batchnorm_apply(y, rows, unit_channels(u), u->scale, p->m->params + u->beta, NULL, true, y);
    trace_part(piece, TRACE_NORM);
}

static void convolve(int thread, int first, int end, void *context)
{
    struct pass *p = context;
    conv_forward(&p->u->conv, p->m->params + p->u->weight, p->in, p->u->z, first, end,
                 p->m->lanes[thread].scratch, add_bias, p);
}

static void pool(int thread, int first, int end, void *context)
{
    const struct pass *p = context;
    const struct cnn *c = p->m->cnn;
    size_t at = (size_t)first * c->layout.pooled[p->s];

    (void)thread;
    pool_max(&c->pools[p->s], p->u->z + (size_t)first * c->layout.y[p->s], end - first,
             c->pooled[p->s] + at, p->m->evaluating ? NULL : c->tap[p->s] + at);
}

static void make_hidden(int thread, int first, int end, void *context)
{
    const struct model *m = ((struct pass *)context)->m;
    const struct cnn *c = m->cnn;
    float *hidden = m->head + (size_t)first * c->hidden.out;
    size_t n = (size_t)(end - first);

    (void)thread;
    linear_forward(&c->hidden, m->params + c->weight, m->params + c->bias,
                   c->pooled[CNN_STAGES - 1] + (size_t)first * c->hidden.in, n, hidden);
    for (size_t i = 0; i < n * c->hidden.out; i++)
        hidden[i] = hidden[i] < 0 ? 0 : hidden[i]; /* a NaN stays */
}

void cnn_forward(struct model *m)
{
    const char *category = model_trace_category(m);
    struct pass p = {.m = m};

    for (int s = 0; s < CNN_STAGES; s++) {
        p = stage_pass(m, s, false);
        double span = trace_begin();
        parallel_run(m->config.threads, m->n, convolve, &p);
        trace_end_layer(span, category, p.u->name, unit_flops(p.u, m->n));
        span = trace_begin();
        parallel_run(m->config.threads, m->n, pool, &p);
        trace_end(span, category, pool_name(s), 0);
    }
    double span = trace_begin();
    parallel_run(m->config.threads, m->n, make_hidden, &p);
    trace_end_layer(span, category, "fc1", hidden_flops(m));
}

/* ---- backward */

/* Gradients of the hidden layer's input, of a thread's images; d_head is masked by the ReLU. */
static void hidden_back(int thread, int first, int end, void *context)
{
    const struct model *m = ((struct pass *)context)->m;
    const struct cnn *c = m->cnn;
    size_t from = (size_t)first * c->hidden.out, behind = (size_t)end * c->hidden.out;

    (void)thread;
    for (size_t i = from; i < behind; i++)
        m->d_head[i] = m->head[i] > 0 ? m->d_head[i] : 0;
    linear_input_gradient(&c->hidden, m->params + c->weight, m->d_head + from,
                          (size_t)(end - first), c->d_pooled + (size_t)first * c->hidden.in);
}

/* Gradients of the weights and biases of a thread's hidden units. */
static void hidden_units_back(int thread, int first, int end, void *context)
{
    const struct pass *p = context;
    const struct model *m = p->m;
    const struct cnn *c = m->cnn;

    (void)thread;
    linear_weight_gradients(&c->hidden, c->pooled[CNN_STAGES - 1], m->d_head, (size_t)m->n,
                            (size_t)first, (size_t)end, m->grads + c->weight, m->grads + c->bias,
                            p->accumulate);
}

static void run_hidden_back(struct model *m, bool accumulate)
{
    struct pass p = {.m = m, .accumulate = accumulate};
    double span = trace_begin();

    parallel_run(m->config.threads, m->n, hidden_back, &p);
    parallel_run(m->config.threads, (int)m->cnn->hidden.out, hidden_units_back, &p);
    trace_end_layer(span, "backward", "fc1", 2 * hidden_flops(m));
}

/* The gradient of y from that of the pooling, masked by the ReLU; its sums are the bias's. */
static void pool_back(int thread, int first, int end, void *context)
{
    const struct pass *p = context;
    const struct cnn *c = p->m->cnn;
    const struct batchnorm_branch none[2] = {{0}};
    size_t pooled = c->layout.pooled[p->s], y = c->layout.y[p->s];

    for (size_t i = (size_t)first; i < (size_t)end; i++) {
        float *g = p->u->g + i * y;
        struct batchnorm_mask mask = {.y = p->u->z + i * y};
        pool_max_backward(&c->pools[p->s], c->d_pooled + i * pooled, c->tap[p->s] + i * pooled, 1,
                          g);
        batchnorm_mask_sums(g, &mask, unit_pixels(p->u), unit_channels(p->u), none,
                            p->m->lanes[thread].sum);
    }
}

static void convolve_back(int thread, int first, int end, void *context)
{
    const struct pass *p = context;
    struct lane *lane = &p->m->lanes[thread];
    struct conv_backward b = {.w = p->m->params + p->u->weight,
                              .x = p->in,
                              .dz = p->u->dz,
                              .dx = p->s ? p->m->cnn->d_pooled : NULL,
                              .dw = thread ? lane->dw : p->m->grads + p->u->weight,
                              .add_dw = p->accumulate && !thread,
                              .scratch = lane->scratch};

    conv_backward(&p->u->conv, &b, first, end);
}

static void finish_bias(const struct pass *p)
{
    float *d_bias = p->m->grads + p->u->beta;

    for (size_t j = 0; j < unit_channels(p->u); j++) {
        double sum = p->accumulate ? d_bias[j] : 0;
        for (int t = 0; t < p->m->config.threads; t++)
            sum += p->m->lanes[t].sum[j];
        d_bias[j] = (float)sum;
    }
}

static void run_stage_back(struct pass *p)
{
    struct model *m = p->m;
    double span = trace_begin();

    unit_clear_sums(m, p->u);
    parallel_run(m->config.threads, m->n, pool_back, p);
    finish_bias(p);
    trace_end(span, "backward", pool_name(p->s), 0);
    span = trace_begin();
    parallel_run(m->config.threads, m->n, convolve_back, p);
    unit_add_lanes(m, p->u);
    trace_end_layer(span, "backward", p->u->name, unit_flops(p->u, m->n) * (p->s ? 2 : 1));
}

void cnn_backward(struct model *m, bool accumulate, const struct announcement *a)
{
    run_hidden_back(m, accumulate);
    model_announce(a, m->cnn->weight, m->cnn->grads_end);
    for (int s = CNN_STAGES - 1; s >= 0; s--) {
        struct pass p = stage_pass(m, s, accumulate);
        run_stage_back(&p);
        model_announce(a, p.u->weight, p.u->grads_end);
    }
}
