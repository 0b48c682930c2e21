/* Number of images trained on after each step: the sum of the global batches, images_per_sec x
 * step_ms. Within an attempt batches never grow, so few rows have to be read. Imported jobs may
 * contain anything: the result is unknown after reading IMAGES_LOOKUPS rows. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/store/job_row.h"

#define IMAGES_LOOKUPS 20000 /* enough for 1000 changes in a million steps */

struct images_part {
    int64_t first_step; /* steps from here to the next part have this batch */
    int64_t before;     /* images of the steps before first_step */
    int64_t batch;      /* -1: unknown, as for all later parts */
};
struct images_by_step {
    struct images_part *parts;
    size_t count, capacity;
};

/* Empty if there are no steps. Free with images_by_step_clear. */
int images_by_step_read(struct store *s, const struct store_job *job, struct images_by_step *seen,
                        struct error *e);
/* -1: unknown. */
int64_t images_by_step_at(const struct images_by_step *seen, int64_t step);
void images_by_step_clear(struct images_by_step *seen);
