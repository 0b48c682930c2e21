/* A job's progress in plain lines, where there is no terminal to draw on; and a bar for those who
 * draw. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/job.h"

#define PROGRESS_BAR_BYTES(cells) (4 * (cells) + 8)

/* A bar of so many columns with its ends, at least 3. utf8: eighths of a cell, so that slow runs
 * are seen to move. Returns text. */
char *progress_bar(char *text, size_t bytes, double share, int columns, bool utf8);

/* "50 %  step 117/234  212 images/s  loss 0.8123  2 min 21 s left", or the reason before the first
 * step. Returns text. */
char *progress_words(char *text, size_t bytes, const struct job *job, double now);

/* What was printed last. Zero-initialise. */
struct progress {
    char state[32];
    char reason[256];
    double top1;
    double share;     /* job_progress */
    double last_line; /* clock_monotonic */
};

/* Prints a line if there is news: a change of state or of the reason, an accuracy, or every 10
 * seconds more progress. */
void progress_show(struct progress *progress, const struct job *job);
