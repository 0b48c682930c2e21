/* A unit's z holds y = relu(convolution + bias), computed in the convolution's tiles. */
#include "worker/model/cnn.h"

#include <stdlib.h>

#include "common/net/network.h"
#include "common/xalloc.h"
#include "worker/model/traffic.h"
#include "worker/team/dry_run.h"

struct cnn {
    struct cnn_layout layout;
    struct window pools[CNN_STAGES];
    float *pooled[CNN_STAGES]; /* (N, size / 2, size / 2, C) */
    uint8_t *tap[CNN_STAGES];
    float *d_pooled; /* of the current stage */
    struct linear hidden;
    size_t weight, bias, grads_end; /* of the hidden layer: offsets in the parameters */
};

void cnn_build(struct model *m)
{
    struct arch_shape shape = model_shape(&m->config);

    m->cnn = xcalloc(1, sizeof *m->cnn);
    struct cnn_layout *l = &m->cnn->layout;
    cnn_lay_out(&shape, m->config.inference, l);
    for (int s = 0; s < CNN_STAGES; s++)
        m->cnn->pools[s] = window_make(l->convs[s].out_size, l->convs[s].out_channels,
                                       ARCH_CNN_POOL, ARCH_CNN_POOL, 0);
    m->cnn->hidden = (struct linear){(size_t)l->linears[0].in, (size_t)l->linears[0].out,
                                     m->config.threads > 1 && model_uses_tile(m)};
    m->features = l->linears[0].out;
    model_make_units(m, l->convs, CNN_STAGES);
}

static float *cnn_take_buffer(struct model *m, float **next, size_t floats)
{
    float *buffer = *next;
    *next += (size_t)m->config.batch * floats;
    return buffer;
}

int cnn_allocate(struct model *m, struct error *e)
{
    struct cnn *c = m->cnn;
    const struct cnn_layout *l = &c->layout;

    m->arena = model_allocate_shared(m, (size_t)m->config.batch * l->floats * sizeof(float), e);
    if (!m->arena)
        return -(int)e->code;
    float *next = m->arena, *dy;
    for (int s = 0; s < CNN_STAGES; s++) {
        m->layout->units[s].z = cnn_take_buffer(m, &next, l->y[s]);
        c->pooled[s] = cnn_take_buffer(m, &next, l->pooled[s]);
        c->tap[s] = (uint8_t *)cnn_take_buffer(m, &next, l->tap[s]);
    }
    dy = cnn_take_buffer(m, &next, l->largest_y);
    c->d_pooled = cnn_take_buffer(m, &next, l->largest_pooled);
    for (int s = 0; s < CNN_STAGES; s++) {
        struct unit *u = &m->layout->units[s];
        u->g = u->dz = dy;
        for (size_t j = 0; j < unit_channels(u); j++)
            u->scale[j] = 1; /* the bias is the shift of an identity batch norm */
    }
    return 0;
}

void cnn_lay_out_tensors(struct model *m, size_t weight, size_t bias)
{
    m->cnn->weight = weight;
    m->cnn->bias = bias;
    m->cnn->grads_end = m->param_count;
}

struct pass {
    struct model *m;
    struct unit *u;
    int s;
    const float *in; /* of the stage's convolution */
    bool accumulate;
};

static struct pass cnn_stage_pass(struct model *m, int s, bool accumulate)
{
    const float *in = s ? m->cnn->pooled[s - 1] : m->images;
    return (struct pass){m, &m->layout->units[s], s, in, accumulate};
}

static const char *cnn_pool_name(int s)
{
    return s ? "pool2" : "pool1";
}

static double cnn_hidden_flops(const struct model *m)
{
    return 2.0 * m->n * (double)m->cnn->hidden.in * (double)m->cnn->hidden.out;
}

/* Of forward, and of the gradient of the weights: input, output, weights */
static double cnn_convolution_bytes(const struct pass *p)
{
    return traffic_of_input(p->m, p->u) + traffic_of_output(p->m, p->u) + traffic_of_weights(p->u);
}

/* ---- forward */

static void cnn_add_bias(const struct parallel_block *part, void *context)
{
    const struct pass *p = context;
    const struct unit *u = p->u;
    size_t c = unit_channels(u);
    float *y = (float *)u->z + part->row * c + part->column;
    double piece = trace_begin();

    batchnorm_apply(y, part->rows, part->columns, c, u->scale + part->column,
                    p->m->params + u->beta + part->column, NULL, true, y);
    trace_part(piece, TRACE_NORM);
}

static void cnn_convolve(struct parallel_share share, void *context)
{
    struct pass *p = context;
    struct model *m = p->m;

    m->ops->forward(m, p->u, p->in, share, cnn_add_bias, p);
}

static void cnn_pool(struct parallel_share share, void *context)
{
    const struct pass *p = context;
    const struct cnn *c = p->m->cnn;
    const struct window *w = &c->pools[p->s];
    struct parallel_range mine = parallel_range((size_t)(p->m->n * w->out * w->out), share);

    pool_max(w, p->u->z, mine.first, mine.end, c->pooled[p->s],
             p->m->evaluating ? NULL : c->tap[p->s]);
}

static void cnn_make_hidden(struct parallel_share share, void *context)
{
    const struct model *m = ((struct pass *)context)->m;
    const struct cnn *c = m->cnn;
    struct parallel_block part[PARALLEL_BLOCKS];
    int parts = model_matrix_parts((size_t)m->n, c->hidden.out, share, part);

    for (int k = 0; k < parts; k++) {
        float *to = m->head + part[k].row * c->hidden.out + part[k].column;
        linear_forward(&c->hidden, m->params + c->weight, m->params + c->bias,
                       c->pooled[CNN_STAGES - 1], &part[k], m->head);
        for (size_t i = 0; i < part[k].rows && !dry_run; i++, to += c->hidden.out)
            for (size_t j = 0; j < part[k].columns; j++)
                to[j] = to[j] < 0 ? 0 : to[j]; /* keeps NaN */
    }
}

void cnn_forward(struct model *m)
{
    const char *category = model_trace_category(m);
    struct pass p = {.m = m};

    for (int s = 0; s < CNN_STAGES; s++) {
        p = cnn_stage_pass(m, s, false);
        double span = trace_begin();
        parallel_team(m->config.threads, cnn_convolve, &p);
        traffic_end_layer(m, span, category, p.u->name, unit_flops(p.u, m->n),
                          cnn_convolution_bytes(&p));
        span = trace_begin();
        parallel_team(m->config.threads, cnn_pool, &p);
        traffic_end_layer(m, span, category, cnn_pool_name(s), 0,
                          traffic_of_max_pool(m, &m->cnn->pools[s]));
    }
    double span = trace_begin();
    parallel_team(m->config.threads, cnn_make_hidden, &p);
    traffic_end_layer(m, span, category, "fc1", cnn_hidden_flops(m),
                      traffic_of_linear(m, &m->cnn->hidden, false, false));
}

/* ---- backward */

/* A thread's part of the hidden layer's gradients; first masks d_head by the ReLU. */
static void cnn_hidden_back(struct parallel_share share, void *context)
{
    const struct pass *p = context;
    const struct model *m = p->m;
    const struct cnn *c = m->cnn;
    struct parallel_range mine = parallel_range((size_t)m->n * c->hidden.out, share);
    struct parallel_block part[PARALLEL_BLOCKS];

    for (size_t i = mine.first; i < mine.end && !dry_run; i++)
        m->d_head[i] = m->head[i] > 0 ? m->d_head[i] : 0;
    parallel_barrier(share);
    int parts = model_matrix_parts((size_t)m->n, c->hidden.in, share, part);
    for (int i = 0; i < parts && m->config.frozen < CNN_STAGES; i++)
        linear_input_gradient(&c->hidden, m->params + c->weight, m->d_head, &part[i], c->d_pooled);
    parts = parallel_matrix(c->hidden.out, c->hidden.out, c->hidden.in, c->hidden.in, share, part);
    for (int i = 0; i < parts; i++)
        linear_weight_gradients(&c->hidden, c->pooled[CNN_STAGES - 1], m->d_head, (size_t)m->n,
                                &part[i], m->grads + c->weight, m->grads + c->bias, p->accumulate);
}

static void cnn_run_hidden_back(struct model *m, bool accumulate)
{
    struct pass p = {.m = m, .accumulate = accumulate};
    double span = trace_begin();

    parallel_team(m->config.threads, cnn_hidden_back, &p);
    traffic_end_layer(m, span, "backward", "fc1",
                      (m->config.frozen < CNN_STAGES ? 2 : 1) * cnn_hidden_flops(m),
                      traffic_of_linear(m, &m->cnn->hidden, true, accumulate));
}

static void cnn_finish_bias(const struct pass *p, struct parallel_share share)
{
    struct parallel_range mine = unit_channel_share(p->u, share);
    float *d_bias = p->m->grads + p->u->beta;

    for (size_t j = mine.first; j < mine.end && !dry_run; j++) {
        double sum = p->accumulate ? d_bias[j] : 0;
        for (int i = 0; i < parallel_lanes(share.parts); i++)
            sum += p->m->accumulators[i].sum[j];
        d_bias[j] = (float)sum;
    }
    unit_clear_sums(p->m, p->u, share);
}

/* Gradient of y from the pool's, masked by the ReLU; its sums are the bias's gradient. */
static void cnn_pool_back(struct parallel_share share, void *context)
{
    const struct pass *p = context;
    const struct cnn *c = p->m->cnn;
    const struct window *w = &c->pools[p->s];
    const struct batchnorm_branch none[2] = {{0}};
    struct thread_accumulator *sums = model_accumulator(p->m);
    size_t in = (size_t)w->in, line_floats = in * unit_channels(p->u);
    struct parallel_range lines = parallel_range((size_t)p->m->n * in, share);

    for (size_t line = lines.first, end; line < lines.end; line = end) {
        end = (line / in + 1) * in < lines.end ? (line / in + 1) * in : lines.end;
        float *g = (float *)p->u->g + line * line_floats;
        struct batchnorm_mask mask = {.y = (float *)p->u->z + line * line_floats};
        pool_max_backward(w, c->d_pooled, c->tap[p->s], line, end, p->u->g);
        batchnorm_mask_sums(g, &mask, (end - line) * in, unit_channels(p->u), unit_channels(p->u),
                            none, sums->sum);
    }
    parallel_barrier(share);
    cnn_finish_bias(p, share);
}

static void cnn_convolve_back(struct parallel_share share, void *context)
{
    const struct pass *p = context;
    struct model *m = p->m;
    struct precision_backward b = {
        .x = p->in,
        .dz = p->u->dz,
        .dx = p->s > m->config.frozen ? m->cnn->d_pooled : NULL,
        .add_dw = p->accumulate,
    };

    m->ops->backward(m, p->u, &b, share);
}

static void cnn_run_stage_back(struct pass *p)
{
    struct model *m = p->m;
    double span = trace_begin();

    parallel_team(m->config.threads, cnn_pool_back, p);
    traffic_end_layer(m, span, "backward", cnn_pool_name(p->s), 0,
                      traffic_of_max_pool(m, &m->cnn->pools[p->s]) + traffic_of_output(m, p->u));
    span = trace_begin();
    parallel_team(m->config.threads, cnn_convolve_back, p);
    double bytes = cnn_convolution_bytes(p) + traffic_of_weights(p->u) * p->accumulate;
    bool below = p->s > m->config.frozen;
    if (below)
        bytes += traffic_of_input_gradient(m, p->u) + traffic_of_weights(p->u);
    traffic_end_layer(m, span, "backward", p->u->name, unit_flops(p->u, m->n) * (below ? 2 : 1),
                      bytes);
}

void cnn_backward(struct model *m, bool accumulate, const struct announcement *a)
{
    cnn_run_hidden_back(m, accumulate);
    model_announce(a, m->cnn->weight, m->cnn->grads_end);
    for (int s = CNN_STAGES - 1; s >= m->config.frozen; s--) {
        struct pass p = cnn_stage_pass(m, s, accumulate);
        cnn_run_stage_back(&p);
        model_announce(a, p.u->weight, p.u->grads_end);
    }
}
