/* JPEG decoding with libjpeg-turbo: exact (slow integer DCT, fancy upsampling), as Pillow and
 * TensorFlow decode for training */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* width x height; larger images are refused before memory is allocated */
#define JPEG_PIXELS_MAX 100000000
#define JPEG_SCANS_MAX  100 /* a photograph has about 10; each costs a pass over the image */

struct jpeg_pixels {
    const uint8_t *data; /* (height, width, channels); valid until the next call of the decoder */
    int width, height;
    int channels; /* 1: grey; 3: RGB; 4: RGB and an unused byte. CMYK and YCCK become RGB */
};

struct jpeg_info {
    int width, height;
    int channels; /* as stored: 1, 3 or 4 */
};

/* Keeps tables and pixel memory between images. Not thread-safe. */
struct jpeg_decoder;

int jpeg_decoder_create(struct jpeg_decoder **out, struct error *e);
void jpeg_decoder_destroy(struct jpeg_decoder *d); /* accepts NULL */

/* Returns ERR_CORRUPT if the data is not a JPEG, truncated or broken, ERR_TOO_LARGE over
 * JPEG_PIXELS_MAX or JPEG_SCANS_MAX, or ERR_UNSUPPORTED for another colour space. */
int jpeg_decode(struct jpeg_decoder *d, const uint8_t *jpeg, size_t bytes, struct jpeg_pixels *out,
                struct error *e);

/*
 * Decodes part of an image in two steps: jpeg_open reads the header and borrows the JPEG; jpeg_read
 * decodes the part to 1 or 4 channels, with exactly the pixels of jpeg_decode. It enlarges the part
 * to what has to be decoded anyway. Later rows are not decoded unless the JPEG has no end marker,
 * so that a truncated one is always refused.
 *
 * halved: decode at half size (rounded up) with libjpeg's smaller inverse DCT; the part is in
 * pixels of that size. grey: decode only the luma (ITU-R 601) of a colour image, one channel.
 */
struct jpeg_rectangle {
    int x, y, width, height;
    bool halved, grey;
};
int jpeg_open(struct jpeg_decoder *d, const uint8_t *jpeg, size_t bytes, struct jpeg_info *out,
              struct error *e);
int jpeg_read(struct jpeg_decoder *d, struct jpeg_rectangle *part, struct jpeg_pixels *out,
              struct error *e);

/* Reads only the header. Returns the same errors as jpeg_decode. */
int jpeg_header(struct jpeg_decoder *d, const uint8_t *jpeg, size_t bytes, struct jpeg_info *out,
                struct error *e);

/* Returns whether the image itself, not just a thumbnail, has an end marker. Reads only markers. */
bool jpeg_has_end(const uint8_t *jpeg, size_t bytes);

/* Converts from RGBX to luma, in place, with Pillow's weights: those of ITU-R 601 in 1/65536. */
void jpeg_luma(uint8_t *pixels, size_t count);
