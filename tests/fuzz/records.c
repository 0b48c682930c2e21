/*
 * What a shard may hold: the frames of the input are walked as the index is made, their payloads
 * read as tf.Examples. As the checksums stop almost every change, the bytes are taken for a payload
 * as well.
 */
#include <string.h>

#include "common/dataset/tf_example.h"
#include "common/dataset/tfrecord.h"
#include "common/system/content.h"
#include "tests/fuzz/fuzz.h"

/* A view must lie within the payload, and its strings end. */
static void records_parse(const uint8_t *payload, size_t bytes)
{
    struct tf_example_view view;
    struct error e;

    if (tf_example_parse(payload, bytes, &view, &e))
        return;
    FUZZ_CHECK(view.jpeg_bytes > 0 && view.jpeg_bytes <= bytes && view.jpeg >= payload &&
                   view.jpeg + view.jpeg_bytes <= payload + bytes,
               "an image of %zu bytes in a payload of %zu", view.jpeg_bytes, bytes);
    FUZZ_CHECK(strnlen(view.filename, sizeof view.filename) < sizeof view.filename &&
                   strnlen(view.text, sizeof view.text) < sizeof view.text,
               "a text without an end");
}

int fuzz_records(const uint8_t *data, size_t bytes)
{
    uint64_t length;
    struct error e;

    for (uint64_t at = 0; at < bytes;
         at += TFRECORD_HEADER_BYTES + length + TFRECORD_FOOTER_BYTES) {
        if (tfrecord_frame(data + at, bytes, "input", at, &length, &e))
            break;
        const uint8_t *payload = data + at + TFRECORD_HEADER_BYTES;
        if (tfrecord_check(payload, length, "input", at, &e) == 0)
            records_parse(payload, length);
    }
    records_parse(data, bytes);
    const struct content *c = content_of(data, bytes);
    FUZZ_CHECK(!c || *c->what, "a kind without a name");
    return 0;
}
