#include "worker/team/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "worker/team/dry_run.h"
#include "worker/team/parallel.h"

enum { CACHE_LINE = 64, HUGE_PAGE = 2 << 20 };

static size_t memory_whole_lines(size_t bytes)
{
    return (bytes + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
}

static void *memory_reserve(size_t bytes)
{
    size_t whole = memory_whole_lines(bytes);
    void *p;

    if (whole < bytes ||
        posix_memalign(&p, whole < HUGE_PAGE ? CACHE_LINE : HUGE_PAGE, whole ? whole : CACHE_LINE))
        return NULL;
#ifdef MADV_HUGEPAGE
    if (whole >= HUGE_PAGE)
        madvise(p, whole & ~(size_t)(HUGE_PAGE - 1), MADV_HUGEPAGE); /* best effort */
#endif
    return p;
}

/* A model that is only counted may exceed the memory, because none of it is touched. */
static bool memory_is_counted(void)
{
    return team_watch && team_watch->dry;
}

void *memory_allocate(size_t bytes)
{
    void *p = memory_reserve(bytes);

    return p && !memory_is_counted() ? memset(p, 0, memory_whole_lines(bytes)) : p;
}

struct memory_parts {
    char *shared;
    const struct memory_extent *extents;
    int count;
};

static void memory_zero_parts(struct parallel_share share, void *context)
{
    const struct memory_parts *m = context;

    for (int i = 0; i < m->count; i++) {
        struct parallel_range mine = parallel_range(m->extents[i].bytes, share);
        memset(m->shared + m->extents[i].offset + mine.first, 0, mine.end - mine.first);
        parallel_barrier(share);
    }
}

void *memory_allocate_shared(size_t bytes, const struct memory_extent *extents, int count,
                             int threads)
{
    struct memory_parts m = {memory_reserve(bytes), extents, count};

    if (m.shared && !memory_is_counted())
        parallel_team(threads, memory_zero_parts, &m);
    return m.shared;
}

struct memory_list {
    void **each;
    size_t bytes;
    int count;
};

static void memory_zero_each(struct parallel_share share, void *context)
{
    const struct memory_list *m = context;
    struct parallel_range mine = parallel_range((size_t)m->count, share);

    for (size_t i = mine.first; i < mine.end; i++)
        if (m->each[i])
            memset(m->each[i], 0, memory_whole_lines(m->bytes));
}

void memory_allocate_each(void **memory, size_t bytes, int threads)
{
    struct memory_list m = {memory, bytes, threads};

    for (int i = 0; i < threads; i++)
        memory[i] = memory_reserve(bytes);
    if (!memory_is_counted())
        parallel_team(threads, memory_zero_each, &m);
}
