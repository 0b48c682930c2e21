/* Finds the weight file for model.init and checks that its tensors fit the job's network. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job/job_spec.h"
#include "common/problem.h"
#include "common/run/safetensors.h"

/* Opens the file for model.init beneath data_roots: the file itself; model.safetensors of a
 * checkpoint; or that of the best or newest complete checkpoint of a run directory or checkpoints/.
 * Sets *out as safetensors_open does; names lose the prefixes of PyTorch's wrappers. Returns
 * ERR_INVALID or an error of open_beneath_file. */
int weights_open(const char *init, char path[PATH_MAX], struct safetensors **out, struct error *e);

/* Metadata of the file, which its tensors do not show: "true" or "false"; absent: not known */
#define WEIGHTS_BLUR_POOL "blur_pool"

/* Checks that the file has the tensors of the job's network and no others. path is used in
 * messages. ERR_INVALID. */
int weights_check_network(const struct safetensors *file, const struct job_spec *spec,
                          const char *path, struct error *e);

/* classifier: tensors of the layer with this name ("fc") need not be there nor fit; NULL: they
 * must. */
int weights_compare(const struct safetensors *file, const struct safetensors_tensor *wanted,
                    size_t count, const char *path, const char *arch, bool blur_pool,
                    const char *classifier, struct problems *rest, struct error *e);

/* Returns the name of the network's classifier if a training that begins with these weights (NULL:
 * none) must draw it anew, because the file has one for another number of classes or none; else
 * NULL. Then writes what happens into text, for the user. */
const char *weights_new_classifier(const struct job_spec *spec, const struct safetensors *file,
                                   char text[ERROR_TEXT_BYTES]);

/* Compares the file for spec->model.init, if set, with the job's network and adds mismatches to
 * problems. elsewhere: ignore a missing file, as the job may run on other machines. */
void weights_check(const struct job_spec *spec, bool elsewhere, struct problems *problems);

/* Returns the step at which train-worker saved the weights; 0: not in the file. */
int64_t weights_step(const struct safetensors *file);
