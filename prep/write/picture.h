/*
 * An image as a source has it, made into the JPEG that goes into a record. JPEGs are kept byte for
 * byte, but for what imagenet_to_gcs.py re-encodes too: CMYK, and PNGs (one of ImageNet's is named
 * .JPEG); and, if wanted, but for those that are larger than need be.
 */
#pragma once

#include "common/dataset/tf_example.h"
#include "prep/source/source.h"

struct picture_options {
    int resize;  /* the short side becomes this many pixels where it is longer; 0: never */
    int quality; /* of resized JPEGs, 1..100; what only changes its format gets 100 */
};

/* A thread's decoder, encoder and memory. */
struct picture_maker;

int picture_maker_create(const struct picture_options *options, struct picture_maker **out,
                         struct error *e);
void picture_maker_destroy(struct picture_maker *m); /* NULL is fine */

/* Sets width, height, channels, jpeg and jpeg_bytes of *x; the bytes are the image's or the
 * maker's, valid until its next call. ERR_CORRUPT: no picture, or a truncated one; ERR_TOO_LARGE:
 * over JPEG_PIXELS_MAX pixels; ERR_UNSUPPORTED: other kinds of JPEG. */
int picture_make(struct picture_maker *m, const struct source_image *in, struct tf_example *x,
                 struct error *e);
