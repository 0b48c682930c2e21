/*
 * Spans of time, for a Chrome trace: who did what from when to when. Off unless trace_start was
 * called, and then a span costs one branch at each end. On, a span is a copy into the calling
 * thread's own buffer.
 *
 *     double span = trace_begin();
 *     ... work ...
 *     trace_end(span, "forward", "layer1.0.conv2", flops);
 *
 * Spans of one thread must nest. trace_start, trace_stop and trace_take are called by one thread;
 * the others by any.
 */
#ifndef TRAIND_COMMON_TRACE_H
#define TRAIND_COMMON_TRACE_H

#include <stdatomic.h>
#include <stddef.h>

#include "common/clock.h"

#define TRACE_SPANS_MAX 1000000 /* of a thread; what is more is counted and left out */

struct trace_span {
    double start, end; /* clock_monotonic */
    double work; /* floating-point operations of a convolution, bytes of an all-reduce; 0: none */
    int thread;
    char category[12], name[48];
};

extern atomic_bool trace_is_on;

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

/* For a start that was taken anyway. */
static inline void trace_since(double start, const char *category, const char *name)
{
    if (atomic_load_explicit(&trace_is_on, memory_order_relaxed))
        trace_record(start, category, name, 0);
}

/* Names the calling thread: "prefetch 0". Without it a thread is "main". */
void trace_name_thread(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *trace_thread_name(int thread); /* NULL behind the last that recorded anything */

void trace_start(void); /* forgets what was not taken */
void trace_stop(void);

/* All spans of all threads, by thread and start, a span before those inside it. The caller frees
 * *spans. *dropped: those that did not fit. Returns their number; 0 with *spans NULL without
 * memory. */
size_t trace_take(struct trace_span **spans, size_t *dropped);

#endif
