/* Pixels to a JPEG. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Quality 100: of Fashion-MNIST no pixel is off by more than 2 of 255, 0.06 on average (quality 95:
 * 10 and 0.93), for 857 bytes an image instead of 673. */
#define ENCODE_QUALITY_BEST 100

struct encoder;

int encoder_create(struct encoder **out, struct error *e);
void encoder_destroy(struct encoder *c); /* NULL is fine */

/* pixels (height, width, channels), channels 1 (grey) or 3 (RGB). At ENCODE_QUALITY_BEST colour is
 * kept at full resolution, below it is halved as in most photographs. *jpeg is the encoder's, valid
 * until its next call. The same pixels give the same bytes. */
int encode(struct encoder *c, const uint8_t *pixels, int width, int height, int channels,
           int quality, const uint8_t **jpeg, size_t *bytes, struct error *e);
