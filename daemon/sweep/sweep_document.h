/* Validates a sweep's document (sweep.h) and generates the documents of its jobs. Pure
 * functions. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/problem.h"

#define SWEEP_TRIALS_MAX 1000

/* Returns a copy with the defaults filled in, or NULL with *problems. */
json_t *sweep_document_check(const json_t *document, struct problems *problems);

/* The functions below require a validated document. */

/* Returns point `number`, for example {"lr.base": 0.1}; NULL past the last one
 * (method tpe: of the first n_startup, which are drawn as those of method random). */
json_t *sweep_point(const json_t *document, int64_t number);

/* Returns point `index` of method tpe, drawn with the seed; points: those with a result, best
 * first. */
json_t *sweep_tpe_point(const json_t *document, const json_t *points, int64_t index);

/* Returns whether a job of a higher rung continues the one of the rung before. All rungs have the
 * schedule of the largest budget then, as in ASHA (Li et al. 2020), and a rung stops at its part.
 */
bool sweep_continues(const json_t *document);

/* Returns the job document of a point in a rung. before: its job in the rung before; 0: none. */
json_t *sweep_job(const json_t *document, const json_t *point, int64_t rung, int64_t before);

/* Returns the budget of a rung; 0: there is no such rung. */
double sweep_budget(const json_t *document, int64_t rung);

#define HALTON_DIMENSIONS 16 /* in more dimensions, neighbours are correlated over many points */

/* Returns a coordinate in [0, 1) of point `index` of Halton's sequence (1960), shifted by a seed
 * (Cranley and Patterson 1976). Its first n points leave smaller gaps than n independent ones. */
double sweep_halton(int64_t seed, int64_t index, size_t dimension);
