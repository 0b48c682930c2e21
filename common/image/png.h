/* PNG decoding by libpng, as in Pillow and TensorFlow: stored values, of 16 bits the high byte
 * (Pillow: except grey), ignoring gAMA, sRGB, iCCP and cHRM; a palette becomes RGB, transparency is
 * dropped, of an animation (APNG) the first picture. */
#pragma once

#include "common/image/jpeg.h"

/* Pixel memory, kept from image to image. Zero-initialise. */
struct png_decoder {
    uint8_t *pixels;
    size_t room;
};
void png_decoder_free(struct png_decoder *d);

bool png_is(const uint8_t *file, size_t bytes);

/* channels: 1 for grey, also with transparency, else 3. ERR_CORRUPT; ERR_TOO_LARGE over
 * JPEG_PIXELS_MAX. */
int png_header(const uint8_t *file, size_t bytes, struct jpeg_info *out, struct error *e);

/* The whole picture, with the same errors; a truncated one is ERR_CORRUPT. colour: channels of one
 * that is not grey: 3, 4 (RGBX), or 1 for its luma. */
int png_decode(struct png_decoder *d, const uint8_t *file, size_t bytes, int colour,
               struct jpeg_pixels *out, struct error *e);
