#include "worker/kernels/parallel.h"

#include <stdint.h>
#ifdef __SSE3__
#include <pmmintrin.h>
#endif

static void flush_denormals(void)
{
#ifdef __SSE3__
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
#endif
}

int parallel_busy(int threads, int items)
{
    int chunk = (items + threads - 1) / threads;
    return chunk ? (items + chunk - 1) / chunk : 0;
}

void parallel_run(int threads, int items, parallel_body *body, void *context)
{
    int busy = parallel_busy(threads, items);
    int chunk = (items + threads - 1) / threads;

    if (busy <= 1) {
        flush_denormals();
        if (busy)
            body(0, 0, items, context);
        return;
    }
#pragma omp parallel for num_threads(busy) schedule(static, 1)
    for (int t = 0; t < busy; t++) {
        int end = (t + 1) * chunk < items ? (t + 1) * chunk : items;
        flush_denormals();
        body(t, t * chunk, end, context);
    }
}
