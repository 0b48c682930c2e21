/*
 * What the machines of a run use: the first rank of each reads its counters
 * (common/system/powercap.h) for the whole machine, whoever else computes on it, and rank 0 says
 * the sum. A thread reads every ENERGY_READ_SECONDS, so that no counter wraps around unseen; where
 * there is nothing to read there is no thread.
 */
#pragma once

#include <stdint.h>

#include "worker/comm/traincomm.h"
#include "worker/report.h"

#define ENERGY_READ_SECONDS 10 /* a machine that uses 6,000 W wraps the smallest range, 65 kJ */
#define ENERGY_SAY_SECONDS  30 /* between events */

struct energy;

/* What a rank tells the others. Doubles, as they travel with others. */
struct energy_part {
    double joules; /* of its machine since the start; 0 of ranks that do not read */
    double hosts;  /* 1 of the first rank of a machine, else 0 */
    double unread; /* 1 where that could not be read */
};

/* NULL where there is no memory: it counts as a machine that cannot be read. */
struct energy *energy_create(struct traincomm *comm);
void energy_destroy(struct energy *energy); /* NULL is fine */

struct energy_part energy_now(struct energy *energy);

/* An `energy` event of the sum, on rank 0, if one is due or at the end. None where no machine could
 * be read. */
int energy_say(struct energy *energy, struct report *report, int64_t step,
               const struct energy_part *sum, bool last, struct error *e);

/* The last event of a run. Collective. */
int energy_finish(struct energy *energy, struct traincomm *comm, struct report *report,
                  int64_t step, struct error *e);
