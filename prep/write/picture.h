/* Makes the JPEG of a record. JPEGs are kept byte for byte, except CMYK and PNGs, as in
 * imagenet_to_gcs.py (one of ImageNet's is named .JPEG), and on request larger ones. */
#pragma once

#include "common/dataset/tf_example.h"
#include "prep/source/source.h"

struct picture_options {
    int resize;  /* the short side becomes this many pixels where it is longer; 0: never */
    int quality; /* of resized JPEGs, 1..100; what only changes its format gets 100 */
};

/* For one thread. */
struct picture_maker;

int picture_maker_create(const struct picture_options *options, struct picture_maker **out,
                         struct error *e);
void picture_maker_destroy(struct picture_maker *m); /* NULL is fine */

/* Sets width, height, channels, jpeg and jpeg_bytes of *x; the bytes are valid until the next call.
 * ERR_CORRUPT; ERR_TOO_LARGE: over JPEG_PIXELS_MAX; ERR_UNSUPPORTED: another kind of JPEG. */
int picture_make(struct picture_maker *m, const struct source_image *in, struct tf_example *x,
                 struct error *e);
