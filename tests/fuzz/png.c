/* A PNG, whose chunks get the checksums they should have: these would stop almost every change. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/dataset/probe.h"
#include "common/image/png.h"
#include "tests/fuzz/fuzz.h"

#define PIXELS_TRIED 1000000 /* more of them only take time */

static uint32_t png_number(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void png_mend(uint8_t *png, size_t bytes)
{
    for (size_t at = 8; at + 12 <= bytes; at += 12 + (size_t)png_number(png + at)) {
        uint32_t length = png_number(png + at);
        if (length > bytes - at - 12)
            return;
        uint32_t crc = (uint32_t)crc32(0, png + at + 4, length + 4);
        for (int i = 0; i < 4; i++)
            png[at + 8 + length + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
    }
}

static void png_try(const uint8_t *png, size_t bytes, int colour)
{
    struct png_decoder d = {0};
    struct jpeg_pixels p;
    struct error e;
    unsigned sum = 0;

    if (png_decode(&d, png, bytes, colour, &p, &e) == 0) {
        FUZZ_CHECK(p.channels == 1 || p.channels == colour, "%d channels", p.channels);
        for (size_t i = 0; i < (size_t)p.width * (size_t)p.height * (size_t)p.channels; i++)
            sum += p.data[i];
        __asm__ volatile("" : : "r"(sum));
    }
    png_decoder_free(&d);
}

int fuzz_png(const uint8_t *data, size_t bytes)
{
    uint8_t *png = malloc(bytes + 8);
    struct jpeg_info info;
    struct error e;
    int width, height;

    FUZZ_CHECK(png, "no memory");
    memcpy(png, data, bytes);
    png_mend(png, bytes);
    if (png_is(png, bytes) && png_header(png, bytes, &info, &e) == 0) {
        FUZZ_CHECK(dataset_image_size(png, bytes, &width, &height) && width == info.width &&
                       height == info.height,
                   "%d x %d", info.width, info.height);
        FUZZ_CHECK((long long)width * height <= JPEG_PIXELS_MAX, "%d x %d", width, height);
        for (int colour = 1; colour <= 4 && (long long)width * height <= PIXELS_TRIED; colour++)
            if (colour != 2)
                png_try(png, bytes, colour);
    }
    free(png);
    return 0;
}
