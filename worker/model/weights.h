/* Named tensors of a model, and their safetensors files with torchvision's names and shapes */
#pragma once

#include "common/run/safetensors.h"
#include "worker/model/model_config.h"

enum model_tensor_kind {
    MODEL_CONV_WEIGHT,
    MODEL_CONV_BIAS, /* without batch norm */
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
    int64_t pixels; /* of MODEL_FC_WEIGHT: shape[1] is pixels times channels, channel-major in torch
                       and pixel-major here */
};

size_t model_tensor_count(const struct model *m); /* trainable ones first, then the statistics */
const struct model_tensor *model_tensor(const struct model *m, size_t i);
void model_tensor_export(const struct model *m, size_t i, float *torch_layout);
void model_tensor_import(struct model *m, size_t i, const float *torch_layout);

/* Lays out all tensors: fills the table and the offsets of the units. */
void weights_lay_out(struct model *m);

/* ---- files */

/* Writes all tensors and, as torch does, a num_batches_tracked (0) per batch norm */
int model_save(const struct model *m, const char *path, const struct safetensors_meta *meta,
               size_t meta_count, struct error *e);

/* Reads them; num_batches_tracked may be missing. The error lists the first ten missing, unknown or
 * misshapen names; the model is then unchanged. */
int model_load(struct model *m, const char *path, struct error *e);

/* From an open file; path is for messages. classifier: its name, to leave it as it is whatever the
 * file has (weights_new_classifier); NULL: it must fit. */
int model_load_file(struct model *m, struct safetensors *file, const char *path,
                    const char *classifier, struct error *e);

/* A buffer laid out as model_params; tensors are "NAME.conv1.weight", or as the model's for "".
 * Files have only those of the weights that are trained. */
struct model_buffer {
    const char *name; /* at most 16 bytes */
    float *data;
};

/* Writes buffers to a file, or reads them back bit for bit (undefined after an error) */
int model_save_buffers(const struct model *m, const struct model_buffer *buffers, size_t count,
                       const char *path, const struct safetensors_meta *meta, size_t meta_count,
                       struct error *e);
int model_load_buffers(const struct model *m, const struct model_buffer *buffers, size_t count,
                       const char *path, struct error *e);
