/* Facts about this machine that affect results: processor, kernel, programs and libraries by build
 * id, the engine kernels they choose, and a fixed list of environment variables. */
#pragma once

#include <stdbool.h>

#include <jansson.h>

#include "common/dataset/dataset.h"

/* Returns a new object {"version", "build_id", "kernels", "openblas", ...} as in
 * schema/api/provenance.json, without hosts and ranks. in_bf16: the job computes in bf16. */
json_t *machine_facts(bool in_bf16);

/* Returns a new {"path", "images", "xxh128", "changed"} of an open data set; JSON null for NULL. */
json_t *machine_data(const char *path, const struct dataset *data);

/* Implements train-worker --provenance: prints what a run of this job would use on this machine
 * now, as {"machine", "data", "errors"}. Returns the exit status. */
int machine_print(const char *job_file);
