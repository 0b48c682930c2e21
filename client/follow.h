/* Following a job until it ends, by polling the daemon, also over the daemon's restart. */
#ifndef TRAIND_CLIENT_FOLLOW_H
#define TRAIND_CLIENT_FOLLOW_H

#include "client/job.h"

/* Called after each poll that was answered. *job and json are valid during the call only. */
typedef void follow_observer(void *context, const struct job *job, const json_t *json);

/* How long a daemon that had answered before may be away before we give up: a restart of a busy
 * machine and a person who looks for the reason fit in. */
#define FOLLOW_PATIENCE_SECONDS 600

struct follow {
    long id;
    double interval_seconds;
    follow_observer *observe;    /* NULL: nothing to show */
    void (*lost)(void *context); /* before the message about a daemon that is away; NULL: nothing */
    void *context;
};

/* Polls until the job has ended; *json is its last document (new reference). Returns the outcome as
 * job_outcome, or -code with *e filled. */
int follow_job(const struct follow *follow, json_t **json, struct error *e);

/* Ctrl-C says that the job goes on, and exits with 130. */
void follow_on_interrupt(void);

void follow_sleep(double seconds);

#endif
