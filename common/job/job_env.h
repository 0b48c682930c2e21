/*
 * cluster.env: environment variables of a job's ranks. What its names may be whoever sends the
 * document; which of them a daemon takes from its users is a list of its administrator's
 * (daemon/http/access/job_policy.h).
 */
#pragma once

#include <stdbool.h>

#include "common/job/job_spec.h"

#define JOB_ENV_NAME_BYTES 129 /* with its NUL */

/* Copies the name out of "NAME=value" and returns the value, which is a part of it. */
const char *job_env_split(const char *variable, char name[JOB_ENV_NAME_BYTES]);

/* What the document gives a variable; NULL: nothing. */
const char *job_env_value(const struct job_spec *spec, const char *name);

/* True of variables that load code, start programs, name files or decide where programs are found
 * (LD_PRELOAD, PATH, UCX_MODULE_DIR), and of those of launchers: no document may set them. */
bool job_env_is_refused(const char *name);

/* What sets the variable instead, for a message: a key, or words; NULL: nothing does. */
const char *job_env_setter(const char *name);
