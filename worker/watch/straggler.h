/*
 * Finds the rank that holds up the others. In data-parallel training every rank does the same work,
 * so a rank whose own time of a step (waiting for others left out) stays above the median of the
 * others has a slow core, disk or neighbour.
 */
#pragma once

#include <stdbool.h>

#include "common/error.h"

#define STRAGGLER_STEPS      5   /* of a gross one, which takes half as long again as the median */
#define STRAGGLER_MEAN_STEPS 160 /* of one that takes 3 % longer in their mean */

enum rank_phase { RANK_DATA, RANK_FORWARD, RANK_BACKWARD, RANK_OPTIM, RANK_PHASES };
const char *rank_phase_name(enum rank_phase phase); /* "forward" */

/* What one rank did in one step, without waiting for others. */
struct rank_times {
    double ms[RANK_PHASES];
};
double rank_busy_ms(const struct rank_times *times);

struct straggler {
    int rank;
    int ranks;             /* of its host that are slow, itself among them */
    int steps;             /* that the means are of */
    enum rank_phase phase; /* where it lost most against the others */
    double busy_ms;        /* its mean */
    double median_ms;      /* of the others' means */
    double wait_ms;        /* a step: the others, but for those that are slow too, wait for it */
    double wait_share;     /* that part of the steps' time */
};

struct stragglers;

/* host: (world), for each rank the lowest one on its host. Ranks of a host are named together, if
 * there are several hosts. */
int stragglers_create(int world, const int *host, struct stragglers **out, struct error *e);
void stragglers_destroy(struct stragglers *s); /* NULL is fine */

/* every: (world), a step of all ranks, which took step_ms. True: *found has just become a
 * straggler, the slowest if there are several. It is not named again before it is half as slow. */
bool stragglers_add(struct stragglers *s, const struct rank_times *every, double step_ms,
                    struct straggler *found);

struct host_pace {
    int first, ranks; /* its lowest rank, and how many it has */
    double busy_ms;   /* their mean */
};

/* host: as above. hosts (world) becomes the hosts, the slowest first; how many. */
int host_paces(const struct rank_times *every, const int *host, int world, struct host_pace *hosts);
