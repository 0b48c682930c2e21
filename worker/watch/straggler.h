/*
 * Finds the rank that holds up the others. In data-parallel training every rank does the same work,
 * so a rank whose own time of a step (waiting for others left out) stays above the median of the
 * others has a slow core, disk or neighbour.
 */
#ifndef TRAIND_WORKER_WATCH_STRAGGLER_H
#define TRAIND_WORKER_WATCH_STRAGGLER_H

#include <stdbool.h>

#include "common/error.h"

#define STRAGGLER_FACTOR 1.5 /* times the median of the other ranks, */
#define STRAGGLER_STEPS  5   /* in so many steps one behind the other */

enum rank_phase { RANK_DATA, RANK_FORWARD, RANK_BACKWARD, RANK_OPTIM, RANK_PHASES };
const char *rank_phase_name(enum rank_phase phase); /* "forward" */

/* What one rank did in one step, without waiting for others. */
struct rank_times {
    double ms[RANK_PHASES];
};
double rank_busy_ms(const struct rank_times *times);

struct straggler {
    int rank;
    enum rank_phase phase; /* where it lost most against the others */
    double busy_ms;        /* its mean of the slow steps */
    double median_ms;      /* the others' */
};

struct stragglers;

int stragglers_create(int world, struct stragglers **out, struct error *e);
void stragglers_destroy(struct stragglers *s); /* NULL is fine */

/* every: (world), a step of all ranks. True: *found has just become a straggler; it is not named
 * again before it was as fast as the others for STRAGGLER_STEPS steps. One rank a step; a second
 * one is named at the next. */
bool stragglers_add(struct stragglers *s, const struct rank_times *every, struct straggler *found);

#endif
