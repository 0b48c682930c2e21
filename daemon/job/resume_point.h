/* Where a run can go on from: its newest checkpoint that is whole. */
#pragma once

#include <stdint.h>

#include "common/error.h"

/* A step, its epoch and the images of that. */
struct resume_point {
    int64_t step, epoch, epoch_images;
    int64_t passed_over; /* the step of the newest one, which cannot be used; 0: it is the one */
    char why_not[256];
};

/* 1: *at is the newest one that can be used; 0: there are none; negative: none of them can be, or,
 * with at->passed_over 0, they cannot be listed. */
int resume_point_find(const char *run_dir, struct resume_point *at, struct error *e);

/* The step of the newest checkpoint of a run; 0: it has none; negative: they cannot be listed. */
int64_t resume_point_newest_step(const char *run_dir, struct error *e);

/* Likewise of those that resume_point_find can use; an error is logged, and returns 0. */
int64_t resume_point_usable_step(const char *run_dir);
