#include "worker/model/weights.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert_always.h"
#include "common/run/weights.h"
#include "common/xalloc.h"
#include "worker/model/cnn.h"
#include "worker/model/units.h"
#include "worker/team/parallel.h"

/* ---- the table of tensors */

/* Offsets are multiples of 16 floats. */
static size_t weights_align(size_t floats)
{
    return (floats + 15) & ~(size_t)15;
}

static size_t weights_add(struct model *m, enum model_tensor_kind kind, const char *prefix,
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
    *end += weights_align(t->count);
    return t->offset;
}

static void weights_lay_out_unit(struct model *m, struct unit *u)
{
    const struct window *w = &u->conv.window;
    int64_t channels[4] = {u->conv.out_channels};
    int64_t shape[4] = {u->conv.out_channels, w->channels / u->conv.groups, w->kernel, w->kernel};

    u->weight = weights_add(m, MODEL_CONV_WEIGHT, u->name, "weight", shape, &m->param_count);
    if (!*u->bn_name) {
        u->beta = weights_add(m, MODEL_CONV_BIAS, u->name, "bias", channels, &m->param_count);
        u->grads_end = m->param_count;
        return;
    }
    u->gamma = weights_add(m, MODEL_BN_GAMMA, u->bn_name, "weight", channels, &m->param_count);
    u->beta = weights_add(m, MODEL_BN_BETA, u->bn_name, "bias", channels, &m->param_count);
    u->grads_end = m->param_count;
}

static void weights_lay_out_linear(struct model *m, const struct arch_linear *l, bool classifies)
{
    int64_t shape[4] = {l->out, l->in}, outputs[4] = {l->out};
    size_t weight = weights_add(m, MODEL_FC_WEIGHT, l->name, "weight", shape, &m->param_count);

    m->tensors[m->tensor_count - 1].pixels = l->pixels;
    size_t bias = weights_add(m, MODEL_FC_BIAS, l->name, "bias", outputs, &m->param_count);
    if (classifies) {
        m->fc_weight = weight;
        m->fc_bias = bias;
    } else {
        cnn_lay_out_tensors(m, weight, bias);
    }
}

void weights_lay_out(struct model *m)
{
    struct arch_shape shape = model_shape(&m->config);
    struct arch_linear linears[ARCH_LINEARS];
    int count = arch_linears(&shape, linears);

    /* a test's shape may have other stages than the table's networks */
    linears[count - 1].in = m->features;
    m->tensors = xcalloc((size_t)m->unit_count * 5 + 2 * ARCH_LINEARS, sizeof *m->tensors);
    for (int i = 0; i < m->unit_count; i++)
        weights_lay_out_unit(m, &m->layout->units[i]);
    for (int i = 0; i < count; i++)
        weights_lay_out_linear(m, &linears[i], i == count - 1);
    m->trainable_count = m->tensor_count;
    while (arch_is_frozen(&shape, m->tensors[m->frozen_tensors].name))
        m->frozen_tensors++;
    m->first_trained = m->tensors[m->frozen_tensors].offset;
    for (int i = 0; i < m->unit_count; i++) {
        struct unit *u = &m->layout->units[i];
        if (!*u->bn_name)
            continue;
        int64_t channels[4] = {u->conv.out_channels};
        u->mean =
            weights_add(m, MODEL_BN_MEAN, u->bn_name, "running_mean", channels, &m->stat_count);
        u->var = weights_add(m, MODEL_BN_VAR, u->bn_name, "running_var", channels, &m->stat_count);
    }
}

size_t model_tensor_count(const struct model *m)
{
    return m->tensor_count;
}

const struct model_tensor *model_tensor(const struct model *m, size_t i)
{
    return &m->tensors[i];
}

static float *weights_storage(const struct model *m, size_t i)
{
    return (i < m->trainable_count ? m->params : m->stats) + m->tensors[i].offset;
}

/* A tile of torch's (O, I, taps), copied through a buffer because rows a power of two apart
 * conflict in the cache */
enum { TILE_O = 64, TILE_WEIGHTS = 32 };

struct weights_tile {
    size_t o, i, taps;
    size_t row, rows, weight, weights; /* weight: (b, k) of a row */
};

static void weights_reorder_tile(const struct weights_tile *t, float *engine, float *torch,
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

static void weights_reorder(size_t o, size_t i, size_t taps, float *engine, float *torch,
                            bool to_torch)
{
    struct weights_tile t = {.o = o, .i = i, .taps = taps};

    for (t.row = 0; t.row < o; t.row += t.rows) {
        t.rows = size_min(o - t.row, TILE_O);
        for (t.weight = 0; t.weight < i * taps; t.weight += t.weights) {
            t.weights = size_min(i * taps - t.weight, TILE_WEIGHTS);
            weights_reorder_tile(&t, engine, torch, to_torch);
        }
    }
}

static void weights_convert(const struct model_tensor *t, float *engine, float *torch,
                            bool to_torch)
{
    size_t o = (size_t)t->shape[0], pixels = (size_t)t->pixels;

    if (t->kind == MODEL_CONV_WEIGHT)
        weights_reorder(o, (size_t)t->shape[1], (size_t)(t->shape[2] * t->shape[3]), engine, torch,
                        to_torch);
    else if (t->pixels > 1) /* after a flattening: (O, I, pixels) and (O, pixels, I) */
        for (size_t a = 0, size = t->count / o; a < o; a++)
            weights_reorder(size / pixels, 1, pixels, engine + a * size, torch + a * size,
                            to_torch);
    else if (to_torch)
        memcpy(torch, engine, t->count * sizeof(float));
    else
        memcpy(engine, torch, t->count * sizeof(float));
}

static void weights_to_torch(const struct model_tensor *t, const float *engine, float *torch)
{
    weights_convert(t, (float *)engine, torch, true);
}

static void weights_from_torch(const struct model_tensor *t, const float *torch, float *engine)
{
    weights_convert(t, engine, (float *)torch, false);
}

void model_tensor_export(const struct model *m, size_t i, float *torch_layout)
{
    weights_to_torch(&m->tensors[i], weights_storage(m, i), torch_layout);
}

void model_tensor_import(struct model *m, size_t i, const float *torch_layout)
{
    weights_from_torch(&m->tensors[i], torch_layout, weights_storage(m, i));
}

/* ---- files */

enum { NAME_BYTES = 96 };

/* Contents of a file: the model's tensors and torch's counters, or buffers of their layout */
struct listing {
    const struct model *m;
    const struct model_buffer *buffers; /* NULL: the model's own */
    struct safetensors_tensor *tensors;
    char (*names)[NAME_BYTES];
    size_t *sources; /* index of the model's tensor, or SIZE_MAX for a counter */
    size_t count;
};

static void weights_list_one(struct listing *l, const char *name, enum safetensors_dtype dtype,
                             const struct model_tensor *t, size_t source)
{
    struct safetensors_tensor *to = &l->tensors[l->count];
    snprintf(l->names[l->count], NAME_BYTES, "%s", name);
    *to = (struct safetensors_tensor){.name = l->names[l->count], .dtype = dtype};
    if (t) {
        to->dims = t->dims;
        memcpy(to->shape, t->shape, sizeof t->shape);
    }
    l->sources[l->count++] = source;
}

static void weights_free_listing(struct listing *l)
{
    free(l->tensors);
    free(l->names);
    free(l->sources);
}

static void weights_allocate_listing(struct listing *l, const struct model *m, size_t max)
{
    *l = (struct listing){.m = m, .tensors = xcalloc(max, sizeof *l->tensors)};
    l->names = xcalloc(max, sizeof *l->names);
    l->sources = xcalloc(max, sizeof *l->sources);
}

static void weights_list_model(struct listing *l, const struct model *m)
{
    char name[NAME_BYTES];

    weights_allocate_listing(l, m, m->tensor_count + (size_t)m->unit_count);
    for (size_t i = 0; i < m->tensor_count; i++)
        weights_list_one(l, m->tensors[i].name, SAFETENSORS_F32, &m->tensors[i], i);
    for (int i = 0; i < m->unit_count && !m->cnn; i++) {
        snprintf(name, sizeof name, "%s.num_batches_tracked", m->layout->units[i].bn_name);
        weights_list_one(l, name, SAFETENSORS_I64, NULL, SIZE_MAX);
    }
}

static float *weights_buffer_of(const struct listing *l, size_t i)
{
    return l->buffers[i / (l->m->trainable_count - l->m->frozen_tensors)].data +
           l->m->tensors[l->sources[i]].offset;
}

static void weights_fill_tensor(size_t i, void *data, void *context)
{
    const struct listing *l = context;
    if (l->sources[i] == SIZE_MAX)
        memset(data, 0, sizeof(int64_t));
    else if (l->buffers)
        weights_to_torch(&l->m->tensors[l->sources[i]], weights_buffer_of(l, i), data);
    else
        model_tensor_export(l->m, l->sources[i], data);
}

int model_save(const struct model *m, const char *path, const struct safetensors_meta *meta,
               size_t meta_count, struct error *e)
{
    struct listing l;

    assert_object(m, MODEL_MAGIC);
    weights_list_model(&l, m);
    int status =
        safetensors_write(path, l.tensors, l.count, meta, meta_count, weights_fill_tensor, &l, e);
    weights_free_listing(&l);
    return status;
}

static void weights_list_buffers(struct listing *l, const struct model *m,
                                 const struct model_buffer *buffers, size_t count)
{
    char name[NAME_BYTES];

    weights_allocate_listing(l, m, count * m->trainable_count);
    l->buffers = buffers;
    for (size_t k = 0; k < count; k++)
        for (size_t i = m->frozen_tensors; i < m->trainable_count; i++) {
            snprintf(name, sizeof name, "%.16s%s%s", buffers[k].name, *buffers[k].name ? "." : "",
                     m->tensors[i].name);
            weights_list_one(l, name, SAFETENSORS_F32, &m->tensors[i], i);
        }
}

int model_save_buffers(const struct model *m, const struct model_buffer *buffers, size_t count,
                       const char *path, const struct safetensors_meta *meta, size_t meta_count,
                       struct error *e)
{
    struct listing l;

    assert_object(m, MODEL_MAGIC);
    weights_list_buffers(&l, m, buffers, count);
    int status =
        safetensors_write(path, l.tensors, l.count, meta, meta_count, weights_fill_tensor, &l, e);
    weights_free_listing(&l);
    return status;
}

/* ---- loading */

static bool weights_is_classifier(const struct model *m, size_t i)
{
    return i < m->trainable_count && m->tensors[i].offset >= m->fc_weight;
}

/* Reads everything before changing the model. */
static int weights_read_tensors(const struct listing *l, struct safetensors *file, bool classifier,
                                float **data, struct error *e)
{
    for (size_t i = 0; i < l->m->tensor_count; i++) {
        if (!classifier && weights_is_classifier(l->m, i))
            continue;
        data[i] = malloc(l->m->tensors[i].count * sizeof(float));
        if (!data[i])
            return error_set(e, ERR_NO_MEMORY, "no memory to read weights");
        int status = safetensors_read_floats(file, safetensors_find(file, l->names[i]), data[i], e);
        if (status)
            return status;
    }
    return 0;
}

static int weights_import_file(struct model *m, const struct listing *l, struct safetensors *file,
                               bool classifier, struct error *e)
{
    float **data = xcalloc(m->tensor_count, sizeof *data);
    int status = weights_read_tensors(l, file, classifier, data, e);
    for (size_t i = 0; i < m->tensor_count; i++) {
        if (!status && data[i])
            model_tensor_import(m, i, data[i]);
        free(data[i]);
    }
    free(data);
    return status;
}

int model_load(struct model *m, const char *path, struct error *e)
{
    struct safetensors *file;
    int status = safetensors_open(path, &file, e);

    if (status)
        return status;
    status = model_load_file(m, file, path, NULL, e);
    safetensors_close(file);
    return status;
}

int model_load_file(struct model *m, struct safetensors *file, const char *path,
                    const char *classifier, struct error *e)
{
    struct listing l;

    assert_object(m, MODEL_MAGIC);
    weights_list_model(&l, m);
    int status = weights_compare(file, l.tensors, l.count, path, m->config.arch->name,
                                 m->config.blur_pool, classifier, NULL, e);
    if (!status)
        status = weights_import_file(m, &l, file, !classifier, e);
    weights_free_listing(&l);
    return status;
}

static int weights_import_buffers(const struct listing *l, struct safetensors *file,
                                  struct error *e)
{
    int status = 0;

    for (size_t i = 0; i < l->count && !status; i++) {
        const struct model_tensor *t = &l->m->tensors[l->sources[i]];
        float *data = malloc(t->count * sizeof *data);
        if (!data)
            return error_set(e, ERR_NO_MEMORY, "no memory to read %s", l->names[i]);
        status = safetensors_read_floats(file, safetensors_find(file, l->names[i]), data, e);
        if (!status)
            weights_from_torch(t, data, weights_buffer_of(l, i));
        free(data);
    }
    return status;
}

int model_load_buffers(const struct model *m, const struct model_buffer *buffers, size_t count,
                       const char *path, struct error *e)
{
    struct safetensors *file;
    struct listing l;
    int status = safetensors_open(path, &file, e);

    assert_object(m, MODEL_MAGIC);
    if (status)
        return status;
    weights_list_buffers(&l, m, buffers, count);
    status = weights_compare(file, l.tensors, l.count, path, m->config.arch->name,
                             m->config.blur_pool, NULL, NULL, e);
    if (!status)
        status = weights_import_buffers(&l, file, e);
    weights_free_listing(&l);
    safetensors_close(file);
    return status;
}
