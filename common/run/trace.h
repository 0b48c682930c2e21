/*
 * Spans of time, for a Chrome trace: who did what from when to when. Off unless trace_start was
 * called, and then a span costs one branch at each end. On, a span is a copy into the calling
 * thread's own buffer.
 *
 *     double span = trace_begin();
 *     ... work ...
 *     trace_end(span, "forward", "layer1.0.conv2", flops);
 *
 * What a layer's threads do inside it in pieces too small for spans of their own is added up in
 * parts, which the layer's span carries:
 *
 *     double piece = trace_begin();
 *     ... im2col of a tile ...
 *     trace_part(piece, TRACE_IM2COL);
 *
 * Spans of one thread must nest. trace_start, trace_stop and trace_take are called by one thread;
 * the others by any.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"

/* im2col, col2im, Winograd's transforms; products; batch norm's sums and gradients; waiting for
 * other threads. */
enum trace_part { TRACE_IM2COL, TRACE_GEMM, TRACE_NORM, TRACE_WAIT, TRACE_PARTS };

struct trace_span {
    double start, end;         /* clock_monotonic */
    double parts[TRACE_PARTS]; /* seconds, of all threads together; only a layer's are not 0 */
    double largest_share; /* of a layer: the thread that worked longest, over the mean of all */
    double work; /* of a convolution: floating-point operations; of an all-reduce: bytes; 0: none */
    int thread;
    char category[12], name[48];
};

extern atomic_bool trace_is_on;
extern _Atomic int64_t trace_part_ns[TRACE_PARTS]; /* since the last layer ended */

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

/* The same for a layer, with the parts of its threads, which must have ended. One layer at a
 * time. */
void trace_record_layer(double start, const char *category, const char *name, double work);

static inline void trace_end_layer(double start, const char *category, const char *name,
                                   double work)
{
    if (start > 0)
        trace_record_layer(start, category, name, work);
}

static inline void trace_part(double start, enum trace_part part)
{
    if (start > 0)
        atomic_fetch_add_explicit(&trace_part_ns[part],
                                  (int64_t)((clock_monotonic() - start) * 1e9),
                                  memory_order_relaxed);
}

void trace_share(int thread, double seconds);

/* For a start that the caller has. */
static inline void trace_since(double start, const char *category, const char *name)
{
    if (atomic_load_explicit(&trace_is_on, memory_order_relaxed))
        trace_record(start, category, name, 0);
}

void trace_name_thread(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *trace_thread_name(int thread);

/* Discards earlier spans. limit: spans of all threads; more are only counted. */
void trace_start(size_t limit);
void trace_stop(void);

/* All spans by thread and start, each before those inside it. The caller frees *spans. *dropped:
 * those over the limit. Returns their number; 0 with *spans NULL without memory. */
size_t trace_take(struct trace_span **spans, size_t *dropped);
