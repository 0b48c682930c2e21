/* How far a long command is: on a terminal a line that is renewed, elsewhere a plain line now and
 * then, both to standard error. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *what;                  /* "convert" */
    int64_t total_images, total_bytes; /* 0: not known */
    pthread_mutex_t lock;              /* of all below */
    int64_t images, bytes;
    double started, last; /* clock_monotonic() */
    bool terminal;
};

/* From now on time runs. Thread-safe from here to progress_end. */
void progress_begin(struct progress *p, const char *what, int64_t total_images,
                    int64_t total_bytes);

/* So much more is done; says so if it is time for a line. */
void progress_add(struct progress *p, int64_t images, int64_t bytes);

/* The last line, on a terminal or where plain lines have come before it. */
void progress_end(struct progress *p);

double progress_seconds(const struct progress *p);

/* Warns of each of some lines on standard error. */
void progress_warn(const char *lines);
