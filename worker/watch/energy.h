/* Energy used by the machines of a run. The first rank of each machine reads its counters
 * (common/system/powercap.h), which cover the whole machine. A thread reads them often enough to
 * notice each time a counter wraps around. */
#pragma once

#include <stdint.h>

#include "worker/comm/traincomm.h"
#include "worker/report.h"

#define ENERGY_READ_SECONDS  10 /* the smallest counter, 65 kJ, wraps after 11 s at 6,000 W */
#define ENERGY_EVENT_SECONDS 30 /* interval between events */

struct energy;

/* Contribution of one rank; doubles, because they are reduced together with other numbers */
struct energy_part {
    double
        joules; /* used by its machine since the start; 0 if this rank does not read the counters */
    double hosts;  /* 1 if this is the first rank of its machine, else 0 */
    double unread; /* 1 if the counters of its machine cannot be read */
};

struct energy *energy_create(struct traincomm *comm);
void energy_destroy(struct energy *energy); /* accepts NULL */

struct energy_part energy_now(struct energy *energy);

/* Rank 0 writes an `energy` event if one is due or `last`; none if nothing could be read. */
int energy_report(struct energy *energy, struct report *report, int64_t step,
                  const struct energy_part *sum, bool last, struct error *e);

/* Writes the last event of a run. Collective. */
int energy_finish(struct energy *energy, struct traincomm *comm, struct report *report,
                  int64_t step, struct error *e);
