/*
 * Random distortions of training images, after crop, size and mirror, on 8-bit pixels (size, size,
 * channels) as Pillow has them:
 *
 * auto_augment trivial: one operation with a random magnitude (Müller and Hutter,
 * arXiv:2103.10158); randaugment: `ops` of them, of one magnitude of 0 to 30 (Cubuk et al.,
 * arXiv:1909.13719). Operations, magnitudes and signs are those of torchvision's
 * TrivialAugmentWide and RandAugment with 31 bins: nearest neighbour, black beyond the edges.
 *
 * color_jitter: then brightness, contrast and saturation, by factors of 1 - color_jitter to 1 +
 * color_jitter each, in this order; hue_jitter: then the hue, by a part of its circle from
 * -hue_jitter to hue_jitter.
 *
 * erasing: at last, with this probability, a rectangle of 2 to 33 % of the image with sides of 0.3
 * to 3.3 becomes the input's 0, the mean colour (Zhong et al., arXiv:1708.04896; torchvision's
 * RandomErasing).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/job/job_spec.h"
#include "common/rng.h"

enum distort_op {
    DISTORT_IDENTITY,
    DISTORT_SHEAR_X, /* magnitude: tangent */
    DISTORT_SHEAR_Y,
    DISTORT_TRANSLATE_X, /* pixels */
    DISTORT_TRANSLATE_Y,
    DISTORT_ROTATE,     /* degrees, counter-clockwise */
    DISTORT_BRIGHTNESS, /* this and the next three: factor - 1 */
    DISTORT_COLOR,
    DISTORT_CONTRAST,
    DISTORT_SHARPNESS,
    DISTORT_POSTERIZE, /* bits that are left */
    DISTORT_SOLARIZE,  /* values from here on are inverted */
    DISTORT_AUTO_CONTRAST,
    DISTORT_EQUALIZE,
    DISTORT_OPS,              /* those of auto_augment */
    DISTORT_HUE = DISTORT_OPS /* part of the circle */
};

struct distort_config {
    enum job_auto_augment auto_augment;
    int ops, magnitude; /* of randaugment */
    double color_jitter, hue_jitter, erasing;
};

/* Whether distort_pixels does anything. */
bool distort_changes_pixels(const struct distort_config *c);

/* scratch: as large as pixels. */
void distort_apply(enum distort_op op, double magnitude, uint8_t *pixels, int size, int channels,
                   uint8_t *scratch);
void distort_pixels(const struct distort_config *c, struct rng *r, uint8_t *pixels, int size,
                    int channels, uint8_t *scratch);

/* image: (size, size, channels), normalised */
void distort_erase(const struct distort_config *c, struct rng *r, float *image, int size,
                   int channels);
