/* Confusion matrices of evaluations: how many images of each class (label) were taken for each
 * (predicted); only cells with images. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/store.h"

struct sql;

/* Stores the cells of a `confusion` event, but invalid ones, in the caller's transaction. The first
 * event of an evaluation replaces the cells of its step. */
int confusion_store(struct sql *c, int64_t job_id, const json_t *body, struct error *e);

/* *step: 0 or more; negative: becomes that of the newest evaluation. ERR_NOT_FOUND if the job or
 * the evaluation has no cells. */
int store_confusion_step(struct store *s, int64_t job_id, int64_t *step, struct error *e);

/* Gets the answer of GET /v1/jobs/ID/confusion as text, which the caller frees: as JSON at most
 * `limit` classes and mistakes, as CSV all cells. names: of the classes, a JSON array; NULL:
 * unknown */
int store_confusion_text(struct store *s, int64_t job_id, int64_t step, bool csv, int64_t limit,
                         const char *names, char **text, struct error *e);

/* Gets the position in data.eval of the number-th image, from 0, of a mistake: the most frequent
 * one with this label and predicted class, negative: any. Sets *label to its. ERR_NOT_FOUND. */
int store_confusion_example(struct store *s, int64_t job_id, int64_t step, int64_t *label,
                            int64_t predicted, int64_t number, int64_t *image, struct error *e);
