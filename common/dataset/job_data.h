/* What a job document leaves to its training data, the one place of these defaults; the rules:
 * man/train-job.5, Defaults from the data. */
#pragma once

#include <jansson.h>

#include "common/error.h"
#include "common/job/job_spec.h"
#include "common/problem.h"

/* Puts into a document (an object) what neither it nor its preset states, and the data here say.
 * Returns what it was: explanations of a plan. */
json_t *job_data_complete(json_t *document);

/* job_spec_read with presets, of the document that this completes. */
struct job_spec *job_data_read(json_t *document, struct problems *problems);

/* The same of a file. NULL with *e filled, if anything is wrong. */
struct job_spec *job_data_load(const char *path, struct error *e);
