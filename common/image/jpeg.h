/* JPEG decoding by libjpeg-turbo: exact (slow integer DCT, fancy upsampling), as Pillow and
 * TensorFlow decode for training. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define JPEG_PIXELS_MAX 100000000 /* width x height: more is refused before memory is taken */
#define JPEG_SCANS_MAX  100       /* a photograph has about 10; each costs a pass over the image */

struct jpeg_pixels {
    const uint8_t *data; /* (height, width, channels); valid until the decoder's next call */
    int width, height;
    int channels; /* 1: grey; 3: RGB; 4: RGB and a byte of nothing. CMYK and YCCK become RGB */
};

struct jpeg_info {
    int width, height;
    int channels; /* as stored: 1, 3 or 4 */
};

/* Keeps tables and pixel memory between images. One thread at a time. */
struct jpeg_decoder;

int jpeg_decoder_create(struct jpeg_decoder **out, struct error *e);
void jpeg_decoder_destroy(struct jpeg_decoder *d); /* NULL is fine */

/* ERR_CORRUPT: not a JPEG, truncated, or broken data; ERR_TOO_LARGE: over JPEG_PIXELS_MAX or
 * JPEG_SCANS_MAX; ERR_UNSUPPORTED: another colour space. */
int jpeg_decode(struct jpeg_decoder *d, const uint8_t *jpeg, size_t bytes, struct jpeg_pixels *out,
                struct error *e);

/*
 * Decodes a part in two steps: jpeg_open reads the header and borrows the JPEG; jpeg_read decodes
 * the part, bit for bit as jpeg_decode, to 1 or 4 channels. It widens the part to what is decoded
 * anyway. Later rows are not decoded unless the JPEG has no end marker, so that a truncated one is
 * always refused.
 *
 * halved: decodes at half size (rounded up) by libjpeg's smaller inverse DCT; the part is in those
 * pixels. grey: the luma (ITU-R 601) of a colour image, one channel.
 */
struct jpeg_rectangle {
    int x, y, width, height;
    bool halved, grey;
};
int jpeg_open(struct jpeg_decoder *d, const uint8_t *jpeg, size_t bytes, struct jpeg_info *out,
              struct error *e);
int jpeg_read(struct jpeg_decoder *d, struct jpeg_rectangle *part, struct jpeg_pixels *out,
              struct error *e);

/* Reads the header only; the same errors. */
int jpeg_header(struct jpeg_decoder *d, const uint8_t *jpeg, size_t bytes, struct jpeg_info *out,
                struct error *e);

/* Whether the picture's end marker is there, not just a thumbnail's. Reads the markers only. */
bool jpeg_has_end(const uint8_t *jpeg, size_t bytes);

/* In place, from RGBX to luma with Pillow's weights, those of ITU-R 601 in 1/65536. */
void jpeg_luma(uint8_t *pixels, size_t count);
