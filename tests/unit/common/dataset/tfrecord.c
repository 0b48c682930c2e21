#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/dataset/tf_example.h"
#include "common/dataset/tfrecord.h"
#include "common/rng.h"
#include "tests/unit/data_fixture.h"

Test(tfrecord, crc_has_the_check_value)
{
    cr_assert_eq(tfrecord_crc32c("123456789", 9), 0xE3069283);
    cr_assert_eq(tfrecord_crc32c("", 0), 0);
    uint8_t zeros[32] = {0}; /* RFC 3720, B.4 */
    cr_assert_eq(tfrecord_crc32c(zeros, 32), 0x8A9136AA);
}

Test(tfrecord, mask_rotates_and_adds)
{
    cr_assert_eq(tfrecord_mask(0), 0xa282ead8);
    cr_assert_eq(tfrecord_mask(0x8000), 0xa282ead9);
    cr_assert_eq(tfrecord_mask(1), 0xa282ead8 + (1u << 17));
}

/* The empty record as TensorFlow writes it: a length of 0 has the crc 0x8c28b28a before the mask.
 */
Test(tfrecord, empty_record_has_the_known_bytes)
{
    static const uint8_t zero[8] = {0};
    uint8_t header[TFRECORD_HEADER_BYTES], footer[TFRECORD_FOOTER_BYTES];
    tfrecord_header(0, header);
    tfrecord_footer("", 0, footer);
    cr_assert_arr_eq(header, zero, 8);
    cr_assert_eq(tfrecord_crc32c(zero, 8), 0x8c28b28a);
    cr_assert_arr_eq(footer, ((uint8_t[]){0xd8, 0xea, 0x82, 0xa2}), 4);
}

static uint8_t *record_of(const char *payload, size_t *bytes)
{
    size_t n = strlen(payload);
    *bytes = TFRECORD_HEADER_BYTES + n + TFRECORD_FOOTER_BYTES;
    uint8_t *record = malloc(*bytes);
    tfrecord_header(n, record);
    memcpy(record + TFRECORD_HEADER_BYTES, payload, n);
    tfrecord_footer(payload, n, record + TFRECORD_HEADER_BYTES + n);
    return record;
}

/* 0 if the record at offset is whole and right. */
static int read_tfrecord(const uint8_t *file, size_t bytes, uint64_t offset, struct error *e)
{
    uint64_t payload;
    int rc = tfrecord_frame(file + offset, bytes, "FILE", offset, &payload, e);
    return rc ? rc
              : tfrecord_check(file + offset + TFRECORD_HEADER_BYTES, payload, "FILE", offset, e);
}

Test(tfrecord, every_truncation_is_named)
{
    struct error e;
    size_t bytes;
    uint8_t *record = record_of("a payload", &bytes);
    cr_assert_eq(read_tfrecord(record, bytes, 0, &e), 0);
    for (size_t n = 1; n < bytes; n++) {
        uint8_t *cut = malloc(n); /* of its own size, so that the sanitizer sees a byte too far */
        memcpy(cut, record, n);
        cr_assert_eq(read_tfrecord(cut, n, 0, &e), -ERR_CORRUPT, "%zu bytes", n);
        cr_assert(strstr(e.text, "FILE is truncated") && strstr(e.text, "byte 0"), "%s", e.text);
        free(cut);
    }
    free(record);
}

Test(tfrecord, every_flipped_bit_is_found)
{
    struct error e;
    size_t bytes;
    uint8_t *record = record_of("a payload", &bytes);
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        record[bit / 8] ^= (uint8_t)(1 << bit % 8);
        cr_assert_eq(read_tfrecord(record, bytes, 0, &e), -ERR_CORRUPT, "bit %zu", bit);
        record[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(record);
}

Test(tfrecord, lengths_up_to_2_to_64_do_not_overflow)
{
    static const uint64_t lengths[] = {10, 1ull << 32, 1ull << 63, UINT64_MAX, UINT64_MAX - 15};
    struct error e;
    size_t bytes;
    uint8_t *record = record_of("a payload", &bytes);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        tfrecord_header(lengths[i], record); /* with a right checksum */
        cr_assert_eq(read_tfrecord(record, bytes, 0, &e), -ERR_CORRUPT);
        cr_assert_not_null(strstr(e.text, "truncated"), "%s", e.text);
    }
    free(record);
}

Test(tfrecord, example_round_trip)
{
    struct tf_example x = {
        5, 7, 3, 1000, "n01440764", "tench", "a\tb.JPEG", (uint8_t *)"\xff\xd8 jpeg", 7};
    struct tf_example_view view;
    uint8_t *payload;
    size_t bytes;
    struct error e;
    cr_assert_eq(tf_example_pack(&x, &payload, &bytes, &e), 0);
    cr_assert_eq(tf_example_parse(payload, bytes, &view, &e), 0, "%s", e.text);
    cr_assert_eq(view.label, 1000);
    cr_assert_eq(view.jpeg_bytes, 7);
    cr_assert_arr_eq(view.jpeg, x.jpeg, 7);
    cr_assert(view.jpeg > payload && view.jpeg < payload + bytes);
    cr_assert_str_eq(view.filename, "a?b.JPEG");
    cr_assert_str_eq(view.text, "tench");
    free(payload);
}

/* Features{ feature { key: "image/class/label" value { int64_list { value: 3 } } } } written by
 * hand: unpacked, as old writers do. */
Test(tfrecord, example_without_an_image_or_a_label_is_refused)
{
    static const char label_only[] =
        "\x0a\x1d\x0a\x1b\x0a\x11image/class/label\x12\x06\x1a\x04\x08\x03\x08\x04";
    struct tf_example_view view;
    struct error e;
    cr_assert_eq(tf_example_parse((const uint8_t *)label_only, sizeof label_only - 1, &view, &e),
                 -ERR_CORRUPT);
    cr_assert_str_eq(e.text, "the record has no image/encoded");
    cr_assert_eq(tf_example_parse((const uint8_t *)"", 0, &view, &e), -ERR_CORRUPT);
    cr_assert_str_eq(e.text, "the record has no features");
    cr_assert_eq(tf_example_parse((const uint8_t *)"\xff\xff\xff", 3, &view, &e), -ERR_CORRUPT);
    cr_assert_str_eq(e.text, "the record is not a tf.Example");
    struct tf_example x = {5, 7, 3, 1, "s", "t", "f", (const uint8_t *)"jpeg", 4};
    uint8_t *payload;
    size_t bytes;
    cr_assert_eq(tf_example_pack(&x, &payload, &bytes, &e), 0);
    uint8_t *key = memmem(payload, bytes, "class/label", 11);
    key[0] = 'C';
    cr_assert_eq(tf_example_parse(payload, bytes, &view, &e), -ERR_CORRUPT);
    cr_assert_str_eq(e.text, "the record has no image/class/label");
    free(payload);
}

/* A tf.Example of the features, each {key, its Feature as it is on the wire}. */
static size_t pack_features(const char *const (*pairs)[2], const size_t *bytes, int count,
                            char out[512])
{
    char features[500];
    size_t used = 0;

    for (int i = 0; i < count; i++) {
        size_t key = strlen(pairs[i][0]), entry = 4 + key + bytes[i];
        features[used++] = 0x0a, features[used++] = (char)entry;
        features[used++] = 0x0a, features[used++] = (char)key;
        memcpy(features + used, pairs[i][0], key);
        used += key;
        features[used++] = 0x12, features[used++] = (char)bytes[i];
        memcpy(features + used, pairs[i][1], bytes[i]);
        used += bytes[i];
    }
    cr_assert(used < 128);
    out[0] = 0x0a, out[1] = (char)used;
    memcpy(out + 2, features, used);
    return used + 2;
}

#define FEATURE(key, wire, words)                                                                  \
    {                                                                                              \
        key, wire, sizeof(wire) - 1, words                                                         \
    }

/* Lists: 0x0a of bytes, 0x12 of floats, 0x1a of int64. */
Test(tfrecord, features_of_another_type_or_number_are_told_apart_from_missing_ones)
{
    static const char label[] = "image/class/label", image[] = "image/encoded";
    static const struct {
        const char *key, *wire;
        size_t bytes;
        const char *words;
    } wrong[] = {
        FEATURE(label, "\x0a\x03\x0a\x01\x37",
                "image/class/label is 1 value of type bytes, not one int64"),
        FEATURE(label, "\x12\x06\x0a\x04\x00\x00\x80\x3f",
                "image/class/label is 1 value of type float, not one int64"),
        FEATURE(label, "\x1a\x04\x0a\x02\x01\x02",
                "image/class/label is 2 values of type int64, not one int64"),
        FEATURE(label, "\x1a\x00", "image/class/label is empty: it should be one int64"),
        FEATURE(label, "", "image/class/label is empty: it should be one int64"),
        FEATURE(image, "\x1a\x03\x0a\x01\x07",
                "image/encoded is 1 value of type int64, not one bytes string"),
        FEATURE(image, "\x0a\x06\x0a\x01\x37\x0a\x01\x38",
                "image/encoded is 2 values of type bytes, not one bytes string"),
        FEATURE(image, "\x0a\x02\x0a\x00", "image/encoded is empty: the record has no image"),
    };
    static const char good_image[] = "\x0a\x03\x0a\x01J", good_label[] = "\x1a\x03\x0a\x01\x05";
    struct tf_example_view view;
    struct error e;
    char payload[512];

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        bool is_label = wrong[i].key == label;
        const char *const pairs[][2] = {
            {is_label ? image : label, is_label ? good_image : good_label},
            {wrong[i].key,             wrong[i].wire                     }
        };
        const size_t lengths[] = {sizeof good_image - 1, wrong[i].bytes};
        size_t bytes = pack_features(pairs, lengths, 2, payload);
        cr_assert_eq(tf_example_parse((uint8_t *)payload, bytes, &view, &e), -ERR_CORRUPT);
        cr_expect_str_eq(e.text, wrong[i].words, "%s", e.text);
    }
    /* as protobuf has it, the last one of a key */
    const char *const twice[][2] = {
        {label, good_label            },
        {image, good_image            },
        {label, "\x1a\x03\x0a\x01\x07"}
    };
    const size_t lengths[] = {sizeof good_label - 1, sizeof good_image - 1, 5};
    size_t bytes = pack_features(twice, lengths, 3, payload);
    cr_assert_eq(tf_example_parse((uint8_t *)payload, bytes, &view, &e), 0, "%s", e.text);
    cr_expect_eq(view.label, 7);
}

/* Whatever is broken, nothing is read that is not there: run with the sanitizers. */
Test(tfrecord, random_damage_never_crashes_the_parser)
{
    struct rng r = rng_stream(1, 0, 0, RNG_SYNTHETIC);
    struct tf_example_view view;
    struct error e;
    size_t bytes, jpeg_bytes;
    uint8_t *jpeg = fixture_jpeg(28, 28, 1, 1, &jpeg_bytes);
    uint8_t *record = fixture_record(jpeg, jpeg_bytes, 1, "1.jpg", &bytes);
    size_t n = bytes - TFRECORD_HEADER_BYTES - TFRECORD_FOOTER_BYTES;
    int good = 0;
    for (int i = 0; i < 20000; i++) {
        size_t cut = i % 4 ? n : rng_below(&r, (uint32_t)n);
        uint8_t *payload = malloc(cut ? cut : 1);
        memcpy(payload, record + TFRECORD_HEADER_BYTES, cut);
        /* Mostly in the first bytes, where the structure is. */
        for (uint32_t k = rng_below(&r, 4) + 1; k > 0 && cut; k--)
            payload[rng_below(&r, (uint32_t)(cut < 300 || k == 1 ? cut : 300))] =
                (uint8_t)rng_u32(&r);
        if (tf_example_parse(payload, cut, &view, &e) == 0) {
            cr_assert(view.jpeg >= payload && view.jpeg + view.jpeg_bytes <= payload + cut);
            good++;
        }
        free(payload);
    }
    cr_assert_gt(good, 0);
    free(record);
    free(jpeg);
}
