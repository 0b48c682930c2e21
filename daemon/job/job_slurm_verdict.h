/* Why an attempt in Slurm ended, where Slurm knows better than the run directory. Pure. */
#pragma once

#include "daemon/launch/failure.h"
#include "daemon/launch/slurm.h"

struct slurm_end {
    const struct slurm_status *slurm;
    int64_t attempt;
    enum failure_stop why; /* traind asked it to stop */
    bool signalled;        /* the script had Slurm's signal that its time is nearly over */
    bool begun;            /* the script has run */
    const char *refused;   /* "node n1: why", which its prolog had drained; NULL: none is known */
};

/* Of an attempt that has ended: changes *verdict, failure_judge's. */
void slurm_verdict(const struct slurm_end *end, struct verdict *verdict);

/* Likewise of one that Slurm starts again. */
void slurm_verdict_put_back(const struct slurm_end *end, struct verdict *verdict);
