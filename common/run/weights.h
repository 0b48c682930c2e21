/* Which weight file model.init names, and whether its tensors fit the job's network. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job/job_spec.h"
#include "common/problem.h"
#include "common/run/safetensors.h"

/* Opens the file of model.init beneath data_roots: the file itself; model.safetensors of a
 * checkpoint; or that of the newest complete checkpoint of a run directory or its checkpoints/.
 * *out: as safetensors_open. ERR_INVALID and the errors of open_beneath_file. */
int weights_open(const char *init, char path[PATH_MAX], struct safetensors **out, struct error *e);

int weights_compare(const struct safetensors *file, const struct safetensors_tensor *wanted,
                    size_t count, const char *path, const char *arch, struct problems *rest,
                    struct error *e);

/* Compares the file of spec->model.init, if any, with the job's network and adds mismatches to
 * problems. elsewhere: a missing file is no problem, as the job may run on other machines. */
void weights_check(const struct job_spec *spec, bool elsewhere, struct problems *problems);

/* The step at which train-worker saved the weights; 0: not in the file. */
int64_t weights_step(const struct safetensors *file);
