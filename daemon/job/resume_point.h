/* Finds the checkpoint from which a run can continue: the newest intact one. */
#pragma once

#include <stdint.h>

#include "common/error.h"

struct resume_point {
    int64_t step, epoch, epoch_images;
    int64_t best;        /* step of the best checkpoint (checkpoint.keep_best); otherwise 0 */
    int64_t passed_over; /* step of the newest checkpoint if that is unusable; otherwise 0 */
    char why_not[256];
};

/* Returns 1 and sets *at to the newest usable checkpoint, 0 if there are none, or a negative error
 * if none is usable or (at->passed_over is 0) they cannot be listed. */
int resume_point_find(const char *run_dir, struct resume_point *at, struct error *e);

/* Returns the step of the newest checkpoint, 0 if there is none, or a negative error if they cannot
 * be listed. */
int64_t resume_point_newest_step(const char *run_dir, struct error *e);

/* Returns the step of the newest usable checkpoint; 0 if there is none or after an error, which is
 * logged. */
int64_t resume_point_usable_step(const char *run_dir);
