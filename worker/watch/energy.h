/* Energy used by the machines of a run. The first rank of each reads its counters
 * (common/system/powercap.h), which cover the whole machine; a thread reads often enough that no
 * counter wraps around unnoticed. */
#pragma once

#include <stdint.h>

#include "worker/comm/traincomm.h"
#include "worker/report.h"

#define ENERGY_READ_SECONDS 10 /* at 6,000 W the smallest range, 65 kJ, wraps in 11 s */
#define ENERGY_SAY_SECONDS  30 /* between events */

struct energy;

/* One rank's share; doubles, because they are gathered together with others */
struct energy_part {
    double joules; /* of its machine since the start; 0 on ranks that do not read */
    double hosts;  /* 1 on the first rank of a machine, else 0 */
    double unread; /* 1 if its counters cannot be read */
};

struct energy *energy_create(struct traincomm *comm);
void energy_destroy(struct energy *energy); /* NULL is fine */

struct energy_part energy_now(struct energy *energy);

/* Rank 0 writes an `energy` event if one is due or `last`; none if no machine could be read. */
int energy_report(struct energy *energy, struct report *report, int64_t step,
                  const struct energy_part *sum, bool last, struct error *e);

/* Writes the last event of a run. Collective. */
int energy_finish(struct energy *energy, struct traincomm *comm, struct report *report,
                  int64_t step, struct error *e);
