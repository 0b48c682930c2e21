#pragma once

#include "client/job.h"

/* Called after the job has been read, after its events, and at heartbeats. *job is up to date, and
 * valid only during the call. */
typedef void follow_observer(void *context, const struct job *job);

struct follow {
    long id;
    follow_observer *observe; /* NULL: nothing to show */
    double interval_seconds;  /* minimum time between two calls; the last event is always shown */
    void *context;
};

/* Follows a job until it has ended. Returns the outcome as job_outcome, with its last document in
 * *json (a new reference), or -code with *e set. Installs follow_on_interrupt. */
int follow_job(const struct follow *follow, json_t **json, struct error *e);

/* Makes Ctrl-C print that the job continues and how to stop it, and exit with 130. */
void follow_on_interrupt(void);
void follow_interrupted(void);               /* prints that text */
void follow_keep_job(const struct job *job); /* sets that text, depending on the job's state */
