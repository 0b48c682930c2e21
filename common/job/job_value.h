/* Checks one value of a job document, and converts it to and from struct job_spec. */
#pragma once

#include "common/job/job_options.h"

/* Adds at most one problem. Returns whether the value is valid. */
bool job_value_check(const struct job_option *option, const json_t *value,
                     struct problems *problems);

/* Stores a valid value and frees the old one. */
void job_value_store(const struct job_option *option, const json_t *value, struct job_spec *spec);
json_t *job_value_load(const struct job_option *option, const struct job_spec *spec);
void job_value_clear(const struct job_option *option, struct job_spec *spec);
