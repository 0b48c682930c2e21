/* Writes a network with its weights as an ONNX model (https://onnx.ai, IR version 7, opset 13), for
 * programs that serve it. The graph is that of an evaluation: input "input" of the shape (batch,
 * channels, image size, image size), output "output" of the shape (batch, classes): logits. Tensors
 * have their names of the safetensors file. */
#pragma once

#include <stdio.h>

#include "common/error.h"
#include "common/job/job_spec.h"
#include "common/net/arch.h"
#include "common/run/safetensors.h"

/* Facts about the model (metadata_props). */
struct onnx_property {
    const char *key, *value;
};

/* Holds the largest tensor in memory, not the model. ERR_CORRUPT: a tensor is missing or has
 * another shape; ERR_UNSUPPORTED: the model would exceed the 2 GB of a protobuf message; an error
 * of safetensors_read_floats; ERR_IO or ERR_NO_SPACE. */
int onnx_write(const struct arch_shape *shape, struct safetensors *weights,
               const struct onnx_property *properties, size_t count, FILE *out, struct error *e);

/* How a pixel x from 0 to 255 becomes a value of the input, as a formula; channels are red, green,
 * blue. */
const char *onnx_pixels(enum job_preprocess preprocess);
