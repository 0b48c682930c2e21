/* A labelled image as a tf.Example (protobuf-c, common/dataset/example.proto) with the keys of
 * TensorFlow's imagenet_to_gcs.py:
 * image/{height,width,colorspace,channels,class/label,class/synset,class/text,format,filename,encoded}.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct tf_example {
    int width, height, channels;
    int64_t label; /* 1-based, because 0 is the background class in this format */
    const char *synset, *text, *filename;
    const uint8_t *jpeg;
    size_t jpeg_bytes;
};

/* Serialises an example; the caller frees *out. */
int tf_example_pack(const struct tf_example *example, uint8_t **out, size_t *bytes,
                    struct error *e);

struct tf_example_view {
    const uint8_t *jpeg; /* points into the parsed payload */
    size_t jpeg_bytes;
    int64_t label;      /* 1-based, as stored */
    char filename[128]; /* "" if the record has none; truncated; control characters replaced */
    char text[64];      /* image/class/text or image/class/synset, treated the same way */
};

/* Returns ERR_CORRUPT if the payload is not a tf.Example, or image/encoded or image/class/label is
 * not a single value of its type. The caller prepends file and offset. */
int tf_example_parse(const uint8_t *payload, size_t bytes, struct tf_example_view *view,
                     struct error *e);
