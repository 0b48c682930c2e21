#pragma once

#include <stdint.h>

#include "common/job/job_spec.h"

struct plan_memory {
    int64_t parameter_bytes;  /* of a single copy */
    int copies;               /* weights, and their average (ema) */
    int64_t trained_bytes;    /* of the weights that are trained; 0 in evaluation */
    int trained_copies;       /* gradients, optimiser states */
    int64_t bytes_per_image;  /* activations and input */
    int64_t images;           /* images in memory at the same time */
    int64_t fixed_bytes;      /* program, MPI, OpenBLAS, tiles */
    int64_t more_threads;     /* threads after the first, if the document gives their number */
    int64_t thread_bytes;     /* per additional thread: tiles, sums of weights, stack */
    int64_t eval_input_bytes; /* batches of images of the evaluation */
};
struct plan_memory plan_memory_of(const struct job_spec *spec);
int64_t plan_memory_bytes(const struct plan_memory *memory);

int64_t plan_image_bytes(const struct job_spec *spec, int64_t size);
