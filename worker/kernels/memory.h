/*
 * Memory for large arrays of numbers: on huge pages, where Linux gives them on request
 * (/sys/kernel/mm/transparent_hugepage/enabled: madvise or always). A matrix whose rows lie
 * kilobytes apart needs a translation for each row otherwise.
 */
#ifndef TRAIND_WORKER_KERNELS_MEMORY_H
#define TRAIND_WORKER_KERNELS_MEMORY_H

#include <stddef.h>

/* Zeroed and 64-byte aligned at least; given back by free(). NULL: there is none. */
void *memory_allocate(size_t bytes);

#endif
