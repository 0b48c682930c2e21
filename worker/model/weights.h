/*
 * Weights in files: safetensors with torchvision's names and shapes, so that a Python user loads
 * them with load_state_dict and a published checkpoint can be trained further or evaluated here.
 */
#ifndef TRAIND_WORKER_MODEL_WEIGHTS_H
#define TRAIND_WORKER_MODEL_WEIGHTS_H

#include "common/safetensors.h"
#include "worker/model/model.h"

/* Writes all tensors and, as torch has it, a num_batches_tracked (0) for every batch norm: 320 of a
 * ResNet-50. */
int model_save(const struct model *m, const char *path, const struct safetensors_meta *meta,
               size_t meta_count, struct error *e);

/* Reads them; num_batches_tracked may be missing. Every name that is missing, unknown or of another
 * shape is named in the error (the first ten), and the model is then unchanged. */
int model_load(struct model *m, const char *path, struct error *e);

/* Writes a buffer laid out as model_params (velocities, gradients) under prefix + name. */
int model_save_buffer(const struct model *m, const float *buffer, const char *prefix,
                      const char *path, const struct safetensors_meta *meta, size_t meta_count,
                      struct error *e);

/* Reads such a file back, bit for bit. After an error the buffer's content is undefined. */
int model_load_buffer(const struct model *m, float *buffer, const char *prefix, const char *path,
                      struct error *e);

#endif
