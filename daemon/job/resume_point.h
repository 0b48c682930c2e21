/* Where a run can continue: its newest intact checkpoint. */
#pragma once

#include <stdint.h>

#include "common/error.h"

struct resume_point {
    int64_t step, epoch, epoch_images;
    int64_t passed_over; /* the step of the newest one if it cannot be used; else 0 */
    char why_not[256];
};

/* 1: *at is the newest usable one; 0: there are none; negative: none is usable, or, with
 * at->passed_over 0, they cannot be listed. */
int resume_point_find(const char *run_dir, struct resume_point *at, struct error *e);

/* The step of the newest checkpoint of a run; 0: it has none; negative: they cannot be listed. */
int64_t resume_point_newest_step(const char *run_dir, struct error *e);

/* Likewise the newest usable one; 0 also after an error, which is logged. */
int64_t resume_point_usable_step(const char *run_dir);
