/* Measures how well classes are mixed with Pearson's X^2 of the table shards x classes, with df =
 * (shards - 1) x (classes - 1) degrees of freedom. score = 1 / (1 + max(0, X^2 - df) / images) is
 * the fraction of all classes that a shard effectively contains, corrected for chance: f if each
 * shard contains a fraction f of the classes, 1 for random mixing. z = (X^2 - df) / sqrt(2 df) is
 * the deviation from random mixing. */
#pragma once

#include "prep/audit/audit_shard.h"

struct mixing {
    double score, z;
    int worst; /* number of the shard */
    double worst_score;
};
/* Ignores labels of -1. Returns 0 or ERR_NO_MEMORY. */
int mixing_measure(const struct audit_shard *shards, int count, int classes, struct mixing *out,
                   struct error *e);
