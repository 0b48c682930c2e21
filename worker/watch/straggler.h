/* Step times of the ranks, and the rank that holds up the others: every rank does the same work, so
 * one whose own time stays above the median has a slow core, disk or neighbour. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/comm/traincomm.h"
#include "worker/report.h"
#include "worker/watch/energy.h"

#define STRAGGLER_STEPS      5   /* for a rank that takes 1.5 times the median */
#define STRAGGLER_MEAN_STEPS 160 /* for a rank whose mean is 3 % above it */

enum rank_phase { RANK_DATA, RANK_FORWARD, RANK_BACKWARD, RANK_OPTIM, RANK_PHASES };
const char *rank_phase_name(enum rank_phase phase);

/* One rank's times in one step, without waiting for others */
struct rank_times {
    double ms[RANK_PHASES];
};
double rank_busy_ms(const struct rank_times *times);

struct straggler {
    int rank;
    int ranks;             /* slow ranks on its host, itself included */
    int steps;             /* averaged over */
    enum rank_phase phase; /* where it lost most */
    double busy_ms;        /* its mean */
    double median_ms;      /* median of the others' means */
    double wait_ms;        /* per step: what ranks of other units wait for it */
    double wait_share;     /* as a fraction of the step time */
};

struct stragglers;

/* host: (world), the lowest rank on each rank's host. Slow ranks of one host are reported
 * together. */
struct stragglers *stragglers_create(int world, const int *host);
void stragglers_destroy(struct stragglers *s); /* NULL is fine */

/* every: (world), one step, which took step_ms. Returns true with *found, the slowest one, if a
 * rank has just become a straggler. It is reported again only after its excess has halved. */
bool stragglers_add(struct stragglers *s, const struct rank_times *every, double step_ms,
                    struct straggler *found);

struct host_pace {
    int first, ranks; /* its lowest rank, and its number of ranks */
    double busy_ms;   /* mean of its ranks */
};

/* host: as above. Fills hosts (world) with the hosts, slowest first, and returns their number. */
int host_paces(const struct rank_times *every, const int *host, int world, struct host_pace *hosts);

/* Exchange of the step times. tests/bench/ranks measures its cost per rank and step. */

/* What each rank tells the others after a step; plain doubles, for a gather. */
struct rank_step {
    double loss;
    double correct; /* images with the label in first place */
    double bad_images;
    struct energy_part energy;
    struct rank_times times;
};

struct rank_timing;

/* Borrows comm and report. */
struct rank_timing *rank_timing_create(struct traincomm *comm, struct report *report);
void rank_timing_destroy(struct rank_timing *p); /* NULL is fine */

/* Returns the mean loss and the sums of the other numbers, and keeps each rank's times. Collective;
 * synchronises the ranks. */
struct rank_step rank_timing_gather(struct rank_timing *p, const struct rank_step *mine);

/* Adds slowest_rank and each rank's rank_busy_ms to the step event, or with too many ranks the
 * slowest hosts (means of their ranks) and the median host. */
void rank_timing_report(const struct rank_timing *p);

/* Writes a `straggler` event and a warning if a rank has just become one. Rank 0. */
int straggler_report(struct rank_timing *p, int64_t step, double step_ms, struct error *e);
