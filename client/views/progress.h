#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/job.h"

#define PROGRESS_BAR_BYTES(cells) (4 * (cells) + 8)

/* columns: at least 3. utf8: use eighths of a cell. Returns text. */
char *progress_bar(char *text, size_t bytes, double share, int columns, bool utf8);

/* Formats as "50 %  step 117/234  212 images/s  loss 0.8123  2 min 21 s left", or as the job's
 * reason before the first step. Returns text. */
char *progress_words(char *text, size_t bytes, const struct job *job, double now);

/* State of the last printed line. Zero-initialise. */
struct progress {
    char state[32];
    char reason[256];
    double top1;
    double share; /* job_progress */
    double last_line;
};

/* Prints a line when the state, the reason or the accuracy changes, or every 10 seconds while there
 * is progress. */
void progress_show(struct progress *progress, const struct job *job);
