#include "common/dataset/tf_example.h"

#include <stdlib.h>
#include <string.h>

#include "common/dataset/example.pb-c.h"
#include "common/text.h"

#define KEYS 10

struct packed {
    Tensorflow__FeatureEntry entry;
    Tensorflow__Feature feature;
    Tensorflow__BytesList bytes_list;
    Tensorflow__Int64List int64_list;
    ProtobufCBinaryData bytes;
    int64_t number;
};

static void tf_example_pack_start(struct packed *p, const char *key)
{
    tensorflow__feature_entry__init(&p->entry);
    tensorflow__feature__init(&p->feature);
    tensorflow__bytes_list__init(&p->bytes_list);
    tensorflow__int64_list__init(&p->int64_list);
    p->entry.key = (char *)key;
    p->entry.value = &p->feature;
}

static void tf_example_pack_bytes(struct packed *p, const char *key, const void *data, size_t bytes)
{
    tf_example_pack_start(p, key);
    p->bytes = (ProtobufCBinaryData){bytes, (uint8_t *)data};
    p->bytes_list.n_value = 1;
    p->bytes_list.value = &p->bytes;
    p->feature.kind_case = TENSORFLOW__FEATURE__KIND_BYTES_LIST;
    p->feature.bytes_list = &p->bytes_list;
}

static void tf_example_pack_string(struct packed *p, const char *key, const char *text)
{
    tf_example_pack_bytes(p, key, text, strlen(text));
}

static void tf_example_pack_number(struct packed *p, const char *key, int64_t number)
{
    tf_example_pack_start(p, key);
    p->number = number;
    p->int64_list.n_value = 1;
    p->int64_list.value = &p->number;
    p->feature.kind_case = TENSORFLOW__FEATURE__KIND_INT64_LIST;
    p->feature.int64_list = &p->int64_list;
}

int tf_example_pack(const struct tf_example *x, uint8_t **out, size_t *bytes, struct error *e)
{
    struct packed p[KEYS];
    Tensorflow__FeatureEntry *entries[KEYS];
    Tensorflow__Features features = TENSORFLOW__FEATURES__INIT;
    Tensorflow__Example message = TENSORFLOW__EXAMPLE__INIT;

    tf_example_pack_number(&p[0], "image/height", x->height);
    tf_example_pack_number(&p[1], "image/width", x->width);
    tf_example_pack_string(&p[2], "image/colorspace", x->channels == 1 ? "Grayscale" : "RGB");
    tf_example_pack_number(&p[3], "image/channels", x->channels);
    tf_example_pack_number(&p[4], "image/class/label", x->label);
    tf_example_pack_string(&p[5], "image/class/synset", x->synset);
    tf_example_pack_string(&p[6], "image/class/text", x->text);
    tf_example_pack_string(&p[7], "image/format", "JPEG");
    tf_example_pack_string(&p[8], "image/filename", x->filename);
    tf_example_pack_bytes(&p[9], "image/encoded", x->jpeg, x->jpeg_bytes);
    for (int i = 0; i < KEYS; i++)
        entries[i] = &p[i].entry;
    features.n_feature = KEYS;
    features.feature = entries;
    message.features = &features;

    *bytes = tensorflow__example__get_packed_size(&message);
    *out = malloc(*bytes);
    if (!*out)
        return error_set(e, ERR_NO_MEMORY, "no memory for a record of %zu bytes", *bytes);
    tensorflow__example__pack(&message, *out);
    return 0;
}

static const Tensorflow__Feature *tf_example_find(const Tensorflow__Features *features,
                                                  const char *key)
{
    /* The last one of duplicate keys counts, as in all protobuf maps. */
    for (size_t i = features->n_feature; i-- > 0;)
        if (strcmp(features->feature[i]->key, key) == 0)
            return features->feature[i]->value;
    return NULL;
}

static const ProtobufCBinaryData *tf_example_find_bytes(const Tensorflow__Features *features,
                                                        const char *key)
{
    const Tensorflow__Feature *f = tf_example_find(features, key);
    if (!f || f->kind_case != TENSORFLOW__FEATURE__KIND_BYTES_LIST || f->bytes_list->n_value != 1)
        return NULL;
    return &f->bytes_list->value[0];
}

static const int64_t *tf_example_find_number(const Tensorflow__Features *features, const char *key)
{
    const Tensorflow__Feature *f = tf_example_find(features, key);
    if (!f || f->kind_case != TENSORFLOW__FEATURE__KIND_INT64_LIST || f->int64_list->n_value != 1)
        return NULL;
    return &f->int64_list->value[0];
}

static void tf_example_copy_text(char *out, size_t capacity, const ProtobufCBinaryData *text)
{
    size_t bytes = text ? text->len : 0;
    if (bytes > capacity - 1)
        bytes = capacity - 1;
    for (size_t i = 0; i < bytes; i++)
        out[i] = text->data[i] < ' ' || text->data[i] == 127 ? '?' : (char)text->data[i];
    out[bytes] = '\0';
}

/* Finds the original of what protobuf-c has copied, in the payload, which lives longer. The first
 * bytes, those of a JPEG, make the search short. */
static const uint8_t *tf_example_locate(const uint8_t *payload, size_t bytes,
                                        const ProtobufCBinaryData *copy)
{
    size_t anchor = copy->len < 16 ? copy->len : 16;
    const uint8_t *at = payload, *end = payload + bytes;

    while ((at = memmem(at, (size_t)(end - at), copy->data, anchor))) {
        if ((size_t)(end - at) < copy->len)
            return NULL;
        if (memcmp(at, copy->data, copy->len) == 0)
            return at;
        at++;
    }
    return NULL;
}

static int tf_example_refuse_feature(const Tensorflow__Features *features, const char *key,
                                     const char *needed, struct error *e)
{
    const Tensorflow__Feature *f = tf_example_find(features, key);
    const char *kind = NULL;
    size_t values = 0;

    if (f && f->kind_case == TENSORFLOW__FEATURE__KIND_BYTES_LIST) {
        kind = "bytes";
        values = f->bytes_list->n_value;
    } else if (f && f->kind_case == TENSORFLOW__FEATURE__KIND_INT64_LIST) {
        kind = "int64";
        values = f->int64_list->n_value;
    } else if (f && f->kind_case == TENSORFLOW__FEATURE__KIND_FLOAT_LIST) {
        kind = "float";
        values = f->float_list->n_value;
    }
    if (!f)
        return error_set(e, ERR_CORRUPT, "the record has no %s", key);
    if (values == 0)
        return error_set(e, ERR_CORRUPT, "%s is empty: it should be one %s", key, needed);
    return error_set(e, ERR_CORRUPT, "%s is %zu value%s of type %s, not one %s", key, values,
                     plural((int64_t)values), kind, needed);
}

static int tf_example_view_features(const Tensorflow__Features *features, const uint8_t *payload,
                                    size_t bytes, struct tf_example_view *view, struct error *e)
{
    const ProtobufCBinaryData *jpeg = tf_example_find_bytes(features, "image/encoded");
    const int64_t *label = tf_example_find_number(features, "image/class/label");
    const ProtobufCBinaryData *text = tf_example_find_bytes(features, "image/class/text");

    if (!jpeg)
        return tf_example_refuse_feature(features, "image/encoded", "bytes string", e);
    if (jpeg->len == 0)
        return error_set(e, ERR_CORRUPT, "image/encoded is empty: the record has no image");
    if (!label)
        return tf_example_refuse_feature(features, "image/class/label", "int64", e);
    view->label = *label;
    view->jpeg_bytes = jpeg->len;
    view->jpeg = tf_example_locate(payload, bytes, jpeg);
    if (!view->jpeg)
        return error_set(e, ERR_INTERNAL, "the image was not found in its own record");
    tf_example_copy_text(view->filename, sizeof view->filename,
                         tf_example_find_bytes(features, "image/filename"));
    if (!text || text->len == 0)
        text = tf_example_find_bytes(features, "image/class/synset");
    tf_example_copy_text(view->text, sizeof view->text, text);
    return 0;
}

int tf_example_parse(const uint8_t *payload, size_t bytes, struct tf_example_view *view,
                     struct error *e)
{
    Tensorflow__Example *message = tensorflow__example__unpack(NULL, bytes, payload);
    int rc;

    if (!message)
        return error_set(e, ERR_CORRUPT, "the record is not a tf.Example");
    if (message->features)
        rc = tf_example_view_features(message->features, payload, bytes, view, e);
    else
        rc = error_set(e, ERR_CORRUPT, "the record has no features");
    tensorflow__example__free_unpacked(message, NULL);
    return rc;
}
