/* The same work for items 0, 1, ... by several threads. */
#pragma once

#include <stdint.h>

#include "common/error.h"

#define PARALLEL_THREADS_MAX 256

struct parallel_work {
    /* A thread's own scratch, made before its first item. */
    int (*begin)(void *context, void **scratch, struct error *e);
    /* Any thread may get any item; items are handed out in order. */
    int (*item)(void *context, void *scratch, int64_t i, struct error *e);
    void (*end)(void *scratch); /* NULL is fine: begin failed */
};

/* As many as there are cores this process may use. */
int parallel_default_threads(void);

/* Runs until all items are done or one has failed: then no new ones are begun, and the error of the
 * first item (by number) that failed is returned. */
int parallel_run(int threads, int64_t items, const struct parallel_work *work, void *context,
                 struct error *e);
