/* Presets: published recipes as fragments of job documents, JSON files in $TRAIND_PRESETS or the
 * installed folder. Besides keys of a job a file has "description", "source", "top1" (the published
 * accuracy), "top1_by_epoch" (that after some epochs, [[epoch, top1], ...]) and, if its numbers
 * depend on it, "recipe_images" (the number of training images). */
#pragma once

#include <jansson.h>

#include "common/job/job_spec.h"

const char *preset_folder(void);

/* A job_preset_lookup: returns the whole document, or for NULL the list of names. Logs an invalid
 * file and treats it as absent. */
json_t *preset_lookup(const char *name, void *context);

/* Removes all but the keys of a job. */
void preset_leave_job(json_t *preset);

/* Returns a new reference to [{"name", "description", "source", "top1"?, "top1_by_epoch"?,
 * "document"}], sorted by name, for GET /v1/presets. document: only the keys of a job. */
json_t *preset_list(void);
