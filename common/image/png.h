/*
 * PNG decoding by libpng, as Pillow and TensorFlow read PNG files for training: the stored values,
 * of 16 bits the high byte (Pillow: but for grey), without regard to gAMA, sRGB, iCCP and cHRM; a
 * palette becomes RGB, and transparency is dropped. Of several pictures (APNG) the first.
 */
#pragma once

#include "common/image/jpeg.h"

/* Pixel memory, kept from image to image. Zero-initialise. */
struct png_decoder {
    uint8_t *pixels;
    size_t room;
};
void png_decoder_free(struct png_decoder *d);

/* Whether it begins as a PNG does. */
bool png_is(const uint8_t *file, size_t bytes);

/* Reads the header: channels are 1 for grey, also with transparency, else 3. ERR_CORRUPT;
 * ERR_TOO_LARGE over JPEG_PIXELS_MAX. */
int png_header(const uint8_t *file, size_t bytes, struct jpeg_info *out, struct error *e);

/* The whole picture, to its end, with the same errors; a truncated one is ERR_CORRUPT. colour: the
 * channels of one that is not grey, 3, 4 (RGB and a byte of nothing), or 1 for its luma. */
int png_decode(struct png_decoder *d, const uint8_t *file, size_t bytes, int colour,
               struct jpeg_pixels *out, struct error *e);
