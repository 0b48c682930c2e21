/*
 * From a decoded image to the normalised square the network sees. Two families, not to be mixed:
 *
 *   tpu          TensorFlow's tpu/models/official/resnet/resnet_preprocessing.py (the BKM's).
 * Training: sample_distorted_bounding_box (aspect 3/4 to 4/3, area 0.08 to 1 of which at least 0.1
 * must be covered, 10 attempts), else, or where the crop is the whole image, the evaluation's crop;
 * flip. Evaluation: the centre square of 224/(224+32) = 0.875 of the short side. TF 1's bicubic
 * resize. torchvision  RandomResizedCrop (area 0.08 to 1, log-uniform aspect 3/4 to 4/3, 10
 * attempts, else a centre crop of the nearest aspect), flip. Evaluation: short side to
 * size*256/224, centre crop. Pillow's antialiased bilinear, 8 bits.
 *
 * Both: /255, minus the mean .485 .456 .406, by the deviation .229 .224 .225. What is done to an
 * image is first written down as a plan, so that a test can repeat it elsewhere, and mixup or other
 * families can change it.
 */
#ifndef TRAIND_WORKER_DATA_AUGMENT_H
#define TRAIND_WORKER_DATA_AUGMENT_H

#include <stdbool.h>

#include "common/job_spec.h"
#include "common/rng.h"
#include "worker/data/resample.h"

/* Crop box, resize the crop to resized_width x resized_height, take the window of the network's
 * size at (left, top) of that, mirror it. */
struct augment_plan {
    struct resample_box box;
    int resized_width, resized_height;
    int left, top;
    bool flip;
};

/* size: of the square, pixels; width and height of the source, at least 1. */
void augment_plan_train(enum job_preprocess family, int width, int height, int size, struct rng *r,
                        struct augment_plan *plan);
void augment_plan_eval(enum job_preprocess family, int width, int height, int size,
                       struct augment_plan *plan);

/* Scratch memory of one thread. */
struct augmenter {
    struct resample_filter rows, columns;
    float *row;
    size_t row_room; /* floats */
};
void augmenter_free(struct augmenter *a);

/* Writes (size, size, 3) floats at out. ERR_NO_MEMORY. */
int augment_apply(struct augmenter *a, enum job_preprocess family, const struct augment_plan *plan,
                  const struct jpeg_pixels *in, int size, float *out, struct error *e);

#endif
