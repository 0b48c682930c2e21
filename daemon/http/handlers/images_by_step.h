/* Images trained on after each step: the sum of the global batches, images_per_sec x step_ms.
 * Within an attempt batches never grow, so few rows suffice. Imported jobs may have anything:
 * unknown after IMAGES_LOOKUPS rows. */
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

/* Empty without steps. Free with images_by_step_clear. */
int images_by_step_read(struct store *s, const struct store_job *job, struct images_by_step *seen,
                        struct error *e);
/* -1: unknown. */
int64_t images_by_step_at(const struct images_by_step *seen, int64_t step);
void images_by_step_clear(struct images_by_step *seen);
