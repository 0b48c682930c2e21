#include "daemon/export/onnx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/xalloc.h"
#include "config.h"
#include "daemon/export/onnx.pb-c.h"

enum { IR_VERSION = 7, OPSET = 13, FLOAT = 1 }; /* TensorProto.FLOAT, AttributeProto.FLOAT */
enum { ATTRIBUTE_FLOAT = 1, ATTRIBUTE_INT = 2, ATTRIBUTE_INTS = 7 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum {
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    MODEL_PROPERTY = 14
};
enum { TENSOR_RAW_DATA = 9, WIRE_VARINT = 0, WIRE_BYTES = 2 };
enum { INPUTS_MOST = 5, ATTRIBUTES_MOST = 5, NAME_BYTES = 80 };

#define MODEL_BYTES_MAX ((int64_t)2147483647)

struct initializer {
    char name[NAME_BYTES];
    const struct safetensors_tensor *stored; /* NULL: the filter of a blur */
    int dims;
    int64_t shape[4];
};

struct graph {
    const struct arch_shape *shape;
    struct safetensors *weights;
    FILE *body; /* the fields of the graph but for the weights */
    struct initializer *initializers;
    size_t count, most;
    char last[NAME_BYTES];     /* value that the next node reads */
    char block[48];            /* name of the residual block; "": none yet */
    char into[NAME_BYTES];     /* value that the block reads */
    char shortcut[NAME_BYTES]; /* value that is added at its end */
    struct error *e;
    int status;
};

/* ---- wire format (https://protobuf.dev/programming-guides/encoding) */

static size_t onnx_varint_bytes(uint64_t v)
{
    size_t bytes = 1;

    while (v >>= 7)
        bytes++;
    return bytes;
}

static void onnx_put_varint(FILE *out, uint64_t v)
{
    for (; v >= 128; v >>= 7)
        putc((int)(v & 127) | 128, out);
    putc((int)v, out);
}

/* The key of a field, and the length of what follows. */
static void onnx_put_head(FILE *out, int field, uint64_t bytes)
{
    onnx_put_varint(out, (uint64_t)field << 3 | WIRE_BYTES);
    onnx_put_varint(out, bytes);
}

static size_t onnx_head_bytes(int field, uint64_t bytes)
{
    return onnx_varint_bytes((uint64_t)field << 3) + onnx_varint_bytes(bytes);
}

static void onnx_put_text(FILE *out, int field, const char *text)
{
    onnx_put_head(out, field, strlen(text));
    fputs(text, out);
}

static void onnx_put_packed(FILE *out, const ProtobufCMessage *message)
{
    uint8_t *packed = xmalloc(protobuf_c_message_get_packed_size(message) + 1);

    fwrite(packed, 1, protobuf_c_message_pack(message, packed), out);
    free(packed);
}

static void onnx_put_message(FILE *out, int field, const ProtobufCMessage *message)
{
    onnx_put_head(out, field, protobuf_c_message_get_packed_size(message));
    onnx_put_packed(out, message);
}

/* ---- nodes */

struct attribute {
    const char *name; /* NULL: end */
    int type;
    float f;
    int count;
    int64_t i[4];
};

/* Adds a node that reads `inputs` (up to a NULL) and writes `output`, which the next node reads. */
static void onnx_add_node(struct graph *g, const char *op, const char *output,
                          const char *const *inputs, const struct attribute *attributes)
{
    Onnx__Node node = ONNX__NODE__INIT;
    Onnx__Attribute parts[ATTRIBUTES_MOST], *list[ATTRIBUTES_MOST];
    char *out = (char *)output;

    node.op_type = (char *)op;
    node.name = out;
    node.input = (char **)inputs;
    while (inputs[node.n_input])
        node.n_input++;
    node.output = &out;
    node.n_output = 1;
    for (; attributes && attributes[node.n_attribute].name; node.n_attribute++) {
        const struct attribute *a = &attributes[node.n_attribute];
        Onnx__Attribute *part = list[node.n_attribute] = &parts[node.n_attribute];
        onnx__attribute__init(part);
        part->name = (char *)a->name;
        part->type = a->type;
        part->f = a->f;
        if (a->type == ATTRIBUTE_INT)
            part->i = a->i[0];
        if (a->type == ATTRIBUTE_INTS) {
            part->n_ints = (size_t)a->count;
            part->ints = (int64_t *)a->i;
        }
    }
    node.attribute = list;
    onnx_put_message(g->body, GRAPH_NODE, &node.base);
    snprintf(g->last, sizeof g->last, "%s", output);
}

static void onnx_add_simple(struct graph *g, const char *op, const char *output)
{
    char input[NAME_BYTES];

    memcpy(input, g->last, sizeof input);
    onnx_add_node(g, op, output, (const char *const[]){input, NULL}, NULL);
}

static struct initializer *onnx_new_initializer(struct graph *g)
{
    if (g->count == g->most) {
        g->most = 2 * g->most + 64;
        g->initializers = must_alloc(realloc(g->initializers, g->most * sizeof *g->initializers));
    }
    struct initializer *new = &g->initializers[g->count++];
    *new = (struct initializer){0};
    return new;
}

/* Adds the tensor LAYER.PART, which must have the shape. Returns its name in name. */
static const char *onnx_need(struct graph *g, const char *layer, const char *part,
                             char name[NAME_BYTES], int dims, const int64_t *shape)
{
    snprintf(name, NAME_BYTES, "%s.%s", layer, part);
    const struct safetensors_tensor *t = safetensors_find(g->weights, name);
    if (!t || t->dtype == SAFETENSORS_I64 || t->dims != dims ||
        memcmp(t->shape, shape, (size_t)dims * sizeof *shape) != 0) {
        if (!g->status)
            g->status = error_set(g->e, ERR_CORRUPT, "the weights have no tensor %s%s", name,
                                  t ? " of the network's shape" : "");
        return name;
    }
    struct initializer *new = onnx_new_initializer(g);
    snprintf(new->name, sizeof new->name, "%s", name);
    new->stored = t;
    new->dims = dims;
    memcpy(new->shape, shape, (size_t)dims * sizeof *shape);
    return name;
}

static void onnx_add_conv_node(struct graph *g, const char *output, const char *const *inputs,
                               int kernel, int stride, int padding, int groups)
{
    onnx_add_node(g, "Conv", output, inputs,
                  (const struct attribute[]){
                      {"kernel_shape",    ATTRIBUTE_INTS, 0, 2, {kernel, kernel}},
                      {"strides",                ATTRIBUTE_INTS, 0, 2, {stride, stride}},
                      {"pads", ATTRIBUTE_INTS, 0, 4, {padding, padding, padding, padding}},
                      {"group",         ATTRIBUTE_INT, 0, 1, {groups}},
                      {0               }
    });
}

/* The low-pass filter of model.blur_pool: one for each channel. */
static void onnx_add_blur(struct graph *g, const char *before, int channels, int stride)
{
    char input[NAME_BYTES], weight[NAME_BYTES], output[NAME_BYTES];
    size_t i = 0;

    memcpy(input, g->last, sizeof input);
    snprintf(weight, sizeof weight, "blur%d", channels);
    snprintf(output, sizeof output, "%s.blur", before);
    while (i < g->count && strcmp(g->initializers[i].name, weight) != 0)
        i++;
    if (i == g->count) {
        struct initializer *new = onnx_new_initializer(g);
        snprintf(new->name, sizeof new->name, "%s", weight);
        new->dims = 4;
        memcpy(new->shape, ((int64_t[]){channels, 1, 3, 3}), sizeof new->shape);
    }
    onnx_add_conv_node(g, output, (const char *const[]){input, weight, NULL}, 3, stride, 1,
                       channels);
}

static void onnx_add_max_pool(struct graph *g, const char *output, int kernel, int stride,
                              int padding)
{
    char input[NAME_BYTES];

    memcpy(input, g->last, sizeof input);
    onnx_add_node(g, "MaxPool", output,
                  (const char *const[]){
                      input, NULL
    },
                  (const struct attribute[]){
                      {"kernel_shape", ATTRIBUTE_INTS, 0, 2, {kernel, kernel}},
                      {"strides", ATTRIBUTE_INTS, 0, 2, {stride, stride}},
                      {"pads", ATTRIBUTE_INTS, 0, 4, {padding, padding, padding, padding}},
                      {0}});
}

/* ---- layers */

static void onnx_add_conv(struct graph *g, const struct arch_conv *c)
{
    int64_t channels = c->out_channels,
            shape[4] = {channels, c->in_channels / c->groups, c->kernel, c->kernel};
    char input[NAME_BYTES], name[INPUTS_MOST][NAME_BYTES];
    bool biased = !*c->bn_name;

    if (c->blur_size)
        onnx_add_blur(g, c->name, c->in_channels, c->blur_stride);
    memcpy(input, g->last, sizeof input);
    onnx_need(g, c->name, "weight", name[0], 4, shape);
    if (biased)
        onnx_need(g, c->name, "bias", name[1], 1, &channels);
    onnx_add_conv_node(g, c->name,
                       (const char *const[]){input, name[0], biased ? name[1] : NULL, NULL},
                       c->kernel, c->stride, c->padding, c->groups);
    if (biased)
        return;
    onnx_add_node(g, "BatchNormalization", c->bn_name,
                  (const char *const[]){
                      c->name, onnx_need(g, c->bn_name, "weight", name[1], 1, &channels),
                      onnx_need(g, c->bn_name, "bias", name[2], 1, &channels),
                      onnx_need(g, c->bn_name, "running_mean", name[3], 1, &channels),
                      onnx_need(g, c->bn_name, "running_var", name[4], 1, &channels), NULL
    },
                  (const struct attribute[]){
                      {"epsilon", ATTRIBUTE_FLOAT, (float)ARCH_BATCHNORM_EPSILON, 0, {0}}, {0}});
}

static void onnx_end_block(struct graph *g)
{
    char branch[NAME_BYTES], output[NAME_BYTES];

    if (!*g->block)
        return;
    memcpy(branch, g->last, sizeof branch);
    snprintf(output, sizeof output, "%s.add", g->block);
    onnx_add_node(g, "Add", output, (const char *const[]){branch, g->shortcut, NULL}, NULL);
    snprintf(output, sizeof output, "%s.relu", g->block);
    onnx_add_simple(g, "Relu", output);
}

static void onnx_add_residual_conv(struct graph *g, const struct arch_conv *c)
{
    const char *dot = strrchr(c->name, '.');
    size_t length =
        (size_t)(strstr(c->name, dot && strstr(c->name, ".downsample") ? ".downsample" : ".conv") -
                 c->name);
    int last = g->shape->arch->bottleneck ? 3 : 2;
    char output[NAME_BYTES];

    if (c->name[length + 1] == 'd') { /* the shortcut, which comes last in its block */
        char branch[NAME_BYTES];
        memcpy(branch, g->last, sizeof branch);
        memcpy(g->last, g->into, sizeof g->last);
        onnx_add_conv(g, c);
        memcpy(g->shortcut, g->last, sizeof g->shortcut);
        memcpy(g->last, branch, sizeof g->last);
        return;
    }
    if (dot[strlen(dot) - 1] == '1') {
        onnx_end_block(g);
        snprintf(g->block, sizeof g->block, "%.*s", (int)length, c->name);
        memcpy(g->into, g->last, sizeof g->into);
        memcpy(g->shortcut, g->last, sizeof g->shortcut);
    }
    onnx_add_conv(g, c);
    if (dot[strlen(dot) - 1] - '0' < last) {
        snprintf(output, sizeof output, "%s.relu", c->name);
        onnx_add_simple(g, "Relu", output);
    }
}

static void onnx_add_stem(struct graph *g, const struct arch_conv *c)
{
    onnx_add_conv(g, c);
    onnx_add_simple(g, "Relu", "relu");
    if (g->shape->stem == JOB_STEM_SMALL)
        return;
    onnx_add_max_pool(g, "maxpool", 3, g->shape->blur_pool ? 1 : 2, 1);
    if (g->shape->blur_pool)
        onnx_add_blur(g, "maxpool", c->out_channels, 2);
}

static void onnx_add_layer(const struct arch_conv *c, void *context)
{
    struct graph *g = context;
    char output[NAME_BYTES];

    if (g->shape->arch->family == ARCH_CNN) {
        onnx_add_conv(g, c);
        snprintf(output, sizeof output, "%s.relu", c->name);
        onnx_add_simple(g, "Relu", output);
        snprintf(output, sizeof output, "%s.pool", c->name);
        onnx_add_max_pool(g, output, ARCH_CNN_POOL, ARCH_CNN_POOL, 0);
    } else if (strchr(c->name, '.')) {
        onnx_add_residual_conv(g, c);
    } else {
        onnx_add_stem(g, c);
    }
}

static void onnx_add_linear(struct graph *g, const struct arch_linear *l, const char *output)
{
    int64_t shape[2] = {l->out, l->in};
    char input[NAME_BYTES], weight[NAME_BYTES], bias[NAME_BYTES];

    memcpy(input, g->last, sizeof input);
    onnx_need(g, l->name, "weight", weight, 2, shape);
    onnx_need(g, l->name, "bias", bias, 1, shape);
    onnx_add_node(g, "Gemm", output,
                  (const char *const[]){
                      input, weight, bias, NULL
    },
                  (const struct attribute[]){{"transB", ATTRIBUTE_INT, 0, 1, {1}}, {0}});
}

static void onnx_add_value(struct graph *g, int field, const char *name, int dims,
                           const int64_t *sizes)
{
    Onnx__Dimension parts[4], *list[4];
    Onnx__Shape shape = ONNX__SHAPE__INIT;
    Onnx__TensorType tensor = ONNX__TENSOR_TYPE__INIT;
    Onnx__Type type = ONNX__TYPE__INIT;
    Onnx__ValueInfo value = ONNX__VALUE_INFO__INIT;

    for (int i = 0; i < dims; i++) {
        onnx__dimension__init(list[i] = &parts[i]);
        parts[i].value_case =
            i ? ONNX__DIMENSION__VALUE_DIM_VALUE : ONNX__DIMENSION__VALUE_DIM_PARAM;
        if (i)
            parts[i].dim_value = sizes[i];
        else
            parts[i].dim_param = "batch";
    }
    shape.n_dim = (size_t)dims;
    shape.dim = list;
    tensor.elem_type = FLOAT;
    tensor.shape = &shape;
    type.tensor_type = &tensor;
    value.name = (char *)name;
    value.type = &type;
    onnx_put_message(g->body, field, &value.base);
}

static void onnx_build(struct graph *g)
{
    struct arch_linear linears[ARCH_LINEARS];
    int64_t size = g->shape->image_size, channels = arch_image_channels(g->shape->arch);
    int count = arch_linears(g->shape, linears);
    char name[NAME_BYTES];

    onnx_put_text(g->body, GRAPH_NAME, g->shape->arch->name);
    onnx_add_value(g, GRAPH_INPUT, "input", 4, (int64_t[]){0, channels, size, size});
    onnx_add_value(g, GRAPH_OUTPUT, "output", 2, (int64_t[]){0, g->shape->classes});
    strcpy(g->last, "input");
    arch_each_conv(g->shape, onnx_add_layer, g);
    onnx_end_block(g);
    if (g->shape->arch->family == ARCH_RESIDUAL)
        onnx_add_simple(g, "GlobalAveragePool", "avgpool");
    onnx_add_simple(g, "Flatten", "flatten");
    for (int i = 0; i < count; i++) {
        onnx_add_linear(g, &linears[i], i == count - 1 ? "output" : linears[i].name);
        if (i < count - 1) {
            snprintf(name, sizeof name, "%s.relu", linears[i].name);
            onnx_add_simple(g, "Relu", name);
        }
    }
}

/* ---- weights */

static size_t onnx_floats(const struct initializer *w)
{
    size_t floats = 1;

    for (int i = 0; i < w->dims; i++)
        floats *= (size_t)w->shape[i];
    return floats;
}

static Onnx__Tensor onnx_tensor(const struct initializer *w)
{
    Onnx__Tensor t = ONNX__TENSOR__INIT;

    t.n_dims = (size_t)w->dims;
    t.dims = (int64_t *)w->shape;
    t.data_type = FLOAT;
    t.name = (char *)w->name;
    return t;
}

static size_t onnx_tensor_bytes(const struct initializer *w)
{
    Onnx__Tensor t = onnx_tensor(w);
    size_t bytes = onnx_floats(w) * sizeof(float);

    return onnx__tensor__get_packed_size(&t) + onnx_head_bytes(TENSOR_RAW_DATA, bytes) + bytes;
}

static int onnx_put_tensor(FILE *out, struct safetensors *weights, const struct initializer *w,
                           struct error *e)
{
    static const float taps[3] = {.25f, .5f, .25f};
    size_t floats = onnx_floats(w);
    float *data = malloc(floats * sizeof *data);
    Onnx__Tensor t = onnx_tensor(w);
    int status = 0;

    if (!data)
        return error_set(e, ERR_NO_MEMORY, "out of memory for the weights");
    if (w->stored)
        status = safetensors_read_floats(weights, w->stored, data, e);
    for (size_t i = 0; !w->stored && i < floats; i++)
        data[i] = taps[i % 3] * taps[i / 3 % 3];
    if (!status) {
        onnx_put_head(out, GRAPH_INITIALIZER, onnx_tensor_bytes(w));
        onnx_put_packed(out, &t.base);
        onnx_put_head(out, TENSOR_RAW_DATA, floats * sizeof *data);
        fwrite(data, sizeof *data, floats, out);
    }
    free(data);
    return status;
}

static void onnx_put_facts(FILE *out, const struct onnx_property *properties, size_t count)
{
    Onnx__OperatorSet opset = ONNX__OPERATOR_SET__INIT;

    onnx_put_varint(out, MODEL_IR_VERSION << 3 | WIRE_VARINT);
    onnx_put_varint(out, IR_VERSION);
    onnx_put_text(out, MODEL_PRODUCER, PACKAGE_NAME);
    onnx_put_text(out, MODEL_PRODUCER_VERSION, PACKAGE_VERSION);
    opset.version = OPSET;
    onnx_put_message(out, MODEL_OPSET, &opset.base);
    for (size_t i = 0; i < count; i++) {
        Onnx__Property property = ONNX__PROPERTY__INIT;
        property.key = (char *)properties[i].key;
        property.value = (char *)properties[i].value;
        onnx_put_message(out, MODEL_PROPERTY, &property.base);
    }
}

static int onnx_put_graph(const struct graph *g, const char *body, size_t bytes, FILE *out,
                          struct error *e)
{
    size_t all = bytes;
    int status = 0;

    for (size_t i = 0; i < g->count; i++) {
        size_t tensor = onnx_tensor_bytes(&g->initializers[i]);
        all += onnx_head_bytes(GRAPH_INITIALIZER, tensor) + tensor;
    }
    if ((int64_t)all > MODEL_BYTES_MAX - 65536)
        return error_set(e, ERR_UNSUPPORTED,
                         "a model of %zu bytes is too large for ONNX, which allows 2 GB", all);
    onnx_put_head(out, MODEL_GRAPH, all);
    fwrite(body, 1, bytes, out);
    for (size_t i = 0; i < g->count && !status; i++)
        status = onnx_put_tensor(out, g->weights, &g->initializers[i], e);
    return status;
}

int onnx_write(const struct arch_shape *shape, struct safetensors *weights,
               const struct onnx_property *properties, size_t count, FILE *out, struct error *e)
{
    char *body = NULL;
    size_t bytes = 0;
    struct graph g = {.shape = shape, .weights = weights, .e = e};

    g.body = must_alloc(open_memstream(&body, &bytes));
    onnx_build(&g);
    fclose(g.body);
    int status = g.status;
    if (!status) {
        onnx_put_facts(out, properties, count);
        status = onnx_put_graph(&g, body, bytes, out, e);
    }
    if (!status && (fflush(out) || ferror(out)))
        status = error_set_errno(e, errno, "cannot write the ONNX model");
    free(g.initializers);
    free(body);
    return status;
}

const char *onnx_pixels(enum job_preprocess preprocess)
{
    switch (preprocess) {
    case JOB_PREPROCESS_MLPERF:
        return "x - (123.68, 116.78, 103.94)";
    case JOB_PREPROCESS_WHOLE:
        return "x / 255";
    default:
        return "(x / 255 - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)";
    }
}
