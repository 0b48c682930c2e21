/*
 * Weights in files: safetensors with torchvision's names and shapes, so that a Python user loads
 * them with load_state_dict and a published checkpoint can be trained further or evaluated here.
 */
#pragma once

#include "common/run/safetensors.h"
#include "worker/model/model.h"

/* Writes all tensors and, as torch has it, a num_batches_tracked (0) for every batch norm: 320 of a
 * ResNet-50. */
int model_save(const struct model *m, const char *path, const struct safetensors_meta *meta,
               size_t meta_count, struct error *e);

/* Reads them; num_batches_tracked may be missing. Every name that is missing, unknown or of another
 * shape is named in the error (the first ten), and the model is then unchanged. */
int model_load(struct model *m, const char *path, struct error *e);

/* The same of an open file; path is for messages. */
int model_load_file(struct model *m, struct safetensors *file, const char *path, struct error *e);

/* Laid out as model_params: velocities, gradients. Its tensors are called "NAME.conv1.weight"; ""
 * stands for no name before the tensor's. */
struct model_buffer {
    const char *name; /* at most 16 bytes */
    float *data;
};

/* Writes one or more buffers to a file; reads such a file back, bit for bit. After an error the
 * buffers' content is undefined. */
int model_save_buffers(const struct model *m, const struct model_buffer *buffers, size_t count,
                       const char *path, const struct safetensors_meta *meta, size_t meta_count,
                       struct error *e);
int model_load_buffers(const struct model *m, const struct model_buffer *buffers, size_t count,
                       const char *path, struct error *e);
