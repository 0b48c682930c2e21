/* Separable resampling of 8-bit pixels to normalised floats. For each output along an axis a filter
 * holds the first input and a fixed number of weights; two filters and a crop box define the
 * result. Rows are resampled first (whole rows are added, which vectorises), then columns (the
 * colours of a pixel are a vector of four). */
#pragma once

#include <stdbool.h>

#include "common/error.h"
#include "common/image/jpeg.h"

struct resample_filter {
    int inputs, outputs, taps;
    int *start;     /* (outputs); start + taps <= inputs */
    float *weights; /* (outputs, taps); each row sums to 1 */
    size_t start_room, weights_room;
};

void resample_filter_free(struct resample_filter *f);

/* Filters from `inputs` inputs to `size` outputs, of which only [first, first + count) are made. */

/* Pillow's BILINEAR: a triangle widened by the scale (antialiased). halved: the image is decoded at
 * half size, so the inputs are pairs of pixels, and have the sum of the weights of the two.
 * `inputs` then still counts pixels, from pixel `start` of the image on. */
int resample_filter_triangle(struct resample_filter *f, int start, int inputs, bool halved,
                             int size, int first, int count, struct error *e);

/* TensorFlow 1's tf.image.resize_bicubic (align_corners and half_pixel_centers off, as used by the
 * TPU ResNet): Keys' cubic with a = -0.75, output x at input x * inputs / size, phases rounded to
 * 1/1024, edge pixels repeated, no antialiasing. */
int resample_filter_tf_bicubic(struct resample_filter *f, int inputs, int size, int first,
                               int count, struct error *e);

/* TensorFlow 1's tf.image.resize_bilinear with the same settings (used by MLPerf's reference). */
int resample_filter_tf_bilinear(struct resample_filter *f, int inputs, int size, int first,
                                int count, struct error *e);

/* Reverse the order of the outputs, or of the inputs. TensorFlow's filters are not symmetric, so
 * mirroring before and after resizing differ. */
void resample_filter_flip_outputs(struct resample_filter *f);
void resample_filter_flip_inputs(struct resample_filter *f);

/* Sets [*first, *end) to the inputs that are used. */
void resample_filter_used(const struct resample_filter *f, int *first, int *end);

struct resample_box {
    int x, y, width, height; /* in pixels of the source; the filters' inputs */
};

/* out[c] = value * scale[c] + shift[c], value in 0..255. */
struct resample_output {
    bool round; /* round to whole numbers 0..255 first, like an intermediate 8-bit image */
    float scale[3], shift[3];
    int grey_channels; /* channels of the output for grey pixels: 3 (the value repeated) or 1 */
};

/* Writes (rows->outputs, columns->outputs, 3 or grey_channels) floats. Only the used part of box
 * must be within `in`. row: scratch of box->width * channels + 1 floats. */
void resample(const struct jpeg_pixels *in, const struct resample_box *box,
              const struct resample_filter *rows, const struct resample_filter *columns,
              const struct resample_output *output, float *row, float *out);
