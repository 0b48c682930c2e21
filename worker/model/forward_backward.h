/* Forward and backward of a model */
#pragma once

#include "worker/model/model.h"

/* Training forward with batch statistics; updates the running ones. Returns the mean loss over the
 * n images. images (n, S, S, arch_image_channels), floats (or bf16: bf16_images), must stay valid
 * until backward is done. correct (NULL: not wanted) counts top-1 hits. */
double model_forward(struct model *m, const void *images, const int32_t *labels, int n,
                     int *correct);

/* From the next model_forward on, image i of a batch is lambda of itself and 1 - lambda of image
 * n-1-i (the caller has mixed them), and its loss is lambda CE(its label) + (1 - lambda) CE(label
 * of n-1-i). 1, as at first: not mixed. */
void model_mix(struct model *m, double lambda);

/* Names the images of the next model_forward for the random numbers of dropout: image i has the
 * stream (seed, its epoch, first_number + indices[i]). indices must stay valid until backward is
 * done; NULL, as at first: image i is number i. */
void model_draw(struct model *m, const struct model_draw *draw);

/* Backward of the last model_forward. Gradients are of the mean loss times scale (1 / world_size
 * makes a sum over ranks the mean over the global batch); they overwrite the buffer, or are added
 * to it if accumulate. */
void model_backward(struct model *m, double scale, bool accumulate, model_grads_ready *ready,
                    void *context);

/* Evaluation forward with running statistics: logits (n, classes). */
void model_predict(struct model *m, const void *images, int n, float *logits);
