/* One value of a job document: its check, and its way into struct job_spec and back. */
#pragma once

#include "common/job/job_options.h"

/* Adds at most one problem. True: the value is right. */
bool job_value_check(const struct job_option *option, const json_t *value,
                     struct problems *problems);

/* Stores a valid value, freeing the old one. */
void job_value_store(const struct job_option *option, const json_t *value, struct job_spec *spec);
json_t *job_value_load(const struct job_option *option, const struct job_spec *spec);
void job_value_clear(const struct job_option *option, struct job_spec *spec);
