/* Limits of one user, and how much earlier use counts against a job that waits. Pure. */
#pragma once

#include <stdint.h>

/* On this machine, at the same time; 0: no limit. */
struct queue_caps {
    int64_t running, slots;
};

struct queue_fair_share {
    double weight; /* points of priority that a user with all use loses; 0: off */
    double half_life_seconds;
};

/* What a job is sorted by, lower first: seconds. priority_seconds: of waiting, that a point of
 * priority counts as much as; share: the user's part of all use, 0 to 1. What use costs is bounded
 * by weight points, so whoever waits comes first in the end. */
static inline double queue_place(double queued_at, int64_t priority, double priority_seconds,
                                 const struct queue_fair_share *fair, double share)
{
    return queued_at - (double)priority * priority_seconds +
           fair->weight * priority_seconds * share;
}
