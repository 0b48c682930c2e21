/* Forward and backward of a model */
#pragma once

#include "worker/model/model.h"

/* Training forward with batch statistics; updates the running ones. Returns the mean loss over n
 * images. images (n, S, S, arch_image_channels), floats (bf16 with bf16_images), must stay valid
 * until backward is done. correct (may be NULL) counts top-1 hits. */
double model_forward(struct model *m, const void *images, const int32_t *labels, int n,
                     int *correct);

/* From the next model_forward on, image i is lambda of itself and 1 - lambda of image n-1-i
 * (already mixed by the caller), and its loss is lambda CE(its label) + (1 - lambda) CE(label of
 * n-1-i). Initially 1: not mixed. */
void model_mix(struct model *m, double lambda);

/* Sets the keys of dropout's random numbers for the next model_forward: image i has the stream
 * (seed, its epoch, first_number + indices[i]). indices must stay valid until backward is done;
 * NULL (initially): image i is number i. */
void model_draw(struct model *m, const struct model_draw *draw);

/* Backward of the last model_forward. Gradients are of the mean loss times scale (with 1 /
 * world_size the sum over ranks is the mean over the global batch). Overwrites the buffer, or adds
 * to it if accumulate. */
void model_backward(struct model *m, double scale, bool accumulate, model_grads_ready *ready,
                    void *context);

/* Evaluation forward with running statistics: logits (n, classes). */
void model_predict(struct model *m, const void *images, int n, float *logits);
