#include "worker/model/weights.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/run/weights.h"
#include "worker/model/internal.h"

enum { NAME_BYTES = 96 };

/* What a file is to hold: the model's tensors and torch's counters, or buffers of their layout. */
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

/* buffers: how many there are at most; 0: the model's own. */
static int weights_allocate_listing(struct listing *l, const struct model *m, size_t buffers,
                                    struct error *e)
{
    size_t most = buffers ? buffers * m->trainable_count : m->tensor_count + (size_t)m->unit_count;
    *l = (struct listing){.m = m, .tensors = calloc(most, sizeof *l->tensors)};
    l->names = calloc(most, sizeof *l->names);
    l->sources = calloc(most, sizeof *l->sources);
    if (l->tensors && l->names && l->sources)
        return 0;
    weights_free_listing(l);
    return error_set(e, ERR_NO_MEMORY, "no memory to list a model's tensors");
}

static void weights_list_model(struct listing *l)
{
    const struct model *m = l->m;
    char name[NAME_BYTES];

    for (size_t i = 0; i < m->tensor_count; i++)
        weights_list_one(l, m->tensors[i].name, SAFETENSORS_F32, &m->tensors[i], i);
    for (int i = 0; i < m->unit_count && !m->cnn; i++) {
        snprintf(name, sizeof name, "%s.num_batches_tracked", m->layout->units[i].bn_name);
        weights_list_one(l, name, SAFETENSORS_I64, NULL, SIZE_MAX);
    }
}

/* Buffer after buffer is listed, each with all trainable tensors. */
static float *weights_buffer_of(const struct listing *l, size_t i)
{
    return l->buffers[i / l->m->trainable_count].data + l->m->tensors[l->sources[i]].offset;
}

static void weights_fill_tensor(size_t i, void *data, void *context)
{
    const struct listing *l = context;
    if (l->sources[i] == SIZE_MAX)
        memset(data, 0, sizeof(int64_t));
    else if (l->buffers)
        tensor_to_torch(&l->m->tensors[l->sources[i]], weights_buffer_of(l, i), data);
    else
        model_tensor_export(l->m, l->sources[i], data);
}

int model_save(const struct model *m, const char *path, const struct safetensors_meta *meta,
               size_t meta_count, struct error *e)
{
    struct listing l;
    int status = weights_allocate_listing(&l, m, 0, e);
    if (status)
        return status;
    weights_list_model(&l);
    status =
        safetensors_write(path, l.tensors, l.count, meta, meta_count, weights_fill_tensor, &l, e);
    weights_free_listing(&l);
    return status;
}

static void weights_list_buffers(struct listing *l, const struct model_buffer *buffers,
                                 size_t count)
{
    const struct model *m = l->m;
    char name[NAME_BYTES];

    l->buffers = buffers;
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < m->trainable_count; i++) {
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
    int status = weights_allocate_listing(&l, m, count, e);
    if (status)
        return status;
    weights_list_buffers(&l, buffers, count);
    status =
        safetensors_write(path, l.tensors, l.count, meta, meta_count, weights_fill_tensor, &l, e);
    weights_free_listing(&l);
    return status;
}

/* ---- loading */

/* Reads everything before the model is touched. */
static int weights_read_tensors(const struct listing *l, struct safetensors *file, float **data,
                                struct error *e)
{
    for (size_t i = 0; i < l->m->tensor_count; i++) {
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
                               struct error *e)
{
    float **data = calloc(m->tensor_count, sizeof *data);
    if (!data)
        return error_set(e, ERR_NO_MEMORY, "no memory to read weights");
    int status = weights_read_tensors(l, file, data, e);
    for (size_t i = 0; i < m->tensor_count; i++) {
        if (!status)
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
    status = model_load_file(m, file, path, e);
    safetensors_close(file);
    return status;
}

int model_load_file(struct model *m, struct safetensors *file, const char *path, struct error *e)
{
    struct listing l;
    int status = weights_allocate_listing(&l, m, 0, e);

    if (status)
        return status;
    weights_list_model(&l);
    status = weights_compare(file, l.tensors, l.count, path, l.m->config.arch->name, NULL, e);
    if (!status)
        status = weights_import_file(m, &l, file, e);
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
            tensor_from_torch(t, data, weights_buffer_of(l, i));
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

    if (status)
        return status;
    status = weights_allocate_listing(&l, m, count, e);
    if (!status) {
        weights_list_buffers(&l, buffers, count);
        status = weights_compare(file, l.tensors, l.count, path, l.m->config.arch->name, NULL, e);
        if (!status)
            status = weights_import_buffers(&l, file, e);
        weights_free_listing(&l);
    }
    safetensors_close(file);
    return status;
}
