/* A job's progress on a terminal: one line, redrawn; elsewhere: plain lines, now and then. */
#ifndef TRAIND_CLIENT_PROGRESS_H
#define TRAIND_CLIENT_PROGRESS_H

#include "client/job.h"

struct progress {
    bool redraw;           /* standard output is a terminal */
    bool drawn;            /* a line stands there that has no newline yet */
    char state[32];        /* last shown */
    char reason[256];      /* last shown */
    double top1;           /* last shown */
    double last_line;      /* clock_monotonic of the last plain line */
    double images_per_sec; /* smoothed over polls, for the time left */
    double last_step;
};

void progress_init(struct progress *progress);
void progress_show(struct progress *progress, const struct job *job);
void progress_end(struct progress *progress); /* leaves the cursor at the start of a fresh line */

/* The line of one moment, at most `columns` wide: a bar takes what the words leave (none under 8).
 * utf8: block characters. Returns text. Pure: for tests. */
char *progress_line(char *text, size_t bytes, const struct job *job, double seconds_left,
                    int columns, bool utf8);

#endif
