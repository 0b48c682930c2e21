/* Decides which waiting jobs may start and what the others wait for; has no clock, store or
 * processes.
 *
 * A job that does not fit yet holds back the jobs after it. A later job may start first only if
 * that does not delay the held one: if it will have ended, by its time limit or the upper end of
 * its prediction, before the running jobs free enough slots (backfilling). A job whose user has
 * reached a limit is skipped: it neither starts nor holds back others. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/job/job.h"
#include "daemon/job/job_forecast.h"

#define QUEUE_REASON_BYTES 320

struct job_hosts;

/* Returns the sort key of a job in seconds, lowest first. priority_seconds: the waiting time worth
 * one point of priority; share: the user's share of all use, 0 to 1. Use costs at most `weight`
 * points, so every job gets to the head eventually. */
double queue_place(double queued_at, int64_t priority, double priority_seconds,
                   const struct queue_fair_share *fair, double share);

struct queue_running {
    int64_t id, slots;
    bool slurm;               /* takes no slots here and is never named in reasons */
    const char *user;         /* borrowed; NULL: exempt from limits */
    struct forecast_end ends; /* seconds from now */
    const struct job_hosts *hosts;
};

struct queue_waiting {
    int64_t id, slots;
    const char *user;           /* borrowed; NULL: exempt from limits */
    double not_before;          /* seconds from now; 0 or less: immediately */
    struct forecast_end length; /* forecast run time */
};

enum queue_choice {
    QUEUE_STARTS,
    QUEUE_WAITS,  /* sets reason and start */
    QUEUE_PAUSES, /* until not_before; its reason is kept */
    QUEUE_NEVER_FITS
};

struct queue_decision {
    enum queue_choice choice;
    bool capped;       /* QUEUE_WAITS: because of a per-user limit */
    int64_t overtakes; /* QUEUE_STARTS: job that it overtakes without delaying it; 0: none */
    char reason[QUEUE_REASON_BYTES];
    double start; /* seconds from now; INFINITY: unknown */
};

struct queue_plan;

/* Begins a scheduling pass. Copies `running`, but borrows its hosts and users. caps may be NULL. */
struct queue_plan *queue_plan_create(int64_t slots, const struct queue_caps *caps,
                                     const struct queue_running *running, size_t count);
void queue_plan_destroy(struct queue_plan *p); /* NULL-safe */

/* Decides about one waiting job; call it in queue order. */
void queue_plan_decide(struct queue_plan *p, const struct queue_waiting *job,
                       struct queue_decision *decision);

/* For QUEUE_STARTS. Returns false and sets the reason if its hosts are busy; they are then reserved
 * for it. hosts must outlive the plan. */
bool queue_plan_hosts(struct queue_plan *p, const struct queue_waiting *job,
                      const struct job_hosts *hosts, struct queue_decision *decision);

/* Records that the job has been started. */
void queue_plan_started(struct queue_plan *p, const struct queue_waiting *job,
                        const struct job_hosts *hosts);
