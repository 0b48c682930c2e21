/*
 * Spans of time for a Chrome trace. Tracing is off until trace_start; then a span costs one branch
 * at its start and end. While tracing is on, a span is copied into a buffer of the calling thread.
 *
 *     double span = trace_begin();
 *     ... work ...
 *     trace_end(span, "forward", "layer1.0.conv2", flops);
 *
 * Pieces of work inside a layer that are too small for spans are summed by part, and become members
 * of the layer's span:
 *
 *     double piece = trace_begin();
 *     ... im2col of a tile ...
 *     trace_part(piece, TRACE_IM2COL);
 *
 * Spans of one thread must nest. trace_start, trace_stop and trace_take must be called by one
 * thread; the other functions are thread-safe.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"

/* In this order: im2col, col2im and Winograd's transforms; matrix products; batch norm's sums and
 * gradients; waiting for other threads. */
enum trace_part { TRACE_IM2COL, TRACE_GEMM, TRACE_NORM, TRACE_WAIT, TRACE_PARTS };

struct trace_span {
    double start, end;         /* clock_monotonic */
    double parts[TRACE_PARTS]; /* seconds, summed over all threads; zero except in layers */
    double largest_share; /* in layers: the thread that worked longest, relative to the mean of all
                             threads */
    double work;  /* in convolutions floating-point operations, in an all-reduce bytes, in a step
                     images, else 0 */
    double bytes; /* in layers: moved to and from memory, at least (worker/model/traffic.h) */
    int thread;
    char category[12], name[48];
};

extern atomic_bool trace_is_on;
extern _Atomic int64_t trace_part_ns[TRACE_PARTS]; /* since the end of the last layer */

static inline double trace_begin(void)
{
    return atomic_load_explicit(&trace_is_on, memory_order_relaxed) ? clock_monotonic() : 0;
}

void trace_record(double start, const char *category, const char *name, double work);

static inline void trace_end(double start, const char *category, const char *name, double work)
{
    if (start > 0)
        trace_record(start, category, name, work);
}

/* Like trace_end for a layer, with the parts of its threads, which must have finished. Only one
 * layer may be recorded at a time. */
void trace_record_layer(double start, const char *category, const char *name, double work,
                        double bytes);

static inline void trace_end_layer(double start, const char *category, const char *name,
                                   double work, double bytes)
{
    if (start > 0)
        trace_record_layer(start, category, name, work, bytes);
}

static inline void trace_part(double start, enum trace_part part)
{
    if (start > 0)
        atomic_fetch_add_explicit(&trace_part_ns[part],
                                  (int64_t)((clock_monotonic() - start) * 1e9),
                                  memory_order_relaxed);
}

void trace_share(int thread, double seconds);

/* Like trace_end, with a start time of the caller. */
static inline void trace_since(double start, const char *category, const char *name, double work)
{
    if (atomic_load_explicit(&trace_is_on, memory_order_relaxed))
        trace_record(start, category, name, work);
}

void trace_name_thread(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *trace_thread_name(int thread);

/* Discards earlier spans and starts tracing. limit: maximum number of spans of all threads; further
 * ones are only counted. */
void trace_start(size_t limit);
void trace_stop(void);

/* Returns the spans sorted by thread and start, an outer one before those inside it. The caller
 * frees *spans. *dropped: number of spans over the limit. Returns the number of spans, or 0 with
 * *spans NULL if out of memory. */
size_t trace_take(struct trace_span **spans, size_t *dropped);
