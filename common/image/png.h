/* PNG decoding with libpng, with the results of Pillow and TensorFlow: stored values, the high byte
 * of 16 bits (as Pillow except for grey), ignoring gAMA, sRGB, iCCP and cHRM. A palette becomes
 * RGB, transparency is dropped, and an animation (APNG) yields its first image. */
#pragma once

#include "common/image/jpeg.h"

/* Pixel memory, reused for each image. Zero-initialise it. */
struct png_decoder {
    uint8_t *pixels;
    size_t capacity;
};
void png_decoder_free(struct png_decoder *d);

bool png_is(const uint8_t *file, size_t bytes);

/* Reads the header. Sets channels to 1 for grey, also with transparency, else to 3. Returns
 * ERR_CORRUPT, or ERR_TOO_LARGE over JPEG_PIXELS_MAX. */
int png_header(const uint8_t *file, size_t bytes, struct jpeg_info *out, struct error *e);

/* Decodes the whole image; a truncated one is ERR_CORRUPT. colour: channels of the result for an
 * image that is not grey: 3, 4 (RGBX), or 1 for its luma. */
int png_decode(struct png_decoder *d, const uint8_t *file, size_t bytes, int colour,
               struct jpeg_pixels *out, struct error *e);
