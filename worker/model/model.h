/*
 * A network of common/net/arch.h: forward, loss, backward, on one rank. NHWC; convolutions are
 * matrix products, by the engine's kernels or im2col and OpenBLAS (layers/conv.h). All is fp32;
 * with precision bf16, activations, their gradients and what the convolutions multiply are bf16
 * (layers/conv_bf16.h).
 *
 * All parameters lie in one flat buffer in forward order, their gradients in a second one of the
 * same layout, so that an all-reduce bucket is a range of it; backward completes gradients from the
 * end of the buffer to its beginning. Running statistics lie in a third. Storage layouts are the
 * engine's own; model_tensor_export/import convert to torchvision's (OIHW).
 */
#pragma once

#include "worker/model/model_config.h"

struct model;

int model_create(const struct model_config *config, struct model **out, struct error *e);
void model_destroy(struct model *m); /* NULL is fine */

float *model_params(struct model *m);
float *model_grads(struct model *m);
float *model_stats(struct model *m);             /* running means and variances */
size_t model_param_count(const struct model *m); /* floats, padding included */
size_t model_stat_count(const struct model *m);

/* From now on images have this size: image_size, one of more_sizes, or eval_size. Weights, running
 * statistics and gradients stay; every size has its own plan of the one arena and its own choice of
 * kernels, made once by model_create. Not between a model_forward and its model_backward. */
void model_use_size(struct model *m, int image_size);

/* In training, use the running statistics instead of the batch's (and leave them alone): for tests
 * of exactness and fine-tuning. */
void model_freeze_bn(struct model *m, bool frozen);

size_t model_memory_bytes(const struct model *m); /* what this model allocated */
int model_threads(const struct model *m);         /* of its configuration */
