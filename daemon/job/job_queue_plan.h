/*
 * Which of the waiting jobs may start, and what the others wait for; without clock, store or
 * processes.
 *
 * A job that does not fit yet holds back those behind it. One of those may start before it only if
 * that does not delay it: if it will have ended, by its time limit or the upper end of its
 * prediction, before the running jobs can have made room. A job whose user has reached a limit is
 * passed over: it neither starts nor holds back others.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/job/job.h"
#include "daemon/job/job_forecast.h"

#define QUEUE_REASON_BYTES 320

struct job_hosts;

/* The sort key of a job, lower first, in seconds. priority_seconds: the waiting time that a point
 * of priority is worth; share: the user's part of all use, 0 to 1. Use costs at most weight points,
 * so every job comes first eventually. */
double queue_place(double queued_at, int64_t priority, double priority_seconds,
                   const struct queue_fair_share *fair, double share);

struct queue_running {
    int64_t id, slots;
    bool slurm;               /* takes no slots here, and is not named */
    const char *user;         /* borrowed; NULL: does not count */
    struct forecast_end ends; /* seconds from now */
    const struct job_hosts *hosts;
};

struct queue_waiting {
    int64_t id, slots;
    const char *user;           /* as above */
    double not_before;          /* seconds from now; at most 0: at once */
    struct forecast_end length; /* how long it will run */
};

enum queue_choice {
    QUEUE_STARTS,
    QUEUE_WAITS,  /* with reason and start */
    QUEUE_PAUSES, /* until its not_before; its reason stays */
    QUEUE_NEVER_FITS
};

struct queue_decision {
    enum queue_choice choice;
    bool capped;       /* QUEUE_WAITS: for a limit of its user */
    int64_t overtakes; /* QUEUE_STARTS: the job that it does not delay; 0: none */
    char reason[QUEUE_REASON_BYTES];
    double start; /* seconds from now; INFINITY: not known */
};

struct queue_plan;

/* One look at the queue. running is copied, its hosts and users are not. caps may be NULL: none. */
struct queue_plan *queue_plan_create(int64_t slots, const struct queue_caps *caps,
                                     const struct queue_running *running, size_t count);
void queue_plan_destroy(struct queue_plan *p); /* NULL is fine */

/* Call it for each waiting job, in the order of the queue. */
void queue_plan_decide(struct queue_plan *p, const struct queue_waiting *job,
                       struct queue_decision *decision);

/* For QUEUE_STARTS: false, with the reason, if its hosts are not free; they are kept for it then.
 * hosts must outlive the plan. */
bool queue_plan_hosts(struct queue_plan *p, const struct queue_waiting *job,
                      const struct job_hosts *hosts, struct queue_decision *decision);

/* It has started. */
void queue_plan_started(struct queue_plan *p, const struct queue_waiting *job,
                        const struct job_hosts *hosts);
