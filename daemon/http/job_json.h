/* A job as the API tells it: one flat object; documents stand under "spec" and "plan". */
#ifndef TRAIND_DAEMON_HTTP_JOB_JSON_H
#define TRAIND_DAEMON_HTTP_JOB_JSON_H

#include <jansson.h>

#include "daemon/store/store.h"

/* Numbers and times that are not there yet are null. A new reference. */
json_t *job_to_json(const struct store_job *job);

#endif
