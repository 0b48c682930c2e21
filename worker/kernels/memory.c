#include "worker/kernels/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { CACHE_LINE = 64, HUGE_PAGE = 2 << 20 };

void *memory_allocate(size_t bytes)
{
    size_t whole = (bytes + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
    void *p;

    if (posix_memalign(&p, whole < HUGE_PAGE ? CACHE_LINE : HUGE_PAGE, whole ? whole : CACHE_LINE))
        return NULL;
#ifdef MADV_HUGEPAGE
    if (whole >= HUGE_PAGE)
        madvise(p, whole & ~(size_t)(HUGE_PAGE - 1), MADV_HUGEPAGE); /* small pages do as well */
#endif
    memset(p, 0, whole);
    return p;
}
