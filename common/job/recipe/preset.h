/*
 * Presets: published recipes as fragments of job documents, one JSON file each, in $TRAIND_PRESETS
 * or else where they were installed. Beside a job's keys a file has "description", "source",
 * "top1", the accuracy that was published, and, if the recipe's numbers depend on it,
 * "recipe_images", the number of training images it was written for. Reads files; no state.
 */
#pragma once

#include <jansson.h>

#include "common/job/job_spec.h"

/* The folder in use. */
const char *preset_folder(void);

/* A job_preset_lookup (context is not used): the file's whole document, or the list of names for
 * NULL. A file that cannot be read or parsed is reported by log_warning and counts as absent. */
json_t *preset_lookup(const char *name, void *context);

/* [{"name", "description", "source", "document"}] with "top1" where it is known, sorted by name:
 * GET /v1/presets. The document is the fragment alone. A new reference; empty when the folder is
 * missing. */
json_t *preset_list(void);
