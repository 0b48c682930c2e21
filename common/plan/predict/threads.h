/*
 * What a worker's threads lose of their speed to shares that are not even, by the batch they share:
 *     keep = 1 / (1 + fixed + first x threads^t / (images^n x (size / 224)^s)), 1 for one thread
 * The engine's own shares, counted by the code that shares (worker/team/dry_run.h), are what the
 * five numbers are fitted to for each kind of block, in fp32 and bf16: networks of 64 and 224
 * pixels (the small CNN: 28 and 56), 1 to 96 images, 2 to 96 threads. Where the threads keep at
 * least 0.6 it is off by 0.03 usually, 0.15 at most (tests/unit/worker/model/shares.c compares).
 * The counts in fp32 are those of AVX-512's register tile: with AVX2's smaller one 48 threads keep
 * up to 0.09 more than planned.
 * Not in it: what a barrier costs, caches and memory that cores share; speeds measured with so many
 * threads have all of these in them.
 */
#pragma once

#include <stdint.h>

#include "common/job/job_spec.h"

/* A worker that keeps less is warned of. */
#define PLAN_THREADS_KEEP 0.85

/* The share of their speed that so many threads keep with so many images; 0: not known. */
double plan_threads_keep(const struct job_spec *spec, int64_t threads, int64_t images);

/* The fewest images with which they keep PLAN_THREADS_KEEP; 0: not known, or out of reach. */
int64_t plan_threads_images(const struct job_spec *spec, int64_t threads);
