/* The work of a long command: its threads and its progress. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

#define PARALLEL_THREADS_MAX 256

struct parallel_work {
    int (*begin)(void *context, void **scratch, struct error *e);
    /* Any thread may get any item; items are handed out in order. */
    int (*item)(void *context, void *scratch, int64_t i, struct error *e);
    void (*end)(void *scratch); /* NULL if begin failed */
};

int parallel_default_threads(void);

/* Runs items 0, 1, ... After a failure starts no more, and returns the error of the failed item
 * with the lowest number. */
int parallel_run(int threads, int64_t items, const struct parallel_work *work, void *context,
                 struct error *e);

/* Progress on standard error: a line rewritten on a terminal, else occasional lines. */
struct progress {
    const char *what;                  /* "convert" */
    int64_t total_images, total_bytes; /* 0: not known */
    pthread_mutex_t lock;              /* of all below */
    int64_t images, bytes;
    double started, last; /* clock_monotonic() */
    bool terminal;
};

void progress_begin(struct progress *p, const char *what, int64_t total_images,
                    int64_t total_bytes);

/* Prints a line if one is due. */
void progress_add(struct progress *p, int64_t images, int64_t bytes);

void progress_end(struct progress *p);

double progress_seconds(const struct progress *p);

/* Prints each of the lines as a warning. */
void progress_warn(const char *lines);
