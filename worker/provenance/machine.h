/* What this machine computes with: processor, kernel, programs and libraries by build id, the
 * kernels they choose, and a fixed list of environment variables. */
#pragma once

#include <stdbool.h>

#include <jansson.h>

#include "common/dataset/dataset.h"

/* Returns a new object {"version", "build_id", "kernels", "openblas", ...} as in
 * schema/api/provenance.json, without hosts and ranks. in_bf16: the job computes in it. */
json_t *machine_facts(bool in_bf16);

/* {"path", "images", "xxh128", "changed"} of an open data set, a new value; null for NULL. */
json_t *machine_data(const char *path, const struct dataset *data);

/* train-worker --provenance: prints what a run of this job would find on this machine now, as
 * {"machine", "data", "errors"}. Returns the exit status. */
int machine_print(const char *job_file);
