/* The table of named tensors, and the way between the engine's layouts and torchvision's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/model/internal.h"
#include "worker/team/parallel.h"

/* Offsets are multiples of 16 floats. */
static size_t tensors_model_align(size_t floats)
{
    return (floats + 15) & ~(size_t)15;
}

/* One more tensor at *end of its buffer; returns its offset. */
static size_t tensors_add(struct model *m, enum model_tensor_kind kind, const char *prefix,
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
    *end += tensors_model_align(t->count);
    return t->offset;
}

static void tensors_lay_out_unit(struct model *m, struct unit *u)
{
    const struct window *w = &u->conv.window;
    int64_t channels[4] = {u->conv.out_channels};
    int64_t shape[4] = {u->conv.out_channels, w->channels / u->conv.groups, w->kernel, w->kernel};

    u->weight = tensors_add(m, MODEL_CONV_WEIGHT, u->name, "weight", shape, &m->param_count);
    if (!*u->bn_name) {
        u->beta = tensors_add(m, MODEL_CONV_BIAS, u->name, "bias", channels, &m->param_count);
        u->grads_end = m->param_count;
        return;
    }
    u->gamma = tensors_add(m, MODEL_BN_GAMMA, u->bn_name, "weight", channels, &m->param_count);
    u->beta = tensors_add(m, MODEL_BN_BETA, u->bn_name, "bias", channels, &m->param_count);
    u->grads_end = m->param_count;
}

static void tensors_lay_out_linear(struct model *m, const struct arch_linear *l, bool classifies)
{
    int64_t shape[4] = {l->out, l->in}, outputs[4] = {l->out};
    size_t weight = tensors_add(m, MODEL_FC_WEIGHT, l->name, "weight", shape, &m->param_count);

    m->tensors[m->tensor_count - 1].pixels = l->pixels;
    size_t bias = tensors_add(m, MODEL_FC_BIAS, l->name, "bias", outputs, &m->param_count);
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
        tensors_lay_out_unit(m, &m->layout->units[i]);
    for (int i = 0; i < count; i++)
        tensors_lay_out_linear(m, &linears[i], i == count - 1);
    m->trainable_count = m->tensor_count;
    for (int i = 0; i < m->unit_count; i++) {
        struct unit *u = &m->layout->units[i];
        if (!*u->bn_name)
            continue;
        int64_t channels[4] = {u->conv.out_channels};
        u->mean =
            tensors_add(m, MODEL_BN_MEAN, u->bn_name, "running_mean", channels, &m->stat_count);
        u->var = tensors_add(m, MODEL_BN_VAR, u->bn_name, "running_var", channels, &m->stat_count);
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

static float *tensors_storage(const struct model *m, size_t i)
{
    return (i < m->trainable_count ? m->params : m->stats) + m->tensors[i].offset;
}

/* A tile of torch's (O, I, taps): so many weights of so many rows. It goes through a buffer, since
 * rows whose distance is a power of two share few places of the cache. */
enum { TILE_O = 64, TILE_WEIGHTS = 32 };

struct weights_tile {
    size_t o, i, taps;
    size_t row, rows, weight, weights; /* weight: (b, k) of a row */
};

static void tensors_reorder_tile(const struct weights_tile *t, float *engine, float *torch,
                                 bool to_torch)
{
    float tile[TILE_O][TILE_WEIGHTS + 1];
    float *theirs = torch + t->row * t->i * t->taps + t->weight;

    for (size_t a = 0; a < t->rows && !to_torch; a++)
        memcpy(tile[a], theirs + a * t->i * t->taps, t->weights * sizeof **tile);
    for (size_t j = 0; j < t->weights; j++) {
        size_t b = (t->weight + j) / t->taps, k = (t->weight + j) % t->taps;
        float *ours = &engine[(k * t->i + b) * t->o + t->row];
        for (size_t a = 0; a < t->rows; a++)
            if (to_torch)
                tile[a][j] = ours[a];
            else
                ours[a] = tile[a][j];
    }
    for (size_t a = 0; a < t->rows && to_torch; a++)
        memcpy(theirs + a * t->i * t->taps, tile[a], t->weights * sizeof **tile);
}

/* Every weight with its place in torch's (O, I, taps) and in the engine's (taps, I, O). */
static void tensors_reorder(size_t o, size_t i, size_t taps, float *engine, float *torch,
                            bool to_torch)
{
    struct weights_tile t = {.o = o, .i = i, .taps = taps};

    for (t.row = 0; t.row < o; t.row += t.rows) {
        t.rows = size_min(o - t.row, TILE_O);
        for (t.weight = 0; t.weight < i * taps; t.weight += t.weights) {
            t.weights = size_min(i * taps - t.weight, TILE_WEIGHTS);
            tensors_reorder_tile(&t, engine, torch, to_torch);
        }
    }
}

static void tensors_convert(const struct model_tensor *t, float *engine, float *torch,
                            bool to_torch)
{
    size_t o = (size_t)t->shape[0], pixels = (size_t)t->pixels;

    if (t->kind == MODEL_CONV_WEIGHT)
        tensors_reorder(o, (size_t)t->shape[1], (size_t)(t->shape[2] * t->shape[3]), engine, torch,
                        to_torch);
    else if (t->pixels > 1) /* behind a flattening: (O, I, pixels) and (O, pixels, I) */
        for (size_t a = 0, size = t->count / o; a < o; a++)
            tensors_reorder(size / pixels, 1, pixels, engine + a * size, torch + a * size,
                            to_torch);
    else if (to_torch)
        memcpy(torch, engine, t->count * sizeof(float));
    else
        memcpy(engine, torch, t->count * sizeof(float));
}

void tensor_to_torch(const struct model_tensor *t, const float *engine, float *torch)
{
    tensors_convert(t, (float *)engine, torch, true);
}

void tensor_from_torch(const struct model_tensor *t, const float *torch, float *engine)
{
    tensors_convert(t, engine, (float *)torch, false);
}

void model_tensor_export(const struct model *m, size_t i, float *torch_layout)
{
    tensor_to_torch(&m->tensors[i], tensors_storage(m, i), torch_layout);
}

void model_tensor_import(struct model *m, size_t i, const float *torch_layout)
{
    tensor_from_torch(&m->tensors[i], torch_layout, tensors_storage(m, i));
}
