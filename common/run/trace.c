#include "common/run/trace.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"

/* Written by one thread; the lock is for trace_take. Never freed, as its thread may end earlier. */
struct trace_buffer {
    struct trace_buffer *next;
    pthread_mutex_t lock;
    int thread;
    char name[24];
    struct trace_span *spans;
    size_t count, capacity, dropped;
};

atomic_bool trace_is_on;
static _Atomic int64_t room_left; /* number of spans */
_Atomic int64_t trace_part_ns[TRACE_PARTS];
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct trace_buffer *buffers;
static _Thread_local struct trace_buffer *own;
static _Thread_local char own_name[24] = "main";

void trace_name_thread(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(own_name, sizeof own_name, format, arguments);
    va_end(arguments);
}

static struct trace_buffer *trace_make_buffer(void)
{
    struct trace_buffer *b = calloc(1, sizeof *b);

    if (!b)
        return NULL;
    pthread_mutex_init(&b->lock, NULL);
    memcpy(b->name, own_name, sizeof b->name);
    pthread_mutex_lock(&list_lock);
    b->thread = buffers ? buffers->thread + 1 : 0;
    b->next = buffers;
    buffers = b;
    pthread_mutex_unlock(&list_lock);
    return b;
}

static bool trace_grow(struct trace_buffer *b)
{
    struct trace_span *spans = array_grow(b->spans, b->count, &b->capacity, sizeof *spans);
    if (spans)
        b->spans = spans;
    return spans != NULL;
}

static void trace_keep(struct trace_span *span, const char *category, const char *name)
{
    if (!own)
        own = trace_make_buffer();
    if (!own)
        return;
    snprintf(span->category, sizeof span->category, "%s", category);
    snprintf(span->name, sizeof span->name, "%s", name);
    span->thread = own->thread;
    pthread_mutex_lock(&own->lock);
    if (atomic_fetch_sub(&room_left, 1) > 0 && trace_grow(own))
        own->spans[own->count++] = *span;
    else
        own->dropped++;
    pthread_mutex_unlock(&own->lock);
}

void trace_record(double start, const char *category, const char *name, double work)
{
    struct trace_span span = {.start = start, .end = clock_monotonic(), .work = work};
    trace_keep(&span, category, name);
}

enum { SHARES = 256 };
static _Atomic int64_t share_ns[SHARES]; /* since the end of the last layer */

void trace_share(int thread, double seconds)
{
    if (thread < SHARES)
        atomic_fetch_add_explicit(&share_ns[thread], (int64_t)(seconds * 1e9),
                                  memory_order_relaxed);
}

static double trace_largest_share(void)
{
    double largest = 0, sum = 0;
    int threads = 0;

    for (int i = 0; i < SHARES; i++) {
        double ns = (double)atomic_exchange(&share_ns[i], 0);
        largest = ns > largest ? ns : largest;
        sum += ns;
        threads += ns > 0;
    }
    return sum > 0 ? largest * threads / sum : 0;
}

void trace_record_layer(double start, const char *category, const char *name, double work,
                        double bytes)
{
    struct trace_span span = {
        .start = start, .end = clock_monotonic(), .work = work, .bytes = bytes};

    for (int i = 0; i < TRACE_PARTS; i++)
        span.parts[i] = 1e-9 * (double)atomic_exchange(&trace_part_ns[i], 0);
    span.largest_share = trace_largest_share();
    trace_keep(&span, category, name);
}

static struct trace_buffer *trace_first_buffer(void)
{
    pthread_mutex_lock(&list_lock);
    struct trace_buffer *first = buffers;
    pthread_mutex_unlock(&list_lock);
    return first;
}

const char *trace_thread_name(int thread)
{
    for (struct trace_buffer *b = trace_first_buffer(); b; b = b->next)
        if (b->thread == thread)
            return b->name;
    return NULL;
}

void trace_start(size_t limit)
{
    /* The calling thread gets number 0, even if other threads recorded earlier. */
    if (!own)
        own = trace_make_buffer();
    for (struct trace_buffer *b = trace_first_buffer(); b; b = b->next) {
        pthread_mutex_lock(&b->lock);
        b->count = b->dropped = 0;
        pthread_mutex_unlock(&b->lock);
    }
    for (int i = 0; i < TRACE_PARTS; i++)
        atomic_store(&trace_part_ns[i], 0);
    for (int i = 0; i < SHARES; i++)
        atomic_store(&share_ns[i], 0);
    atomic_store(&room_left, (int64_t)limit);
    atomic_store(&trace_is_on, true);
}

void trace_stop(void)
{
    atomic_store(&trace_is_on, false);
}

static int trace_by_thread_and_start(const void *a, const void *b)
{
    const struct trace_span *x = a, *y = b;

    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->end < y->end) - (x->end > y->end);
}

size_t trace_take(struct trace_span **spans, size_t *dropped)
{
    size_t count = 0, capacity = 0;

    *spans = NULL;
    *dropped = 0;
    for (struct trace_buffer *b = trace_first_buffer(); b; b = b->next) {
        pthread_mutex_lock(&b->lock);
        struct trace_span *all = array_reserve(*spans, count + b->count, &capacity, sizeof *all);
        if (all) {
            if (b->count)
                memcpy(all + count, b->spans, b->count * sizeof *all);
            count += b->count;
            *spans = all;
        }
        *dropped += b->dropped + (all ? 0 : b->count);
        b->count = b->dropped = 0;
        pthread_mutex_unlock(&b->lock);
    }
    if (count)
        qsort(*spans, count, sizeof **spans, trace_by_thread_and_start);
    return count;
}
