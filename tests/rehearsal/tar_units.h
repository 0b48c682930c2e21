/*
 * A large tar, made of units in their order: a unit is so many members, finished in memory by any
 * thread and put behind the one before it. The file is PATH.part until it is whole. Whatever ends
 * the program, the next one takes over the units that are whole in PATH.part and cuts off the rest.
 * (A power cut may leave zeros in what was not yet on the disk: then remove the file.)
 */
#pragma once

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"

/* ---- tars in memory */

struct archive;

/* Members are appended to out, in ustar's format. NULL: no memory. */
struct archive *tar_begin(struct buffer *out);
int tar_add(struct archive *a, const char *name, const void *data, size_t bytes, struct error *e);

/* Frees it; with_end: two blocks of zeros, as they stand at the end of a tar. */
int tar_end(struct archive *a, struct buffer *out, bool with_end, struct error *e);

/* ---- the file */

struct tar_units {
    int fd;
    char path[PATH_MAX];
    int64_t units;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t turn;
    int64_t next; /* the unit that is to be put next */
    bool failed;  /* nothing more is put */
};

/* Opens PATH.part with the units that are whole in it, which t->next counts; members(context, k):
 * of unit k. Where PATH is there already, next is units and there is nothing to do. */
int tar_units_open(struct tar_units *t, const char *path, int64_t units,
                   int64_t (*members)(void *context, int64_t k), void *context, struct error *e);

/* Waits until all units before k are there. Any thread, as long as units are begun in order.
 * ERR_INTERRUPTED: another one failed. */
int tar_units_put(struct tar_units *t, int64_t k, const struct buffer *unit, struct error *e);

/* No unit comes any more: wakes those who wait for their turn. */
void tar_units_fail(struct tar_units *t);

/* Closes it; with all units there PATH.part becomes PATH. */
int tar_units_close(struct tar_units *t, struct error *e);
