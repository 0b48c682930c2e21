/*
 * Files of weights: which file model.init names, and whether its tensors are those of the job's
 * network, by torchvision's names and shapes.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job/job_spec.h"
#include "common/problem.h"
#include "common/run/safetensors.h"

/* Opens the file that model.init means, beneath data_roots: itself; the model.safetensors of a
 * checkpoint's folder; of the newest checkpoint that is whole, if it is a run directory or its
 * folder checkpoints/. *out: as safetensors_open. ERR_INVALID and errors of open_beneath_file. */
int weights_open(const char *init, char path[PATH_MAX], struct safetensors **out, struct error *e);

/* ERR_INVALID naming each tensor that is missing, of another shape or dtype, or not one of the
 * wanted; counters (I64) may be missing. *e has the first ten; the others are added to rest (NULL:
 * only counted), with the pointer /model/init. arch is for the message. */
int weights_compare(const struct safetensors *file, const struct safetensors_tensor *wanted,
                    size_t count, const char *path, const char *arch, struct problems *rest,
                    struct error *e);

/* Opens the file of spec->model.init, if there is one, compares its header with the network of the
 * job and adds what is wrong to the problems. elsewhere: a file that is not here may be where the
 * job runs, and is no problem. */
void weights_check(const struct job_spec *spec, bool elsewhere, struct problems *problems);

/* The step the weights were saved at, as train-worker writes it; 0: the file does not say. */
int64_t weights_step(const struct safetensors *file);
