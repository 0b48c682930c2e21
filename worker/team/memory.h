/* Memory for large arrays, on huge pages if Linux grants them on request
 * (/sys/kernel/mm/transparent_hugepage/enabled: madvise or always): otherwise a matrix whose rows
 * are kilobytes apart needs a translation per row. While a step is only counted
 * (worker/team/dry_run.h) it is neither written nor zeroed. */
#pragma once

#include <stddef.h>

/* Zeroed, and aligned to at least 64 bytes. The caller frees it with free(); NULL without
 * memory. */
void *memory_allocate(size_t bytes);

struct memory_extent {
    size_t offset, bytes;
};

/* As memory_allocate, but thread t of a team writes the t-th of the equal parts of each extent
 * first. Linux places a page on the socket of the thread that first writes to it, permanently. If
 * extents overlap the first one counts; the rest of the memory is not zeroed. */
void *memory_allocate_shared(size_t bytes, const struct memory_extent *extents, int count,
                             int threads);

/* Allocates one block per thread, first written by that thread; NULL for those without memory. */
void memory_allocate_each(void **memory, size_t bytes, int threads);
