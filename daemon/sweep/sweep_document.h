/* The document of a sweep (sweep.h): checked, and made into the documents of its jobs. Pure. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/problem.h"

#define SWEEP_TRIALS_MAX 1000

/* A copy with the defaults in it; NULL: something is wrong, and added to *problems. */
json_t *sweep_document_check(const json_t *document, struct problems *problems);

/* The functions below take a checked document. */

/* {"lr.base": 0.1, ...} of point `number`; NULL behind the last. */
json_t *sweep_point(const json_t *document, int64_t number);

/* The job document of a point in a rung. */
json_t *sweep_job(const json_t *document, const json_t *point, int64_t rung);

/* The budget of a rung; 0: there is no such rung. */
double sweep_budget(const json_t *document, int64_t rung);

#define HALTON_DIMENSIONS 16 /* above, neighbouring dimensions are correlated over many points */

/* A coordinate in [0, 1) of point `index` of Halton's sequence (1960), shifted by a seed as Cranley
 * and Patterson (1976) do: its first n points leave smaller holes than n independent ones. */
double sweep_halton(int64_t seed, int64_t index, size_t dimension);
