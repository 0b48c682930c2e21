/* Where a run can go on from: its newest checkpoint that is whole. */
#pragma once

#include <stdint.h>

#include "common/error.h"

/* A step, its epoch and the images of that. */
struct place {
    int64_t step, epoch, epoch_images;
    int64_t passed_over; /* the step of the newest one, which cannot be used; 0: it is the one */
    char why_not[256];
};

/* 1: *at is the newest one that can be used; 0: there are none; negative: none of them can be, or,
 * with at->passed_over 0, they cannot be listed. */
int place_find(const char *run_dir, struct place *at, struct error *e);
