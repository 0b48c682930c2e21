/*
 * Memory for large arrays of numbers: on huge pages, where Linux gives them on request
 * (/sys/kernel/mm/transparent_hugepage/enabled: madvise or always). A matrix whose rows lie
 * kilobytes apart needs a translation for each row otherwise. While a step is only counted
 * (worker/team/dry_run.h) none of it is written, nor zeroed.
 */
#pragma once

#include <stddef.h>

/* Zeroed and 64-byte aligned at least; given back by free(). NULL: there is none. */
void *memory_allocate(size_t bytes);

struct memory_extent {
    size_t offset, bytes;
};

/*
 * The same, but thread t of a team writes the t-th of the equal parts of each extent first. Linux
 * puts a page into the memory of the socket where the thread runs that writes to it first, and
 * leaves it there. Extents may overlap, when the first one counts; what none covers is not zeroed.
 */
void *memory_allocate_shared(size_t bytes, const struct memory_extent *extents, int count,
                             int threads);

/* As many as there are threads, each written first by its own. Those that there is no memory for
 * are NULL. */
void memory_allocate_each(void **memory, size_t bytes, int threads);
