/*
 * This machine checks itself (train-worker --self-check) while no job runs: some time after the
 * daemon's start, then once a day. A job that starts meanwhile ends the check, whose figures would
 * say nothing. Driven by the rounds of the job manager's loop, on its thread.
 */
#pragma once

#include "daemon/job/job.h"
#include "daemon/node/node.h"

struct node_self;

struct node_self_settings {
    double idle_seconds; /* without a job before it is checked; 0: never */
    struct node_limits limits;
};

/* worker: the program, borrowed. */
struct node_self *node_self_create(struct store *s, struct job_manager *m, const char *worker);

/* What there is to do now. Returns after how many seconds to call again at the latest; INFINITY:
 * whenever something happens. */
double node_self_round(struct node_self *n, const struct node_self_settings *settings);

/* Ends a check under way; NULL is fine. */
void node_self_destroy(struct node_self *n);
