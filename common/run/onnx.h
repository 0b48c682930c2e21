/* Writes a network with its weights as an ONNX model (https://onnx.ai, IR version 7, opset 13), for
 * programs that serve it. The graph is that of an evaluation: input "input" of the shape (batch,
 * channels, image size, image size), output "output" of the shape (batch, classes): logits. Tensors
 * have their names of the safetensors file. doc/onnx.md describes the facts in metadata_props. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "common/error.h"
#include "common/job/job_spec.h"
#include "common/run/safetensors.h"

/* job: its id; 0: none. path: of the weights, for messages. Holds the largest tensor in memory, not
 * the model. ERR_INVALID: they are not those of the network (weights_check_network);
 * ERR_UNSUPPORTED: the model would exceed the 2 GB of a protobuf message; an error of
 * safetensors_read_floats; ERR_IO or ERR_NO_SPACE. */
int onnx_write(const struct job_spec *spec, int64_t job, struct safetensors *weights,
               const char *path, FILE *out, struct error *e);
