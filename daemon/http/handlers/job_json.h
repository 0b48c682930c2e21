/* Writes a job as JSON: a flat object, with the documents in "spec" and "plan". */
#pragma once

#include "daemon/http/json_text.h"
#include "daemon/http/reply.h"
#include "daemon/http/routes.h"
#include "daemon/store/job_row.h"

/* Writes the members into an open object. */
void job_members(struct json_text *t, const struct request *q, const struct store_job *job);

/* Clears the job. */
int reply_job(struct reply *r, const struct request *q, int status, struct store_job *job,
              struct error *e);
