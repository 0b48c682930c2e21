#include "common/run/progress.h"

#include <stdatomic.h>

static _Atomic uint64_t total;

void progress_add(uint64_t units)
{
    atomic_fetch_add_explicit(&total, units, memory_order_relaxed);
}

uint64_t progress_total(void)
{
    return atomic_load_explicit(&total, memory_order_relaxed);
}
