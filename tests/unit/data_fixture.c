#include "tests/unit/data_fixture.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "common/dataset/tf_example.h"
#include "common/dataset/tfrecord.h"
#include "common/system/file.h"

char *fixture_folder(void)
{
    char *folder = strdup("/tmp/traind-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    return folder;
}

void fixture_remove(char *folder)
{
    struct error e;
    cr_expect_eq(file_remove_tree(folder, &e), 0, "%s", e.text);
    free(folder);
}

const char *fixture_path(const char *folder, const char *name)
{
    static char paths[8][256];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

void fixture_write(const char *path, const void *data, size_t bytes)
{
    struct error e;
    cr_assert_eq(file_write_atomic(path, data, bytes, &e), 0, "%s", e.text);
}

uint8_t *fixture_read(const char *path, size_t *bytes)
{
    struct error e;
    char *text;
    cr_assert_eq(file_read(path, 64 << 20, &text, bytes, &e), 0, "%s", e.text);
    return (uint8_t *)text;
}

static uint8_t smooth(int x, int y, int c, int seed)
{
    return (uint8_t)lrint(128 + 60 * sin(0.11 * x * (1 + c) + seed) +
                          60 * cos(0.07 * y + 0.3 * seed));
}

static uint8_t *compress(int width, int height, int channels, int seed, bool progressive,
                         size_t *bytes)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    unsigned char *out = NULL;
    unsigned long size = 0;
    JSAMPROW row = malloc((size_t)width * (size_t)channels);

    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &out, &size);
    jpeg.image_width = (JDIMENSION)width;
    jpeg.image_height = (JDIMENSION)height;
    jpeg.input_components = channels;
    jpeg.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 95, TRUE);
    if (progressive)
        jpeg_simple_progression(&jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++)
                row[x * channels + c] = smooth(x, y, c, seed);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    free(row);
    *bytes = size;
    return out;
}

uint8_t *fixture_jpeg(int width, int height, int channels, int seed, size_t *bytes)
{
    return compress(width, height, channels, seed, false, bytes);
}

uint8_t *fixture_progressive_jpeg(int width, int height, size_t *bytes)
{
    return compress(width, height, 3, 1, true, bytes);
}

uint8_t *fixture_record(const uint8_t *jpeg, size_t jpeg_bytes, int64_t label, const char *filename,
                        size_t *bytes)
{
    struct tf_example x = {28, 28, 1, label, "n00000001", "a class", filename, jpeg, jpeg_bytes};
    uint8_t *payload, *record;
    size_t payload_bytes;
    struct error e;

    cr_assert_eq(tf_example_pack(&x, &payload, &payload_bytes, &e), 0, "%s", e.text);
    *bytes = TFRECORD_HEADER_BYTES + payload_bytes + TFRECORD_FOOTER_BYTES;
    record = malloc(*bytes);
    tfrecord_header(payload_bytes, record);
    memcpy(record + TFRECORD_HEADER_BYTES, payload, payload_bytes);
    tfrecord_footer(payload, payload_bytes, record + TFRECORD_HEADER_BYTES + payload_bytes);
    free(payload);
    return record;
}

void fixture_shard(const char *path, int first, int count, int classes)
{
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    for (int i = first; i < first + count; i++) {
        size_t jpeg_bytes, bytes;
        char name[32];
        snprintf(name, sizeof name, "%d.jpg", i);
        uint8_t *jpeg = fixture_jpeg(28, 28, 1, i, &jpeg_bytes);
        uint8_t *record = fixture_record(jpeg, jpeg_bytes, 1 + i % classes, name, &bytes);
        cr_assert_eq(fwrite(record, 1, bytes, file), bytes);
        free(record);
        free(jpeg);
    }
    cr_assert_eq(fclose(file), 0);
}
