/*
 * Weights in files: safetensors with torchvision's names and shapes, so that a Python user loads
 * them with load_state_dict and a published checkpoint can be trained further or evaluated here.
 */
#pragma once

#include "common/run/safetensors.h"
#include "worker/model/model_config.h"

enum model_tensor_kind {
    MODEL_CONV_WEIGHT,
    MODEL_CONV_BIAS, /* where there is no batch norm */
    MODEL_BN_GAMMA,
    MODEL_BN_BETA,
    MODEL_FC_WEIGHT,
    MODEL_FC_BIAS,
    MODEL_BN_MEAN, /* running; in the statistics buffer, as is the next */
    MODEL_BN_VAR
};

struct model_tensor {
    char name[64]; /* torchvision's: "layer1.0.conv2.weight" */
    enum model_tensor_kind kind;
    int dims;
    int64_t shape[4]; /* torchvision's: (O, I, kh, kw) for convolutions */
    size_t offset;    /* floats, in the parameter (or statistics) buffer */
    size_t count;     /* floats */
    int64_t pixels;   /* of MODEL_FC_WEIGHT: shape[1] is so many pixels times channels, channel by
                         channel in torch and pixel by pixel here */
};

size_t model_tensor_count(const struct model *m); /* trainable ones first, then the statistics */
const struct model_tensor *model_tensor(const struct model *m, size_t i);
void model_tensor_export(const struct model *m, size_t i, float *torch_layout);
void model_tensor_import(struct model *m, size_t i, const float *torch_layout);

/* Lays out all tensors, and fills the table and the offsets of the units. */
void weights_lay_out(struct model *m);

/* ---- files */

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
