/*
 * From a JPEG to the normalised square the network sees. Families, not to be mixed:
 *
 * tpu: TensorFlow's tpu/models/official/resnet/resnet_preprocessing.py (the BKM's). Training:
 * sample_distorted_bounding_box (aspect 3/4 to 4/3, area 0.08 to 1 of which at least 0.1 must be
 * covered, 10 attempts), else, or where the crop is the whole image, the evaluation's crop;
 * resized, then flipped. Evaluation: the centre square of 224/(224+32) = 0.875 of the short side.
 * TF 1's bicubic resize.
 *
 * mlperf: the MLPerf training reference's imagenet_preprocessing.py. Training: the same op (aspect
 * 0.75 to 1.33, area 0.05 to 1, 0.1 covered, 100 attempts, else the whole image); flipped, then
 * resized. Evaluation: short side to size*256/224, centre crop. TF 1's bilinear resize. 0..255
 * minus the mean 123.68 116.78 103.94, no deviation.
 *
 * torchvision: RandomResizedCrop (area 0.08 to 1, log-uniform aspect 3/4 to 4/3, 10 attempts, else
 * a centre crop of the nearest aspect), flip. Evaluation: short side to size*256/224, centre crop.
 * Pillow's antialiased bilinear, 8 bits.
 *
 * whole: the image as it is, as the MNIST examples take it: no crop, in training neither, and no
 * resizing where it has the network's size (else torchvision's filter, both sides by themselves);
 * /255 and nothing more.
 *
 * tpu and torchvision: /255, minus the mean .485 .456 .406, by the deviation .229 .224 .225. What
 * is done to an image is first written down as a plan, so that a test can repeat it elsewhere.
 */
#pragma once

#include <stdbool.h>

#include "common/image/resample.h"
#include "common/job/job_spec.h"
#include "common/rng.h"

/* What training does at random; without the crop it takes the evaluation's. */
struct augment_parts {
    bool crop, flip;
};

/* Crop box, resize the crop to resized_width x resized_height, take the window of the network's
 * size at (left, top) of that, mirror it (mlperf: mirror the crop before it is resized). */
struct augment_plan {
    struct resample_box box;
    int resized_width, resized_height;
    int left, top;
    bool flip;
    bool never_halved; /* by a decoder that only has the whole size; false in a new plan */
};

/* size: of the square, pixels; width and height of the source, at least 1. The flip does not depend
 * on whether there is a crop, nor the crop on the flip. */
void augment_plan_train(enum job_preprocess family, struct augment_parts parts, int width,
                        int height, int size, struct rng *r, struct augment_plan *plan);
void augment_plan_eval(enum job_preprocess family, int width, int height, int size,
                       struct augment_plan *plan);

/* Scratch memory of one thread. */
struct augmenter {
    struct resample_filter rows, columns;
    float *row;
    size_t row_room; /* floats */
};
void augmenter_free(struct augmenter *a);

/* Makes the filters of a plan for augment_apply; *needed gets the part of the image they look at.
 * Where torchvision's crop is four times the result and more, that is the image at half its size:
 * the result stays within 0.5/255 on average of that of the whole. ERR_NO_MEMORY. */
int augment_prepare(struct augmenter *a, enum job_preprocess family,
                    const struct augment_plan *plan, int size, struct jpeg_rectangle *needed,
                    struct error *e);

/* Writes (size, size, 3) floats at out, or one channel of a part that is grey by wish. in: the
 * pixels of a part of the image that holds what is needed. ERR_NO_MEMORY. */
int augment_apply(struct augmenter *a, enum job_preprocess family, const struct augment_plan *plan,
                  const struct jpeg_pixels *in, const struct jpeg_rectangle *part, float *out,
                  struct error *e);
