#include <string.h>

#include "worker/model/precision.h"

static void fp32_to_floats(const void *from, size_t n, float *to)
{
    memcpy(to, from, n * sizeof *to);
}

static void fp32_forward(struct model *m, const struct unit *u, const void *x,
                         struct parallel_share share, conv_rows *done, void *context)
{
    struct conv_memory memory = model_memory(m);
    const float *w = m->params + u->weight;

    conv_forward(&u->conv, w, x, u->z, m->n, share, &memory, done, context);
}

static void fp32_backward(struct model *m, const struct unit *u, const struct precision_backward *b,
                          struct parallel_share share)
{
    struct conv_memory memory = model_memory(m);
    struct conv_backward of = {
        .w = m->params + u->weight,
        .x = b->x,
        .dz = b->dz,
        .dx = b->dx,
        .add_dx = b->add_dx,
        .dw = m->grads + u->weight,
        .add_dw = b->add_dw,
        .ready = b->ready,
        .done = b->done,
        .context = b->context,
    };

    conv_backward(&u->conv, &of, m->n, share, &memory);
}

/* A 1x1 convolution reads the same rows of x and dz. */
static bool fp32_reads_x_by_rows(const struct model *m, const struct unit *u, bool wants_dx)
{
    struct conv_memory memory = model_memory(m);
    struct parallel_share any = {0, m->config.threads};

    return u->conv.window.kernel == 1 && u->conv.window.stride == 1 &&
           conv_backward_by_rows(&u->conv, m->n, any, &memory, wants_dx);
}

/* Batches may be smaller than the layouts'. */
static int fp32_allocate(struct model *m, struct error *e)
{
    int threads = m->config.threads;

    for (int k = 0; k < m->layout_count; k++)
        for (int i = 0; i < m->unit_count; i++) {
            const struct conv *c = &m->layouts[k].units[i].conv;
            size_t team = conv_team_floats(c, m->layouts[k].batch, threads);
            m->own_floats = size_max(m->own_floats, conv_own_floats(c, threads));
            m->team_floats = size_max(m->team_floats, team);
        }
    if (model_allocate_floats(m, &m->team, m->team_floats, e))
        return -(int)e->code;
    return model_allocate_own(m, m->own_floats * sizeof(float), e);
}

const struct precision_ops precision_fp32 = {
    .bytes = sizeof(float),
    .winograd_margin = 0.9, /* its rounding errors are larger */
    .to_floats = fp32_to_floats,
    .forward = fp32_forward,
    .backward = fp32_backward,
    .reads_x_by_rows = fp32_reads_x_by_rows,
    .allocate = fp32_allocate,
    .sums = batchnorm_sums,
    .apply = batchnorm_apply,
    .mask_sums = batchnorm_mask_sums,
    .input_gradient = batchnorm_input_gradient,
    .pool_max = pool_max,
    .pool_max_backward = pool_max_backward,
    .pool_blur = pool_blur,
    .pool_average = pool_average,
    .pool_average_backward = pool_average_backward,
};
