#include "common/net/arena.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

/* Largest first; of the same size the one that is used first. */
static int arena_compare_size(const void *x, const void *y)
{
    const struct arena_buffer *a = *(struct arena_buffer *const *)x,
                              *b = *(struct arena_buffer *const *)y;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    return (a->first > b->first) - (a->first < b->first);
}

static bool arena_live_together(const struct arena_buffer *a, const struct arena_buffer *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest gap between those that live at the same time; `placed` is sorted by offset. */
static size_t arena_lowest_gap(const struct arena_buffer *b, struct arena_buffer *const *placed,
                               int count)
{
    size_t at = 0;

    for (int i = 0; i < count; i++) {
        const struct arena_buffer *p = placed[i];
        if (!arena_live_together(b, p))
            continue;
        if (p->offset >= at + b->size)
            break;
        if (p->offset + p->size > at)
            at = p->offset + p->size;
    }
    return at;
}

size_t arena_place(struct arena_buffer *buffers, int count)
{
    struct arena_buffer *order[ARENA_BUFFERS], *placed[ARENA_BUFFERS];
    size_t end = 0;

    assert(count <= ARENA_BUFFERS);
    for (int i = 0; i < count; i++)
        order[i] = &buffers[i];
    qsort(order, (size_t)count, sizeof order[0], arena_compare_size);
    for (int i = 0; i < count; i++) {
        struct arena_buffer *b = order[i];
        int at = i;
        b->offset = arena_lowest_gap(b, placed, i);
        for (; at > 0 && placed[at - 1]->offset > b->offset; at--)
            placed[at] = placed[at - 1];
        placed[at] = b;
        if (b->offset + b->size > end)
            end = b->offset + b->size;
    }
    return end;
}
