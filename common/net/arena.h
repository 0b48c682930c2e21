/*
 * Buffers of known life in one piece of memory: two that live at the same time never overlap,
 * others may. Pure. The method is "greedy by size" (Pisarchyk and Lee, arXiv:2001.03288): the
 * largest first, each at the lowest place that is free during all of its life.
 */
#pragma once

#include <stddef.h>

enum { ARENA_BUFFERS = 1024 }; /* at most */

struct arena_buffer {
    size_t size;
    int first, last; /* points in time of its first and last use; both belong to its life */
    size_t offset;   /* out */
};

/* Sets the offsets (multiples of every size's greatest common divisor) and returns the size of the
 * whole. */
size_t arena_place(struct arena_buffer *buffers, int count);
