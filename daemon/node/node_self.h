/*
 * Checks this machine (train-worker --self-check) while no job runs: some time after the
 * daemon's start, then daily. A job's start aborts the check, which would measure nothing
 * useful. Called in the rounds of the job manager's loop.
 */
#pragma once

#include "daemon/job/job.h"
#include "daemon/node/node.h"

struct node_self;

struct node_self_settings {
    double idle_seconds; /* of idling before a check; 0: never check */
    struct node_limits limits;
};

/* worker: the program, borrowed. */
struct node_self *node_self_create(struct store *s, struct job_manager *m, const char *worker);

/* Returns after how many seconds to call again at the latest; INFINITY: at the next event. */
double node_self_round(struct node_self *n, const struct node_self_settings *settings);

/* Aborts a check; NULL is fine. */
void node_self_destroy(struct node_self *n);
