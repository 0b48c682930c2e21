/*
 * A network of common/net/arch.h on one rank. NHWC, fp32; with precision bf16, activations, their
 * gradients and the operands of the convolutions are bf16 (layers/conv_bf16.h).
 *
 * All parameters are in one flat buffer in forward order, their gradients in a second one of the
 * same layout, which backward completes from its end: an all-reduce bucket is a range of it. A
 * third buffer has the running statistics. model_tensor_export/import convert to torchvision's
 * (OIHW).
 */
#pragma once

#include "worker/model/model_config.h"

struct model;

int model_create(const struct model_config *config, struct model **out, struct error *e);
void model_destroy(struct model *m); /* NULL is fine */

float *model_params(struct model *m);
float *model_grads(struct model *m);
/* Offset of the first weight that is trained; gradients exist from there on. */
size_t model_first_trained(const struct model *m);
size_t model_classifier_offset(const struct model *m); /* of its weights and bias, the last ones */
float *model_stats(struct model *m);                   /* running means and variances */
size_t model_param_count(const struct model *m);       /* floats, including padding */
size_t model_stat_count(const struct model *m);

/* Sets the size of images from now on: image_size, one of more_sizes, or eval_size, each with its
 * own plan of the arena and choice of kernels. Not between model_forward and model_backward. */
void model_use_size(struct model *m, int image_size);

size_t model_memory_bytes(const struct model *m); /* allocated by this model */

/* What the passes, and what else was counted, moved between memory and processor for each image so
 * far, at least; NAN: no image yet. traffic.h says what counts. */
double model_bytes_per_image(const struct model *m);
void model_count_bytes(struct model *m, double bytes);
int model_threads(const struct model *m); /* of its configuration */
