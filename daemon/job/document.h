/* The stored document of a job. */
#pragma once

#include <jansson.h>

#include "common/job/job_spec.h"
#include "daemon/store/job_row.h"

/* It was valid when it was taken, so a problem comes from another version. */
struct job_spec *job_stored_spec(const struct store_job *job, struct error *e);

char *job_json_text(json_t *value); /* steals the reference; the caller frees the text */
