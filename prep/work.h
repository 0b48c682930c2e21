/* Threads and progress messages of a long command. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

#define PARALLEL_THREADS_MAX 256

struct parallel_work {
    int (*begin)(void *context, void **scratch, struct error *e);
    /* Called on any thread; items are assigned in order. */
    int (*item)(void *context, void *scratch, int64_t i, struct error *e);
    void (*end)(void *scratch); /* scratch is NULL if begin failed */
};

int parallel_default_threads(void);

/* Processes items 0, 1, ... After a failure starts no more of them, and returns the error of the
 * failed item with the lowest number. */
int parallel_run(int threads, int64_t items, const struct parallel_work *work, void *context,
                 struct error *e);

/* Progress on standard error: a line that is rewritten on a terminal, else occasional lines. */
struct progress {
    const char *what;                  /* for example "convert" */
    int64_t total_images, total_bytes; /* 0: unknown */
    pthread_mutex_t lock;              /* guards the members below */
    int64_t images, bytes;
    double started, last; /* clock_monotonic() */
    bool terminal;
};

void progress_begin(struct progress *p, const char *what, int64_t total_images,
                    int64_t total_bytes);

void progress_add(struct progress *p, int64_t images, int64_t bytes);

void progress_end(struct progress *p);

double progress_seconds(const struct progress *p);

void progress_warn(const char *lines);
