/* The plan's chapters, for plan.c: each fills its numbers of a zeroed plan, in this order. */
#pragma once

#include "common/plan/plan.h"

/* batch.c: world size, batches, steps. False: no plan is possible, *problems says why. */
bool plan_batch(struct plan *plan, const struct job_spec *spec, struct problems *problems);

/* phases.c: batches by epoch. False: as above. */
bool plan_phases(struct plan *plan, const struct job_spec *spec, struct problems *problems);
/* A phase of images of this size, but for its place. */
struct plan_phase plan_phase_of(const struct plan *plan, const struct job_spec *spec, int64_t size,
                                int64_t batch_per_worker);

/* sizes.c: of the images, by step. */
void plan_sizes(struct plan *plan, const struct job_spec *spec);

/* memory.c: what the estimate is made of. */
struct plan_memory {
    int64_t parameter_bytes; /* of one copy */
    int copies;              /* weights, gradients, what the optimiser remembers; 1 in evaluation */
    int64_t bytes_per_image; /* activations and input */
    int64_t images;          /* in memory at a time */
    int64_t fixed_bytes;     /* the program, MPI, OpenBLAS, tiles */
    int64_t more_threads;    /* than one, as far as the document says */
    int64_t thread_bytes;    /* of each of these: tiles, sums of weights, its stack */
    int64_t eval_input_bytes; /* batches of evaluation images */
};
struct plan_memory plan_memory_of(const struct job_spec *spec);
int64_t plan_memory_bytes(const struct plan_memory *memory);
/* Of training: activations and inputs of an image of this size. */
int64_t plan_image_bytes(const struct job_spec *spec, int64_t size);

/* time.c: throughput and time to train from a measured speed. */
void plan_predict(struct plan *plan, const struct job_spec *spec, const struct plan_inputs *inputs);

/* warn.c and explain.c */
void plan_warn(struct plan *plan, const struct job_spec *spec, const struct plan_inputs *inputs);
void plan_explain(struct plan *plan, const struct job_spec *spec, const struct plan_inputs *inputs);
