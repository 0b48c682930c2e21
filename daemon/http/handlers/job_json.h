/* A job as the API tells it: one flat object; documents stand under "spec" and "plan". */
#pragma once

#include "daemon/http/json_text.h"
#include "daemon/http/reply.h"
#include "daemon/http/routes.h"
#include "daemon/store/job_row.h"

/* Its members, for an object that is open. Numbers and times that are not there yet are null. */
void job_members(struct json_text *t, const struct request *q, const struct store_job *job);

/* The whole answer; clears the job. */
int reply_job(struct reply *r, const struct request *q, int status, struct store_job *job,
              struct error *e);
