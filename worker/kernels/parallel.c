#include "worker/kernels/parallel.h"

#include <omp.h>
#ifdef __SSE3__
#include <pmmintrin.h>
#endif

#include "common/run/trace.h"
#include "worker/kernels/dry_run.h"

_Thread_local struct dry_run *dry_run;

int parallel_blocks(size_t rows, size_t columns, struct parallel_share share,
                    struct parallel_block block[PARALLEL_BLOCKS])
{
    struct parallel_range r = parallel_range(rows * columns, share);
    int count = 0;

    while (r.first < r.end) {
        size_t row = r.first / columns, column = r.first % columns, left = r.end - r.first;
        struct parallel_block b = {row, 1, column, columns - column};
        if (column == 0 && left >= columns)
            b.rows = left / columns;
        else if (left < b.columns)
            b.columns = left;
        block[count++] = b;
        r.first += b.rows * b.columns;
    }
    return count;
}

int parallel_matrix(size_t rows, size_t row_units, size_t columns, size_t width,
                    struct parallel_share share, struct parallel_block block[PARALLEL_BLOCKS])
{
    int count = parallel_blocks(row_units, (columns + width - 1) / width, share, block);

    for (int i = 0; i < count; i++) {
        struct parallel_block *b = &block[i];
        size_t end = rows * (b->row + b->rows) / row_units,
               behind = (b->column + b->columns) * width;
        b->row = rows * b->row / row_units;
        b->rows = end - b->row;
        b->column *= width;
        b->columns = (behind < columns ? behind : columns) - b->column;
    }
    return count;
}

static void flush_denormals(void)
{
#ifdef __SSE3__
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
#endif
}

/* Seconds that this thread has waited since its share began. */
static _Thread_local double waited;

/* While there is a trace: what the share took, without waiting; and the others are waited for here
 * rather than unseen behind the body. */
static void run_share(struct parallel_share share, parallel_team_body *body, void *context)
{
    double start = trace_begin();

    flush_denormals();
    waited = 0;
    body(share, context);
    if (start > 0) {
        parallel_barrier(share);
        trace_share(share.part, clock_monotonic() - start - waited);
    }
}

void parallel_team(int threads, parallel_team_body *body, void *context)
{
    if (threads <= 1) {
        run_share(PARALLEL_ALL, body, context);
        return;
    }
#pragma omp parallel num_threads(threads)
    run_share((struct parallel_share){omp_get_thread_num(), omp_get_num_threads()}, body, context);
}

void parallel_barrier(struct parallel_share share)
{
    if (dry_run)
        dry_run->barriers++;
    if (share.parts == 1 || dry_run)
        return;
    double waits = trace_begin();
#pragma omp barrier
    trace_part(waits, TRACE_WAIT);
    if (waits > 0)
        waited += clock_monotonic() - waits;
}

struct items {
    int count;
    parallel_body *body;
    void *context;
};

static void run_items(struct parallel_share share, void *context)
{
    const struct items *i = context;
    struct parallel_range r = parallel_range((size_t)i->count, share);

    if (r.first < r.end)
        i->body(share.part, (int)r.first, (int)r.end, i->context);
}

void parallel_run(int threads, int items, parallel_body *body, void *context)
{
    struct items i = {items, body, context};

    parallel_team(threads < items ? threads : items, run_items, &i);
}
