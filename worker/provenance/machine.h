/*
 * What this machine computes with: processor, kernel, the programs and libraries by their build
 * ids, the kernels they choose, and the environment that decides on these. Of the environment only
 * the variables of one list are told, never all.
 */
#pragma once

#include <stdbool.h>

#include <jansson.h>

#include "common/dataset/dataset.h"

/* {"version", "build_id", "kernels", "openblas", ...} as schema/api/provenance.json describes it,
 * but for hosts and ranks: a new object. in_bf16: the job computes in it. */
json_t *machine_facts(bool in_bf16);

/* {"path", "images", "xxh128", "changed"} of an open data set; null for NULL. A new value. */
json_t *machine_data(const char *path, const struct dataset *data);

/* For train-worker --provenance: prints as one object what a run of this job would find on this
 * machine now, under {"machine", "data", "errors"}. Returns the exit status. */
int machine_print(const char *job_file);
