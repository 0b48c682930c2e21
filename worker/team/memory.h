/* Memory for large arrays, on huge pages if Linux grants them on request: otherwise a matrix whose
 * rows are kilobytes apart needs a translation per row. During a dry run (dry_run.h) it is neither
 * written nor zeroed. */
#pragma once

#include <stddef.h>

/* Zeroed, and aligned to at least 64 bytes. The caller frees it with free(); NULL without
 * memory. */
void *memory_allocate(size_t bytes);

struct memory_extent {
    size_t offset, bytes;
};

/* As memory_allocate, but thread t of a team first writes the t-th of the equal parts of each
 * extent: Linux places a page on the socket of the thread that first writes to it. If extents
 * overlap the first one counts; the rest of the memory is not zeroed. */
void *memory_allocate_shared(size_t bytes, const struct memory_extent *extents, int count,
                             int threads);

/* Allocates one block per thread, first written by that thread; NULL for those without memory. */
void memory_allocate_each(void **memory, size_t bytes, int threads);
