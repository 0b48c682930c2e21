#pragma once

#include "worker/model/model.h"

/* Training forward with batch statistics; updates the running ones. Returns the mean loss over n
 * images (n, S, S, channels), floats (bf16 with bf16_images), which must stay valid until backward
 * is done. correct (may be NULL) counts top-1 hits. */
double model_forward(struct model *m, const void *images, const int32_t *labels, int n,
                     int *correct);

/* From the next model_forward on, the loss of image i is lambda CE(its label) + (1 - lambda)
 * CE(label of n-1-i); the caller mixes the images. Initially 1: not mixed. */
void model_mix(struct model *m, double lambda);

/* From the next model_forward on, the loss has class weights (kernels/softmax_loss.h), which must
 * stay valid; NULL: none. */
void model_weigh_classes(struct model *m, const double *weights);

/* Keys of dropout's random numbers for the next model_forward: image i has the stream (seed, its
 * epoch, first_number + indices[i]). indices must stay valid until backward is done; NULL: i. */
void model_draw(struct model *m, const struct model_draw *draw);

/* Backward of the last model_forward: gradients of the mean loss times scale (1 / world_size for
 * the mean over the global batch). Overwrites the buffer, or adds to it if accumulate. */
void model_backward(struct model *m, double scale, bool accumulate, model_grads_ready *ready,
                    void *context);

/* Evaluation forward with running statistics: logits (n, classes). */
void model_predict(struct model *m, const void *images, int n, float *logits);
