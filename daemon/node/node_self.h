/* Checks this machine (train-worker --self-check) while no job runs: some time after the daemon's
 * start, then daily. The start of a job aborts a check, which would measure nothing useful. Called
 * in the rounds of the job manager's loop. */
#pragma once

#include "daemon/job/job.h"
#include "daemon/node/node.h"

struct node_self;

struct node_self_settings {
    double idle_seconds; /* idle time before a check; 0: never check */
    struct node_limits limits;
};

/* worker: path of the program, borrowed. */
struct node_self *node_self_create(struct store *s, struct job_manager *m, const char *worker);

/* Returns the maximum number of seconds until the next call; INFINITY: at the next event. */
double node_self_round(struct node_self *n, const struct node_self_settings *settings);

/* Aborts a running check. NULL-safe. */
void node_self_destroy(struct node_self *n);
