/*
 * What the end of an attempt means for its job: an end, another attempt, or the next allocation.
 * Pure, as life.h is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/launch/failure.h"

#define RESTART_DELAY_MAX_SECONDS 600.0
#define LIFE_REASON_BYTES         (2 * FAILURE_TEXT_BYTES + 256)

/* What is known of the job at that time. */
struct life_history {
    int64_t restarts, restarts_max;
    double restart_delay_seconds; /* before the first one */
    int64_t checkpoint;           /* the step it would go on from; 0: none */
    bool trains;                  /* else it evaluates, which has no checkpoints */
    bool ran;                     /* the attempt had a folder to write into */
    bool resumes;                 /* the attempt itself went on from a checkpoint */
    bool keeps_slurm;             /* Slurm starts the next attempt by itself */
    const char *first_failure;    /* the reason of the first attempt that failed; NULL: none */
};

struct life_end {
    enum job_state to;              /* an end, or queued */
    bool restarts;                  /* counts as one */
    bool goes_on;                   /* queued again too, but counts as nothing */
    bool failed;                    /* the verdict is the job's failure, if it is the first */
    bool resumes;                   /* the next attempt */
    double pause_seconds;           /* before the next attempt */
    char reason[LIFE_REASON_BYTES]; /* "": nothing to say */
};

void life_end_of(const struct verdict *verdict, const struct life_history *history,
                 struct life_end *end);

/* The pause before a restart, after so many others. */
double life_restart_delay(double restart_delay_seconds, int64_t restarts);
