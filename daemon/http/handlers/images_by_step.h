/*
 * How many images a run had trained on after each step: the sum of the global batches. Batches
 * change where a run went on with other workers, and with the sizes of images. A step's own batch
 * is its images_per_sec x step_ms; within an attempt it never grows, so that few rows tell all.
 * Those of a job that an older version imported may be anything: behind what IMAGES_LOOKUPS rows
 * tell, it is not known.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/store/job_row.h"

#define IMAGES_LOOKUPS 20000 /* 1000 changes in a million steps */

struct images_part {
    int64_t first_step; /* all steps from here on have this batch, until the next part */
    int64_t before;     /* images of the steps before it */
    int64_t batch;      /* -1: not known, as all behind it */
};
struct images_by_step {
    struct images_part *parts;
    size_t count, room;
};

/* Zeroed where the job has no steps. Free with images_by_step_clear. */
int images_by_step_read(struct store *s, const struct store_job *job, struct images_by_step *seen,
                        struct error *e);
/* -1: not known. Step 0: none. */
int64_t images_by_step_at(const struct images_by_step *seen, int64_t step);
void images_by_step_clear(struct images_by_step *seen);
