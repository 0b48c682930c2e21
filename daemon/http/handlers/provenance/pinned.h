/* The document that repeats a job, with every choice that its run made written into it. */
#pragma once

#include "daemon/http/handlers/provenance/job_provenance.h"

/* ERR_CONFLICT: it has not ended, so that not all of its choices are known. */
int pinned_check(const struct store_job *job, struct error *e);

/* A new object; {"pointer", "value"} of each key that the run decided is appended to pinned. */
json_t *pinned_document(const struct job_provenance *p, json_t *pinned);
