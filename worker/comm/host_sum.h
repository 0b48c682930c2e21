/*
 * The sum of the gradients of the ranks of one machine, through memory that they share, bucket by
 * bucket, without a call that waits. A bucket has a part for each leader, which are the machine's
 * first ranks. Each rank exposes the others' parts of its own gradients there; a leader adds up its
 * part of all ranks', in pairs in the order of the ranks as exchange.h does, and publishes the sum;
 * all collect the parts of the others.
 *
 * Buckets have numbers, which count up for ever (and wrap), the same on all ranks. They lie in
 * HOST_SUM_SLOTS slots in turn.
 */
#pragma once

#include "common/sum_levels.h"
#include "worker/comm/internal.h"

/* While a rank exposes a bucket, others still add up the last one, or collect the one before. */
#define HOST_SUM_SLOTS SUM_LEVELS_BUCKETS

struct host_sum;

/* Of buckets of at most `floats`. narrow: exposed and published in bf16, and added in the order of
 * the ranks; then each rank is a leader. Collective over all ranks of c. */
int host_sum_create(struct traincomm *c, size_t floats, int leaders, bool narrow,
                    struct host_sum **out);
void host_sum_destroy(struct host_sum *h); /* NULL is fine. Collective */

/* This rank's part of a bucket of n, from *first to *end; of those that are no leaders an empty one
 * behind the last. */
void host_sum_mine(const struct host_sum *h, size_t n, size_t *first, size_t *end);

/* The four steps of a bucket of n at `at`. False: another rank, or an earlier bucket, is not so far
 * yet; nothing was done. Only leaders add and publish. */
bool host_sum_expose(struct host_sum *h, unsigned bucket, const float *at, size_t n);
bool host_sum_add(struct host_sum *h, unsigned bucket, float *at, size_t n);
bool host_sum_publish(struct host_sum *h, unsigned bucket, const float *at, size_t n);
bool host_sum_collect(struct host_sum *h, unsigned bucket, float *at, size_t n);

/* Counts the steps of all ranks of the machine. */
unsigned host_sum_news(const struct host_sum *h);

/* Returns once there are others than `news`. Spins for a moment if each rank has a core, and then
 * sleeps. */
void host_sum_wait(const struct host_sum *h, unsigned news);
