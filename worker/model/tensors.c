/* The table of named tensors, and the way between the engine's layouts and torchvision's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/model/internal.h"

size_t model_align(size_t floats)
{
    return (floats + 15) & ~(size_t)15;
}

/* One more tensor at *end of its buffer; returns its offset. */
static size_t add_tensor(struct model *m, enum model_tensor_kind kind, const char *prefix,
                         const char *suffix, const int64_t shape[4], size_t *end)
{
    struct model_tensor *t = &m->tensors[m->tensor_count++];

    snprintf(t->name, sizeof t->name, "%s.%s", prefix, suffix);
    t->kind = kind;
    t->offset = *end;
    t->count = 1;
    for (t->dims = 0; t->dims < 4 && shape[t->dims]; t->dims++) {
        t->shape[t->dims] = shape[t->dims];
        t->count *= (size_t)shape[t->dims];
    }
    *end += model_align(t->count);
    return t->offset;
}

static void lay_out_unit(struct model *m, struct unit *u)
{
    const struct window *w = &u->conv.window;
    int64_t channels[4] = {u->conv.out_channels};
    int64_t shape[4] = {u->conv.out_channels, w->channels / u->conv.groups, w->kernel, w->kernel};

    u->weight = add_tensor(m, MODEL_CONV_WEIGHT, u->name, "weight", shape, &m->param_count);
    if (!*u->bn_name) {
        u->beta = add_tensor(m, MODEL_CONV_BIAS, u->name, "bias", channels, &m->param_count);
        u->grads_end = m->param_count;
        return;
    }
    u->gamma = add_tensor(m, MODEL_BN_GAMMA, u->bn_name, "weight", channels, &m->param_count);
    u->beta = add_tensor(m, MODEL_BN_BETA, u->bn_name, "bias", channels, &m->param_count);
    u->grads_end = m->param_count;
}

static void lay_out_linear(struct model *m, const struct arch_linear *l, bool classifies)
{
    int64_t shape[4] = {l->out, l->in}, outputs[4] = {l->out};
    size_t weight = add_tensor(m, MODEL_FC_WEIGHT, l->name, "weight", shape, &m->param_count);

    m->tensors[m->tensor_count - 1].pixels = l->pixels;
    size_t bias = add_tensor(m, MODEL_FC_BIAS, l->name, "bias", outputs, &m->param_count);
    if (classifies) {
        m->fc_weight = weight;
        m->fc_bias = bias;
    } else {
        cnn_lay_out_tensors(m, weight, bias);
    }
}

int model_lay_out_tensors(struct model *m, struct error *e)
{
    struct arch_shape shape = model_shape(&m->config);
    struct arch_linear linears[ARCH_LINEARS];
    int count = arch_linears(&shape, linears);

    /* a shape of a test may have other stages than the table's networks */
    linears[count - 1].in = m->features;
    m->tensors = calloc((size_t)m->unit_count * 5 + 2 * ARCH_LINEARS, sizeof *m->tensors);
    if (!m->tensors)
        return error_set(e, ERR_NO_MEMORY, "no memory for the table of tensors");
    for (int i = 0; i < m->unit_count; i++)
        lay_out_unit(m, &m->layout->units[i]);
    for (int i = 0; i < count; i++)
        lay_out_linear(m, &linears[i], i == count - 1);
    m->trainable_count = m->tensor_count;
    for (int i = 0; i < m->unit_count; i++) {
        struct unit *u = &m->layout->units[i];
        if (!*u->bn_name)
            continue;
        int64_t channels[4] = {u->conv.out_channels};
        u->mean =
            add_tensor(m, MODEL_BN_MEAN, u->bn_name, "running_mean", channels, &m->stat_count);
        u->var = add_tensor(m, MODEL_BN_VAR, u->bn_name, "running_var", channels, &m->stat_count);
    }
    return 0;
}

size_t model_tensor_count(const struct model *m)
{
    return m->tensor_count;
}

const struct model_tensor *model_tensor(const struct model *m, size_t i)
{
    return &m->tensors[i];
}

static float *storage(const struct model *m, size_t i)
{
    return (i < m->trainable_count ? m->params : m->stats) + m->tensors[i].offset;
}

/* Every weight with its place in (O, I, kh, kw) and in (kh, kw, I, O). */
static void reorder(const struct model_tensor *t, float *engine, float *torch, bool to_torch)
{
    size_t o = (size_t)t->shape[0], i = (size_t)t->shape[1],
           taps = (size_t)(t->shape[2] * t->shape[3]);

    for (size_t a = 0; a < o; a++)
        for (size_t b = 0; b < i; b++)
            for (size_t k = 0; k < taps; k++) {
                float *ours = &engine[(k * i + b) * o + a],
                      *theirs = &torch[(a * i + b) * taps + k];
                if (to_torch)
                    *theirs = *ours;
                else
                    *ours = *theirs;
            }
}

/* Every weight behind a flattening with its place in (O, I, pixels) and in (O, pixels, I). */
static void reorder_flat(const struct model_tensor *t, float *engine, float *torch, bool to_torch)
{
    size_t o = (size_t)t->shape[0], pixels = (size_t)t->pixels, i = (size_t)t->shape[1] / pixels;

    for (size_t a = 0; a < o; a++)
        for (size_t b = 0; b < i; b++)
            for (size_t p = 0; p < pixels; p++) {
                float *ours = &engine[(a * pixels + p) * i + b],
                      *theirs = &torch[(a * i + b) * pixels + p];
                if (to_torch)
                    *theirs = *ours;
                else
                    *ours = *theirs;
            }
}

void tensor_to_torch(const struct model_tensor *t, const float *engine, float *torch)
{
    if (t->kind == MODEL_CONV_WEIGHT)
        reorder(t, (float *)engine, torch, true);
    else if (t->pixels > 1)
        reorder_flat(t, (float *)engine, torch, true);
    else
        memcpy(torch, engine, t->count * sizeof(float));
}

void tensor_from_torch(const struct model_tensor *t, const float *torch, float *engine)
{
    if (t->kind == MODEL_CONV_WEIGHT)
        reorder(t, engine, (float *)torch, false);
    else if (t->pixels > 1)
        reorder_flat(t, engine, (float *)torch, false);
    else
        memcpy(engine, torch, t->count * sizeof(float));
}

void model_tensor_export(const struct model *m, size_t i, float *torch_layout)
{
    tensor_to_torch(&m->tensors[i], storage(m, i), torch_layout);
}

void model_tensor_import(struct model *m, size_t i, const float *torch_layout)
{
    tensor_from_torch(&m->tensors[i], torch_layout, storage(m, i));
}
