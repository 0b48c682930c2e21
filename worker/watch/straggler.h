/* Step times of the ranks, and detection of slow ones: all do the same work, so a rank whose time
 * stays above the median has a slow core or disk, or another busy program on its machine. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/comm/traincomm.h"
#include "worker/report.h"
#include "worker/watch/energy.h"

#define STRAGGLER_STEPS      5   /* steps to detect a rank that takes 1.5 times the median */
#define STRAGGLER_MEAN_STEPS 160 /* steps to detect a rank whose mean is 3 % above the median */

enum rank_phase { RANK_DATA, RANK_FORWARD, RANK_BACKWARD, RANK_OPTIM, RANK_PHASES };
const char *rank_phase_name(enum rank_phase phase);

/* One rank's times in one step, without waiting for other ranks */
struct rank_times {
    double ms[RANK_PHASES];
};
double rank_busy_ms(const struct rank_times *times);

struct straggler {
    int rank;
    int ranks;             /* number of slow ranks on its host, including itself */
    int steps;             /* steps in the means below */
    enum rank_phase phase; /* phase with the largest excess */
    double busy_ms;        /* mean of this rank */
    double median_ms;      /* median of the means of the other ranks */
    double wait_ms;        /* time per step that ranks of other units wait for it */
    double wait_share;     /* wait_ms as a fraction of the step time */
};

struct stragglers;

/* host: (world), the lowest rank on each rank's host. Slow ranks of a host are reported once. */
struct stragglers *stragglers_create(int world, const int *host);
void stragglers_destroy(struct stragglers *s); /* accepts NULL */

/* Adds a step, every: (world), that took step_ms. Returns true and sets *found to the slowest rank
 * if that has just become a straggler. It is reported again only after its excess halved. */
bool stragglers_add(struct stragglers *s, const struct rank_times *every, double step_ms,
                    struct straggler *found);

struct host_pace {
    int first, ranks; /* lowest rank of the host; number of ranks */
    double busy_ms;   /* mean of its ranks */
};

/* Fills hosts (world) with the hosts, slowest first; returns their number. host: see above. */
int host_paces(const struct rank_times *every, const int *host, int world, struct host_pace *hosts);

/* Exchange of the step times. tests/bench/ranks measures its cost per rank and step. */

/* What each rank sends after a step; plain doubles, so that it can be gathered. */
struct rank_step {
    double loss;
    double correct; /* images whose top-1 prediction was right */
    double bad_images;
    struct energy_part energy;
    struct rank_times times;
};

struct rank_timing;

/* Borrows comm and report. */
struct rank_timing *rank_timing_create(struct traincomm *comm, struct report *report);
void rank_timing_destroy(struct rank_timing *p); /* accepts NULL */

/* Returns the mean loss and the sums of the other numbers, and stores the times of each rank.
 * Collective; synchronises the ranks. */
struct rank_step rank_timing_gather(struct rank_timing *p, const struct rank_step *mine);

/* Adds slowest_rank and each rank's rank_busy_ms to the step event; with too many ranks, the
 * slowest hosts (means of their ranks) and the median host instead. */
void rank_timing_report(const struct rank_timing *p);

/* Writes a `straggler` event and a warning if a rank has just become a straggler. Rank 0 only. */
int straggler_report(struct rank_timing *p, int64_t step, double step_ms, struct error *e);
