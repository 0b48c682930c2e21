#include "common/run/onnx.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert_always.h"
#include "common/buffer.h"
#include "common/job/job_options.h"
#include "common/net/network.h"
#include "common/run/weights.h"
#include "common/xalloc.h"
#include "config.h"

enum { IR_VERSION = 7, OPSET = 13 };
enum { PARTS_MOST = 4, NAME_BYTES = 80 };

/* Field numbers of onnx/onnx.proto (https://github.com/onnx/onnx) */
enum { MODEL_IR = 1, MODEL_PRODUCER, MODEL_PRODUCER_VERSION, MODEL_GRAPH = 7, MODEL_OPSET };
enum { MODEL_PROPERTY = 14, OPSET_VERSION = 2, PROPERTY_KEY = 1, PROPERTY_VALUE };
enum { GRAPH_NODE = 1, GRAPH_NAME, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT };
enum { NODE_INPUT = 1, NODE_OUTPUT, NODE_NAME, NODE_OP, NODE_ATTRIBUTE };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_F, ATTRIBUTE_I, ATTRIBUTE_INTS = 8, ATTRIBUTE_TYPE = 20 };
enum { TENSOR_DIMS = 1, TENSOR_TYPE, TENSOR_NAME = 8, TENSOR_RAW_DATA };
enum { VALUE_NAME = 1, VALUE_TYPE, TYPE_TENSOR = 1, TENSOR_TYPE_ELEMENT = 1, TENSOR_TYPE_SHAPE };
enum { SHAPE_DIMENSION = 1, DIMENSION_VALUE = 1, DIMENSION_PARAM };

enum { TYPE_FLOAT = 1, TYPE_INT, TYPE_INTS = 7 }; /* of an attribute; FLOAT of a tensor, too */
enum { WIRE_VARINT, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* ---- wire format (https://protobuf.dev/programming-guides/encoding) */

static void onnx_put_varint(FILE *out, uint64_t v)
{
    for (; v >= 128; v >>= 7)
        putc((int)(v & 127) | 128, out);
    putc((int)v, out);
}

static void onnx_put_number(FILE *out, int field, int64_t v)
{
    onnx_put_varint(out, (uint64_t)field << 3 | WIRE_VARINT);
    onnx_put_varint(out, (uint64_t)v);
}

/* What precedes a text, a message or a list of numbers. */
static void onnx_put_head(FILE *out, int field, size_t bytes)
{
    onnx_put_varint(out, (uint64_t)field << 3 | WIRE_BYTES);
    onnx_put_varint(out, bytes);
}

static void onnx_put_text(FILE *out, int field, const char *text)
{
    onnx_put_head(out, field, strlen(text));
    fputs(text, out);
}

/* A message in memory, as its length precedes it. */
struct message {
    FILE *out;
    char *data;
    size_t bytes;
};

static FILE *onnx_open(struct message *m)
{
    return m->out = must_alloc(open_memstream(&m->data, &m->bytes));
}

/* Adds it as a field; the caller adds the rest of its bytes. */
static void onnx_close(struct message *m, FILE *out, int field, size_t rest)
{
    fclose(m->out);
    onnx_put_head(out, field, m->bytes + rest);
    fwrite(m->data, 1, m->bytes, out);
    free(m->data);
}

static void onnx_put_numbers(FILE *out, int field, const int64_t *v, int count)
{
    struct message list;

    onnx_open(&list);
    for (int i = 0; i < count; i++)
        onnx_put_varint(list.out, (uint64_t)v[i]);
    onnx_close(&list, out, field, 0);
}

/* ---- nodes and their weights */

struct initializer {
    const struct safetensors_tensor *stored; /* NULL: the filters of a blur */
    size_t floats, head_end;                 /* where its values are in graph.heads */
};

struct graph {
    const struct arch_shape *shape;
    struct safetensors *weights;
    struct message nodes; /* the fields of the graph but for the initializers */
    struct message heads; /* the initializers without their values */
    struct initializer *initializers;
    size_t count, capacity, floats, largest;
    const char *used[PARTS_MOST + 1];
    char last[NAME_BYTES]; /* value that the next node reads */
};

struct attribute {
    const char *name; /* NULL: end */
    int type, count;  /* count of TYPE_INTS */
    float f;
    int64_t i[4];
};

static void onnx_put_attribute(FILE *out, const struct attribute *a)
{
    struct message m;

    onnx_put_text(onnx_open(&m), ATTRIBUTE_NAME, a->name);
    if (a->type == TYPE_FLOAT) {
        onnx_put_varint(m.out, ATTRIBUTE_F << 3 | WIRE_FIXED32);
        fwrite(&a->f, sizeof a->f, 1, m.out);
    } else if (a->type == TYPE_INT) {
        onnx_put_number(m.out, ATTRIBUTE_I, a->i[0]);
    } else {
        onnx_put_numbers(m.out, ATTRIBUTE_INTS, a->i, a->count);
    }
    onnx_put_number(m.out, ATTRIBUTE_TYPE, a->type);
    onnx_close(&m, out, NODE_ATTRIBUTE, 0);
}

/* Adds a node that reads the last value and `more` (up to a NULL; may be NULL), and writes the
 * value NAME and SUFFIX, which becomes the last one. */
static void onnx_add_node(struct graph *g, const char *op, const char *name, const char *suffix,
                          const char *const *more, const struct attribute *attributes)
{
    struct message m;

    onnx_open(&m);
    onnx_put_text(m.out, NODE_INPUT, g->last);
    while (more && *more)
        onnx_put_text(m.out, NODE_INPUT, *more++);
    snprintf(g->last, sizeof g->last, "%s%s", name, suffix);
    onnx_put_text(m.out, NODE_OUTPUT, g->last);
    onnx_put_text(m.out, NODE_NAME, g->last);
    onnx_put_text(m.out, NODE_OP, op);
    for (; attributes && attributes->name; attributes++)
        onnx_put_attribute(m.out, attributes);
    onnx_close(&m, g->nodes.out, GRAPH_NODE, 0);
}

/* For nodes with a window: convolutions and, with groups 0, max-pooling. */
static void onnx_add_window(struct graph *g, const char *op, const char *name, const char *suffix,
                            const char *const *more, int kernel, int stride, int padding,
                            int groups)
{
    onnx_add_node(g, op, name, suffix, more,
                  (const struct attribute[]){
                      {"kernel_shape",    TYPE_INTS, 2, 0, {kernel, kernel}},
                      {"strides",                TYPE_INTS, 2, 0, {stride, stride}},
                      {"pads", TYPE_INTS, 4, 0, {padding, padding, padding, padding}},
                      {groups ? "group" : NULL,         TYPE_INT, 1, 0, {groups}},
                      {0               }
    });
}

static void onnx_add_initializer(struct graph *g, const char *name, int dims, const int64_t *shape,
                                 const struct safetensors_tensor *stored)
{
    struct initializer new = {stored, 1, 0};
    struct message m;

    for (int i = 0; i < dims; i++)
        new.floats *= (size_t)shape[i];
    onnx_open(&m);
    onnx_put_numbers(m.out, TENSOR_DIMS, shape, dims);
    onnx_put_number(m.out, TENSOR_TYPE, TYPE_FLOAT);
    onnx_put_text(m.out, TENSOR_NAME, name);
    onnx_put_head(m.out, TENSOR_RAW_DATA, new.floats * sizeof(float));
    onnx_close(&m, g->heads.out, GRAPH_INITIALIZER, new.floats * sizeof(float));
    new.head_end = (size_t)ftell(g->heads.out);
    g->floats += new.floats;
    g->largest = new.floats > g->largest ? new.floats : g->largest;
    if (!arrays_grow((const struct array[]){ARRAY(g->initializers)}, 1, g->count, &g->capacity))
        must_alloc(NULL);
    g->initializers[g->count++] = new;
}

/* Adds the first so many tensors of a layer and returns their names, for onnx_add_node. */
static const char *const *onnx_use(struct graph *g, const char *layer, int count)
{
    static const char *const parts[] = {"weight", "bias", "running_mean", "running_var"};
    char name[NAME_BYTES];

    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s.%s", layer, parts[i]);
        const struct safetensors_tensor *t = safetensors_find(g->weights, name);
        assert_always(t); /* weights_check_network */
        onnx_add_initializer(g, t->name, t->dims, t->shape, t);
        g->used[i] = t->name;
    }
    g->used[count] = NULL;
    return g->used;
}

/* The low-pass filter of model.blur_pool: one for each channel. */
static void onnx_add_blur(struct graph *g, const char *before, int channels, int stride)
{
    char weight[NAME_BYTES];
    size_t i = 0;

    snprintf(weight, sizeof weight, "blur%d", channels);
    while (i < g->count &&
           (g->initializers[i].stored || g->initializers[i].floats != 9 * (size_t)channels))
        i++;
    if (i == g->count)
        onnx_add_initializer(g, weight, 4, (const int64_t[]){channels, 1, 3, 3}, NULL);
    onnx_add_window(g, "Conv", before, ".blur", (const char *const[]){weight, NULL}, 3, stride, 1,
                    channels);
}

/* ---- layers */

static void onnx_add_conv(struct graph *g, const struct arch_conv *c)
{
    bool normalized = *c->bn_name;

    if (c->blur_size)
        onnx_add_blur(g, c->name, c->in_channels, c->blur_stride);
    onnx_add_window(g, "Conv", c->name, "", onnx_use(g, c->name, normalized ? 1 : 2), c->kernel,
                    c->stride, c->padding, c->groups);
    if (normalized)
        onnx_add_node(g, "BatchNormalization", c->bn_name, "", onnx_use(g, c->bn_name, 4),
                      (const struct attribute[]){
                          {"epsilon", TYPE_FLOAT, 0, ARCH_BATCHNORM_EPSILON, {0}},
                          {0       }
        });
}

static void onnx_add_relu(struct graph *g, const char *of)
{
    onnx_add_node(g, "Relu", of, ".relu", NULL, NULL);
}

static void onnx_add_block(struct graph *g, const struct network *n, const struct network_block *b)
{
    const struct arch_conv *last = &n->convs[network_block_last(b)];
    char input[NAME_BYTES], block[NAME_BYTES];
    const char *shortcut = input;

    strcpy(input, g->last);
    for (const struct arch_conv *c = &n->convs[b->first]; c <= last; c++) {
        onnx_add_conv(g, c);
        if (c < last)
            onnx_add_relu(g, c->name);
    }
    if (b->downsample >= 0) {
        strcpy(g->last, input);
        onnx_add_conv(g, &n->convs[b->downsample]);
        shortcut = n->convs[b->downsample].bn_name;
        strcpy(g->last, last->bn_name);
    }
    snprintf(block, sizeof block, "%.*s", (int)(strrchr(last->name, '.') - last->name), last->name);
    onnx_add_node(g, "Add", block, ".add", (const char *const[]){shortcut, NULL}, NULL);
    onnx_add_relu(g, block);
}

static void onnx_add_residual(struct graph *g)
{
    struct network *n = xmalloc(sizeof *n);

    network_make(g->shape, n);
    onnx_add_conv(g, &n->convs[0]);
    onnx_add_node(g, "Relu", "relu", "", NULL, NULL);
    if (n->pools)
        onnx_add_window(g, "MaxPool", "maxpool", "", NULL, 3, n->blurs ? 1 : 2, 1, 0);
    if (n->blurs)
        onnx_add_blur(g, "maxpool", n->convs[0].out_channels, 2);
    for (int i = 0; i < n->block_count; i++)
        onnx_add_block(g, n, &n->blocks[i]);
    onnx_add_node(g, "GlobalAveragePool", "avgpool", "", NULL, NULL);
    free(n);
}

static void onnx_add_cnn_conv(const struct arch_conv *c, void *context)
{
    onnx_add_conv(context, c);
    onnx_add_relu(context, c->name);
    onnx_add_window(context, "MaxPool", c->name, ".pool", NULL, ARCH_CNN_POOL, ARCH_CNN_POOL, 0, 0);
}

static void onnx_add_linears(struct graph *g)
{
    struct arch_linear linears[ARCH_LINEARS];
    int count = arch_linears(g->shape, linears);

    onnx_add_node(g, "Flatten", "flatten", "", NULL, NULL);
    for (int i = 0; i < count; i++) {
        const char *name = linears[i].name;
        onnx_add_node(g, "Gemm", i < count - 1 ? name : "output", "", onnx_use(g, name, 2),
                      (const struct attribute[]){
                          {"transB", TYPE_INT, 1, 0, {1}},
                          {0      }
        });
        if (i < count - 1)
            onnx_add_relu(g, name);
    }
}

/* The first size is the batch, which is free. */
static void onnx_add_value(struct graph *g, int field, const char *name, int dims,
                           const int64_t *sizes)
{
    struct message value, type, tensor, shape, size;

    onnx_open(&shape);
    for (int i = 0; i < dims; i++) {
        onnx_open(&size);
        if (i == 0)
            onnx_put_text(size.out, DIMENSION_PARAM, "batch");
        else
            onnx_put_number(size.out, DIMENSION_VALUE, sizes[i]);
        onnx_close(&size, shape.out, SHAPE_DIMENSION, 0);
    }
    onnx_put_number(onnx_open(&tensor), TENSOR_TYPE_ELEMENT, TYPE_FLOAT);
    onnx_close(&shape, tensor.out, TENSOR_TYPE_SHAPE, 0);
    onnx_close(&tensor, onnx_open(&type), TYPE_TENSOR, 0);
    onnx_put_text(onnx_open(&value), VALUE_NAME, name);
    onnx_close(&type, value.out, VALUE_TYPE, 0);
    onnx_close(&value, g->nodes.out, field, 0);
}

static void onnx_build(struct graph *g)
{
    int64_t size = g->shape->image_size, channels = arch_image_channels(g->shape->arch);

    onnx_open(&g->heads);
    onnx_put_text(onnx_open(&g->nodes), GRAPH_NAME, g->shape->arch->name);
    onnx_add_value(g, GRAPH_INPUT, "input", 4, (int64_t[]){0, channels, size, size});
    onnx_add_value(g, GRAPH_OUTPUT, "output", 2, (int64_t[]){0, g->shape->classes});
    strcpy(g->last, "input");
    if (g->shape->arch->family == ARCH_CNN)
        arch_each_conv(g->shape, onnx_add_cnn_conv, g);
    else
        onnx_add_residual(g);
    onnx_add_linears(g);
    fclose(g->nodes.out);
    fclose(g->heads.out);
}

/* ---- the file */

static int onnx_put_graph(const struct graph *g, FILE *out, struct error *e)
{
    static const float taps[3] = {.25f, .5f, .25f};
    size_t bytes = g->nodes.bytes + g->heads.bytes + g->floats * sizeof(float), at = 0;
    float *data = malloc(g->largest * sizeof *data);
    int status = 0;

    if (!data)
        return error_set(e, ERR_NO_MEMORY, "out of memory for the weights");
    if (bytes > INT32_MAX - 65536) /* these: more than the facts */
        status = error_set(e, ERR_UNSUPPORTED,
                           "a model of %zu bytes is too large for ONNX, which allows 2 GB", bytes);
    onnx_put_head(out, MODEL_GRAPH, bytes);
    fwrite(g->nodes.data, 1, g->nodes.bytes, out);
    for (size_t i = 0; i < g->count && !status; i++) {
        const struct initializer *w = &g->initializers[i];
        fwrite(g->heads.data + at, 1, w->head_end - at, out);
        at = w->head_end;
        if (w->stored)
            status = safetensors_read_floats(g->weights, w->stored, data, e);
        for (size_t k = 0; !w->stored && k < w->floats; k++)
            data[k] = taps[k % 3] * taps[k / 3 % 3];
        fwrite(data, sizeof *data, w->floats, out);
    }
    free(data);
    return status;
}

/* How a pixel x from 0 to 255 becomes a value of the input. */
static const char *onnx_pixels(enum job_preprocess preprocess, char text[128])
{
    const struct job_pixels *p = job_pixels_of(preprocess);
    const float *m = p->mean, *d = p->deviation;
    bool shifts = m[0] != 0, divides = d[0] != 1;
    int used = snprintf(text, 128, "%sx%s", divides ? "(" : "", p->range != 1 ? " / 255" : "");

    if (shifts)
        used += snprintf(text + used, 128 - (size_t)used, " - (%g, %g, %g)", m[0], m[1], m[2]);
    if (divides)
        snprintf(text + used, 128 - (size_t)used, ") / (%g, %g, %g)", d[0], d[1], d[2]);
    return text;
}

static void __attribute__((format(printf, 3, 4)))
onnx_put_fact(FILE *out, const char *key, const char *format, ...)
{
    char value[128];
    struct message m;
    va_list args;

    va_start(args, format);
    vsnprintf(value, sizeof value, format, args);
    va_end(args);
    onnx_put_text(onnx_open(&m), PROPERTY_KEY, key);
    onnx_put_text(m.out, PROPERTY_VALUE, value);
    onnx_close(&m, out, MODEL_PROPERTY, 0);
}

static void onnx_put_facts(FILE *out, const struct job_spec *spec, int64_t job, const char *step)
{
    const struct job_option *preprocess = job_option_find("/data/preprocess");
    char pixels[128];
    struct message m;

    onnx_put_number(out, MODEL_IR, IR_VERSION);
    onnx_put_text(out, MODEL_PRODUCER, PACKAGE_NAME);
    onnx_put_text(out, MODEL_PRODUCER_VERSION, PACKAGE_VERSION);
    onnx_put_number(onnx_open(&m), OPSET_VERSION, OPSET);
    onnx_close(&m, out, MODEL_OPSET, 0);
    onnx_put_fact(out, "arch", "%s", spec->model.arch);
    if (job)
        onnx_put_fact(out, "job", "%lld", (long long)job);
    if (step)
        onnx_put_fact(out, "step", "%s", step);
    onnx_put_fact(out, "image_size", "%lld", (long long)job_spec_eval_size(spec));
    onnx_put_fact(out, "resize", "%lld", (long long)job_spec_eval_resize(spec));
    onnx_put_fact(out, "preprocess", "%s",
                  job_option_choice(preprocess, (size_t)spec->data.preprocess));
    onnx_put_fact(out, "pixels", "%s", onnx_pixels(spec->data.preprocess, pixels));
}

int onnx_write(const struct job_spec *spec, int64_t job, struct safetensors *weights,
               const char *path, FILE *out, struct error *e)
{
    struct arch_shape shape = arch_shape_of(spec);
    struct graph g = {.shape = &shape, .weights = weights};
    int status = weights_check_network(weights, spec, path, e);

    if (status)
        return status;
    shape.image_size = (int)job_spec_eval_size(spec);
    onnx_build(&g);
    onnx_put_facts(out, spec, job, safetensors_metadata(weights, "step"));
    status = onnx_put_graph(&g, out, e);
    if (!status && (fflush(out) || ferror(out)))
        status = error_set_errno(e, errno, "cannot write the ONNX model");
    free(g.initializers);
    free(g.nodes.data);
    free(g.heads.data);
    return status;
}
