/*
 * Turns an image into the normalised square that is the network's input. Families:
 *
 * tpu: TensorFlow's tpu/models/official/resnet/resnet_preprocessing.py (used by the BKM). Training:
 * sample_distorted_bounding_box (aspect 3/4 to 4/3, area 0.08 to 1 of which at least 0.1 must be
 * covered, 10 attempts), or the evaluation's crop if that fails or yields the whole image; resized,
 * then flipped. Evaluation: the centre square of 224/(224+32) = 0.875 of the short side. TF 1's
 * bicubic resize.
 *
 * mlperf: the MLPerf training reference's imagenet_preprocessing.py. Training: the same op (aspect
 * 0.75 to 1.33, area 0.05 to 1, 0.1 covered, 100 attempts, else the whole image); flipped, then
 * resized. Evaluation: short side to size*256/224, centre crop. TF 1's bilinear resize. Values
 * 0..255 minus the mean 123.68 116.78 103.94, not divided by a deviation.
 *
 * torchvision: RandomResizedCrop (area 0.08 to 1, log-uniform aspect 3/4 to 4/3, 10 attempts, else
 * a centre crop of the nearest aspect), flip. Evaluation: short side to size*256/224, centre crop.
 * Pillow's antialiased bilinear resize with 8 bits.
 *
 * whole: the whole image, as in the MNIST examples: never cropped, resized only if its size differs
 * (torchvision's filter, each axis independently). Values divided by 255 only.
 *
 * tpu and torchvision: values divided by 255, minus the mean .485 .456 .406, divided by the
 * deviation .229 .224 .225. The transformation of an image is first computed as a plan, which a
 * test can apply independently.
 *
 * Mixup (Zhang et al., arXiv:1710.09412) mixes a batch with itself in reverse order, image i with
 * image n-1-i, with one weight for the whole global batch. The loss is that of the soft labels:
 * lambda CE(label of i) + (1 - lambda) CE(label of n-1-i) (model_mix).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/image/resample.h"
#include "common/job/job_spec.h"
#include "common/rng.h"

/* Which random parts apply in training. Without crop, the evaluation's crop is used. */
struct augment_parts {
    bool crop, flip;
};

/* The steps in order: crop the box, resize it to resized_width x resized_height, cut the window of
 * the network's size at (left, top), mirror it (mlperf: mirror before resizing). */
struct augment_plan {
    struct resample_box box;
    int resized_width, resized_height;
    int left, top;
    bool flip;
    bool never_halved; /* set for decoders that only decode at full size */
    bool bytes;        /* set for values 0 to 255, not yet normalised: see augment_normalize */
};

/* Returns whether to mirror an image: the first number drawn from its stream. */
bool augment_draw_flip(struct rng *r);

/* size: side of the resulting square. Flip and crop are drawn independently. */
void augment_plan_train(enum job_preprocess family, struct augment_parts parts, int width,
                        int height, int size, struct rng *r, struct augment_plan *plan);

/* resize: shorter side of the image before the centre is cut; 0: the family's */
void augment_plan_eval(enum job_preprocess family, int width, int height, int size, int resize,
                       struct augment_plan *plan);

struct augmenter {
    struct resample_filter rows, columns;
    float *row;
    size_t row_capacity; /* capacity of row, in floats */
};
void augmenter_free(struct augmenter *a);

/* Makes the filters of a plan for augment_apply, and sets *needed to the rectangle of the image
 * they read. If torchvision's crop is at least 3.5 times the size of the result, the rectangle is
 * of the image decoded at half its size, which changes the result by 0.5/255 on average at most.
 * Returns 0 or ERR_NO_MEMORY. */
int augment_prepare(struct augmenter *a, enum job_preprocess family,
                    const struct augment_plan *plan, int size, struct jpeg_rectangle *needed,
                    struct error *e);

/* Writes (size, size, 3) floats, or (size, size, 1) if part->grey. in: the pixels of `part`. */
int augment_apply(struct augmenter *a, enum job_preprocess family, const struct augment_plan *plan,
                  const struct jpeg_pixels *in, const struct jpeg_rectangle *part, float *out,
                  struct error *e);

/* Writes what augment_apply would have written of these pixels. */
void augment_normalize(enum job_preprocess family, const uint8_t *pixels, size_t count,
                       int channels, float *out);

/* Returns the mixing weight of a step, drawn from Beta(alpha, alpha); the same on all ranks and for
 * all accumulated batches of the step. */
double mixup_lambda(double alpha, int64_t seed, int64_t epoch, int64_t step);

/* CutMix (Yun et al., arXiv:1905.04899) replaces a box of each image by that of image n-1-i. */
struct cutmix_box {
    int left, top, right, bottom; /* right and bottom are outside */
};

/* Draws the box of a step: the same on all ranks and for all accumulated batches. Returns the
 * share of the image that is left (lambda of the labels). */
double cutmix_draw(double alpha, int64_t seed, int64_t epoch, int64_t step, int size,
                   struct cutmix_box *box);

/* `to` may be `from`. channels: numbers per pixel */
void cutmix_images(float *to, const float *from, int n, int size, int channels,
                   const struct cutmix_box *box);

/* Sets to[i] = lambda from[i] + (1 - lambda) from[n-1-i]. `to` may be `from`. */
void mixup_images(float *to, const float *from, int n, size_t floats, double lambda);
