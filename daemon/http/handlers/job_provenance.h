/* What the run of a job wrote of its provenance. */
#pragma once

#include <jansson.h>

#include "daemon/http/routes.h"

struct job_provenance {
    struct store_job job;
    json_t *file;          /* RUN/provenance.json, an object; NULL: it has none (yet) */
    const json_t *attempt; /* of it, provenance_attempt; NULL: none */
};

/* RUN/provenance.json, a new object with the list "attempts"; NULL: there is none (yet), or none of
 * at most limit_bytes that can be read. */
json_t *job_provenance_file(const struct request *q, const struct store_job *job,
                            size_t limit_bytes);

/* A job with that file. ERR_NOT_FOUND: there is no such job. A file that cannot be read is as none.
 * Clear in any case. */
int job_provenance_load(const struct request *q, int64_t id, struct job_provenance *p,
                        struct error *e);
void job_provenance_clear(struct job_provenance *p);

/* ERR_CONFLICT: it has not ended, so that not all of its choices are known. */
int job_repro_check(const struct store_job *job, struct error *e);

/* A new object; {"pointer", "value"} of each key that the run decided is appended to pinned. */
json_t *job_repro_document(const struct job_provenance *p, json_t *pinned);
