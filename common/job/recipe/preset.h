/* Presets: published recipes as fragments of job documents, JSON files in $TRAIND_PRESETS or the
 * installed folder. Besides a job's keys a file has "description", "source", "top1" (the published
 * accuracy) and, if its numbers depend on it, "recipe_images" (the number of training images). */
#pragma once

#include <jansson.h>

#include "common/job/job_spec.h"

const char *preset_folder(void);

/* A job_preset_lookup: the whole document, or for NULL the list of names. Logs a file that cannot
 * be used and treats it as absent. */
json_t *preset_lookup(const char *name, void *context);

/* [{"name", "description", "source", "top1"?, "document"}] by name, for GET /v1/presets, with the
 * fragment alone as document. A new reference. */
json_t *preset_list(void);
