/*
 * Sum of the gradients of the ranks of one machine, through shared memory, bucket by bucket,
 * without blocking. A bucket has a part for each leader, the first ranks of the machine. Each rank
 * exposes the other leaders' parts; a leader adds up its part of all ranks', pairwise in the order
 * of the ranks, and publishes the sum; all collect the other parts.
 *
 * Bucket numbers count up (and wrap), equally on all ranks; a bucket uses slot number %
 * HOST_SUM_SLOTS.
 */
#pragma once

#include "common/sum_levels.h"
#include "worker/comm/comm.h"

/* A rank may expose a bucket while others still add up or collect the previous one */
#define HOST_SUM_SLOTS SUM_LEVELS_BUCKETS

struct host_sum;

/* floats: largest size of a bucket. narrow: exposes and publishes in bf16, adds in the order of the
 * ranks, and makes each rank a leader. Collective over all ranks of c. */
int host_sum_create(struct traincomm *c, size_t floats, int leaders, bool narrow,
                    struct host_sum **out);
void host_sum_destroy(struct host_sum *h); /* NULL is fine. Collective */

/* This rank's part [*first, *end) of a bucket of n; empty, at n, if it is no leader. */
void host_sum_mine(const struct host_sum *h, size_t n, size_t *first, size_t *end);

/* The steps of a bucket of n at `at`; false without effect if another rank is not ready. Only
 * leaders add and publish. */
bool host_sum_expose(struct host_sum *h, unsigned bucket, const float *at, size_t n);
bool host_sum_add(struct host_sum *h, unsigned bucket, float *at, size_t n);
bool host_sum_publish(struct host_sum *h, unsigned bucket, const float *at, size_t n);
bool host_sum_collect(struct host_sum *h, unsigned bucket, float *at, size_t n);

/* Counter of the steps completed by all ranks of the machine. */
unsigned host_sum_events(const struct host_sum *h);

/* Waits until host_sum_events differs from `events`: spins if each rank has a core, then sleeps */
void host_sum_wait(const struct host_sum *h, unsigned events);
