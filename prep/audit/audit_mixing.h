/* How well classes are mixed: Pearson's X^2 of the table shards x classes, (shards - 1) x (classes
 * - 1) degrees of freedom df. score = 1 / (1 + max(0, X^2 - df) / images): the share of all classes
 * that a shard holds in effect, corrected for chance. Of shards that each hold a fraction f of the
 * classes it is f; of a random deal 1. z = (X^2 - df) / sqrt(2 df): how far from a random deal. */
#pragma once

#include "prep/audit/audit_shard.h"

struct mixing {
    double score, z;
    int worst; /* shard */
    double worst_score;
};
/* Labels of -1 are skipped. ERR_NO_MEMORY. */
int mixing_measure(const struct audit_shard *shards, int count, int classes, struct mixing *out,
                   struct error *e);
