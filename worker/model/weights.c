#include "worker/model/weights.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "worker/model/internal.h"

enum { NAMED_AT_MOST = 10, NAME_BYTES = 96 };

/* What a file is to hold: the model's tensors and torch's counters, or buffers of their layout. */
struct listing {
    const struct model *m;
    const struct model_buffer *buffers; /* NULL: the model's own */
    struct safetensors_tensor *tensors;
    char (*names)[NAME_BYTES];
    size_t *sources; /* index of the model's tensor, or SIZE_MAX for a counter */
    size_t count;
};

static void list_tensor(struct listing *l, const char *name, enum safetensors_dtype dtype,
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

static void free_listing(struct listing *l)
{
    free(l->tensors);
    free(l->names);
    free(l->sources);
}

/* buffers: how many there are at most; 0: the model's own. */
static int allocate_listing(struct listing *l, const struct model *m, size_t buffers,
                            struct error *e)
{
    size_t most = buffers ? buffers * m->trainable_count : m->tensor_count + (size_t)m->unit_count;
    *l = (struct listing){.m = m, .tensors = calloc(most, sizeof *l->tensors)};
    l->names = calloc(most, sizeof *l->names);
    l->sources = calloc(most, sizeof *l->sources);
    if (l->tensors && l->names && l->sources)
        return 0;
    free_listing(l);
    return error_set(e, ERR_NO_MEMORY, "no memory to list a model's tensors");
}

static void list_model(struct listing *l)
{
    const struct model *m = l->m;
    char name[NAME_BYTES];

    for (size_t i = 0; i < m->tensor_count; i++)
        list_tensor(l, m->tensors[i].name, SAFETENSORS_F32, &m->tensors[i], i);
    for (int i = 0; i < m->unit_count; i++) {
        snprintf(name, sizeof name, "%s.num_batches_tracked", m->units[i].bn_name);
        list_tensor(l, name, SAFETENSORS_I64, NULL, SIZE_MAX);
    }
}

/* Buffer after buffer is listed, each with all trainable tensors. */
static float *buffer_of(const struct listing *l, size_t i)
{
    return l->buffers[i / l->m->trainable_count].data + l->m->tensors[l->sources[i]].offset;
}

static void fill_tensor(size_t i, void *data, void *context)
{
    const struct listing *l = context;
    if (l->sources[i] == SIZE_MAX)
        memset(data, 0, sizeof(int64_t));
    else if (l->buffers)
        tensor_to_torch(&l->m->tensors[l->sources[i]], buffer_of(l, i), data);
    else
        model_tensor_export(l->m, l->sources[i], data);
}

int model_save(const struct model *m, const char *path, const struct safetensors_meta *meta,
               size_t meta_count, struct error *e)
{
    struct listing l;
    int status = allocate_listing(&l, m, 0, e);
    if (status)
        return status;
    list_model(&l);
    status = safetensors_write(path, l.tensors, l.count, meta, meta_count, fill_tensor, &l, e);
    free_listing(&l);
    return status;
}

static void list_buffers(struct listing *l, const struct model_buffer *buffers, size_t count)
{
    const struct model *m = l->m;
    char name[NAME_BYTES];

    l->buffers = buffers;
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < m->trainable_count; i++) {
            snprintf(name, sizeof name, "%.16s%s%s", buffers[k].name, *buffers[k].name ? "." : "",
                     m->tensors[i].name);
            list_tensor(l, name, SAFETENSORS_F32, &m->tensors[i], i);
        }
}

int model_save_buffers(const struct model *m, const struct model_buffer *buffers, size_t count,
                       const char *path, const struct safetensors_meta *meta, size_t meta_count,
                       struct error *e)
{
    struct listing l;
    int status = allocate_listing(&l, m, count, e);
    if (status)
        return status;
    list_buffers(&l, buffers, count);
    status = safetensors_write(path, l.tensors, l.count, meta, meta_count, fill_tensor, &l, e);
    free_listing(&l);
    return status;
}

/* ---- loading */

/* Words about what does not fit, as long as there is room. */
struct complaint {
    char text[1600];
    int count;
};

static void __attribute__((format(printf, 2, 3)))
complain(struct complaint *c, const char *format, ...)
{
    size_t used = strlen(c->text);
    va_list args;

    if (c->count++ >= NAMED_AT_MOST)
        return;
    if (used && used + 3 < sizeof c->text)
        used += (size_t)snprintf(c->text + used, sizeof c->text - used, "; ");
    va_start(args, format);
    vsnprintf(c->text + used, sizeof c->text - used, format, args);
    va_end(args);
}

static const char *shape_text(const struct safetensors_tensor *t, char text[96])
{
    size_t used = 1;
    text[0] = '(';
    text[1] = '\0';
    for (int i = 0; i < t->dims && used < 80; i++)
        used += (size_t)snprintf(text + used, 96 - used, "%s%lld", i ? ", " : "",
                                 (long long)t->shape[i]);
    snprintf(text + used, 96 - used, ")");
    return text;
}

static bool same_shape(const struct safetensors_tensor *a, const struct safetensors_tensor *b)
{
    return a->dims == b->dims && !memcmp(a->shape, b->shape, (size_t)a->dims * sizeof a->shape[0]);
}

static void check_tensor(const struct safetensors *file, const struct safetensors_tensor *want,
                         struct complaint *c)
{
    const struct safetensors_tensor *have = safetensors_find(file, want->name);
    char there[96], here[96];

    if (!have) {
        if (want->dtype == SAFETENSORS_F32)
            complain(c, "%s is missing", want->name);
    } else if (have->dtype != want->dtype) {
        complain(c, "%s has the wrong dtype", want->name);
    } else if (!same_shape(have, want) && !strncmp(want->name, "fc.", 3) &&
               have->dims == want->dims) {
        complain(c, "%s is for %lld classes, the job has %lld (set model.classes to %lld)",
                 want->name, (long long)have->shape[0], (long long)want->shape[0],
                 (long long)have->shape[0]);
    } else if (!same_shape(have, want)) {
        complain(c, "%s has shape %s instead of %s", want->name, shape_text(have, there),
                 shape_text(want, here));
    }
}

static bool is_listed(const struct listing *l, const char *name)
{
    for (size_t i = 0; i < l->count; i++)
        if (!strcmp(l->names[i], name))
            return true;
    return false;
}

static int check_file(const struct listing *l, const struct safetensors *file, const char *path,
                      struct error *e)
{
    struct complaint c = {{0}, 0};

    for (size_t i = 0; i < l->count; i++)
        check_tensor(file, &l->tensors[i], &c);
    for (size_t i = 0; i < safetensors_tensors(file); i++)
        if (!is_listed(l, safetensors_at(file, i)->name))
            complain(&c, "%.100s is not part of this model", safetensors_at(file, i)->name);
    if (!c.count)
        return 0;
    if (c.count > NAMED_AT_MOST)
        return error_set(e, ERR_INVALID, "the weights of %s do not fit %s: %s; and %d more", path,
                         l->m->config.arch->name, c.text, c.count - NAMED_AT_MOST);
    return error_set(e, ERR_INVALID, "the weights of %s do not fit %s: %s", path,
                     l->m->config.arch->name, c.text);
}

/* Reads everything before the model is touched. */
static int read_tensors(const struct listing *l, struct safetensors *file, float **data,
                        struct error *e)
{
    for (size_t i = 0; i < l->m->tensor_count; i++) {
        data[i] = malloc(l->m->tensors[i].count * sizeof(float));
        if (!data[i])
            return error_set(e, ERR_NO_MEMORY, "no memory to read weights");
        int status = safetensors_read(file, safetensors_find(file, l->names[i]), data[i], e);
        if (status)
            return status;
    }
    return 0;
}

static int import_file(struct model *m, const struct listing *l, struct safetensors *file,
                       struct error *e)
{
    float **data = calloc(m->tensor_count, sizeof *data);
    if (!data)
        return error_set(e, ERR_NO_MEMORY, "no memory to read weights");
    int status = read_tensors(l, file, data, e);
    for (size_t i = 0; i < m->tensor_count; i++) {
        if (!status)
            model_tensor_import(m, i, data[i]);
        free(data[i]);
    }
    free(data);
    if (!status)
        model_params_changed(m);
    return status;
}

int model_load(struct model *m, const char *path, struct error *e)
{
    int fd = file_open(path, e);
    return fd < 0 ? fd : model_load_fd(m, fd, path, e);
}

int model_load_fd(struct model *m, int fd, const char *path, struct error *e)
{
    struct safetensors *file;
    struct listing l;
    int status = safetensors_open_fd(fd, path, &file, e);

    if (status)
        return status;
    status = allocate_listing(&l, m, 0, e);
    if (!status) {
        list_model(&l);
        status = check_file(&l, file, path, e);
        if (!status)
            status = import_file(m, &l, file, e);
        free_listing(&l);
    }
    safetensors_close(file);
    return status;
}

static int import_buffers(const struct listing *l, struct safetensors *file, struct error *e)
{
    int status = 0;

    for (size_t i = 0; i < l->count && !status; i++) {
        const struct model_tensor *t = &l->m->tensors[l->sources[i]];
        float *data = malloc(t->count * sizeof *data);
        if (!data)
            return error_set(e, ERR_NO_MEMORY, "no memory to read %s", l->names[i]);
        status = safetensors_read(file, safetensors_find(file, l->names[i]), data, e);
        if (!status)
            tensor_from_torch(t, data, buffer_of(l, i));
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
    status = allocate_listing(&l, m, count, e);
    if (!status) {
        list_buffers(&l, buffers, count);
        status = check_file(&l, file, path, e);
        if (!status)
            status = import_buffers(&l, file, e);
        free_listing(&l);
    }
    safetensors_close(file);
    return status;
}
