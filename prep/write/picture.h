/* Makes the JPEG of a record. JPEGs are copied unchanged, except CMYK ones and PNGs, as in
 * imagenet_to_gcs.py (one PNG in ImageNet is named .JPEG), and larger ones if requested. What is
 * encoded has no metadata (EXIF, ICC profile): training ignores it, orientation included. */
#pragma once

#include "common/dataset/tf_example.h"
#include "prep/source/source.h"

struct picture_options {
    int resize;    /* reduce a longer short side to this many pixels; 0: never */
    int quality;   /* of resized JPEGs, 1..100; images that only change their format get 100 */
    bool reencode; /* all get this quality, except JPEGs that would not become smaller */
};

/* Not thread-safe; each thread needs its own. */
struct picture_maker;

int picture_maker_create(const struct picture_options *options, struct picture_maker **out,
                         struct error *e);
void picture_maker_destroy(struct picture_maker *m); /* accepts NULL */

/* Sets width, height, channels, jpeg and jpeg_bytes of *x; the bytes are valid until the next call.
 * ERR_CORRUPT, ERR_TOO_LARGE (JPEG_PIXELS_MAX) or ERR_UNSUPPORTED (kind of JPEG). */
int picture_make(struct picture_maker *m, const struct source_image *in, struct tf_example *x,
                 struct error *e);
