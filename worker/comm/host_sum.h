/*
 * Sums the gradients of the ranks of one machine through shared memory, bucket by bucket, without
 * blocking. A bucket is divided into one part for each leader; the leaders are the first ranks of
 * the machine. Each rank exposes the parts of the other leaders. A leader adds up its part of all
 * ranks, pairwise in the order of the ranks, and publishes the sum. Then all ranks collect the sums
 * of the other parts.
 *
 * Bucket numbers count up (and wrap), equally on all ranks; a bucket uses slot number %
 * HOST_SUM_SLOTS.
 */
#pragma once

#include "common/sum_levels.h"
#include "worker/comm/comm.h"

/* A rank may expose a bucket while other ranks still add up or collect the previous one. */
#define HOST_SUM_SLOTS SUM_LEVELS_BUCKETS

struct host_sum;

/* floats: size of the largest bucket. narrow: expose and publish in bf16, add in the order of the
 * ranks, and make each rank a leader. Collective over all ranks of c. */
int host_sum_create(struct traincomm *c, size_t floats, int leaders, bool narrow,
                    struct host_sum **out);
void host_sum_destroy(struct host_sum *h); /* accepts NULL. Collective */

/* Call before the steps of a bucket of n numbers, of which `offset` is the first. It divides it
 * into equal parts, or at the cuts of `how` into about equal ones. */
void host_sum_begin(struct host_sum *h, unsigned bucket, size_t n,
                    const struct traincomm_update *how, size_t offset);

/* This rank's part [*first, *end) of a bucket; empty, at its end, if it is not a leader. */
void host_sum_mine(const struct host_sum *h, unsigned bucket, size_t *first, size_t *end);

/* The slot of a bucket, where other ranks read only this rank's part, after host_sum_publish. */
float *host_sum_slot(const struct host_sum *h, unsigned bucket);

/* The steps for a bucket at `at`. They return false, without effect, if another rank is not ready,
 * or if this rank has not exposed, published or collected the previous bucket: its progress is a
 * count of buckets. Only leaders add, to a bucket at `to` (`at`, or the slot), and publish. To
 * expose NULL is right if nothing will be added. */
bool host_sum_expose(struct host_sum *h, unsigned bucket, const float *at);
bool host_sum_add(struct host_sum *h, unsigned bucket, const float *at, float *to);
bool host_sum_publish(struct host_sum *h, unsigned bucket, const float *at);
bool host_sum_collect(struct host_sum *h, unsigned bucket, float *at);

/* Number of steps completed by all ranks of the machine; wraps. */
unsigned host_sum_events(const struct host_sum *h);

/* Waits until host_sum_events differs from `events`: spins if there are cores, then sleeps. */
void host_sum_wait(const struct host_sum *h, unsigned events);
