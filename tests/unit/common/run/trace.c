/* Spans: off they cost nothing and are not there; on, every thread's are, in order. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/run/trace.h"

Test(trace, off_nothing_is_recorded)
{
    struct trace_span *spans;
    size_t dropped;

    double span = trace_begin();
    cr_expect_eq(span, 0);
    trace_end(span, "a", "b", 1);
    trace_since(clock_monotonic(), "a", "b", 0);
    cr_expect_eq(trace_take(&spans, &dropped), 0);
    free(spans);
}

Test(trace, outer_spans_come_before_inner_ones)
{
    struct trace_span *spans;
    size_t dropped;

    trace_start(100000);
    double outer = trace_begin(), inner = trace_begin();
    trace_end(inner, "layer", "inner", 7);
    trace_end(outer, "step", "outer", 0);
    trace_stop();
    cr_assert_eq(trace_take(&spans, &dropped), 2);
    cr_expect_eq(dropped, 0);
    cr_expect_str_eq(spans[0].name, "outer");
    cr_expect_str_eq(spans[1].name, "inner");
    cr_expect_str_eq(spans[1].category, "layer");
    cr_expect_eq(spans[1].work, 7);
    cr_expect_leq(spans[1].end, spans[0].end);
    cr_expect_str_eq(trace_thread_name(spans[0].thread), "main");
    free(spans);
    cr_expect_eq(trace_take(&spans, &dropped), 0, "what was taken is gone");
    free(spans);
}

#define THREADS 4
#define SPANS   3000 /* more than a buffer's first room */

static void *record_spans(void *argument)
{
    trace_name_thread("worker %d", *(int *)argument);
    for (int i = 0; i < SPANS; i++)
        trace_end(trace_begin(), "x", "y", i);
    return NULL;
}

Test(trace, threads_that_have_ended_are_still_there)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    struct trace_span *spans;
    size_t dropped;

    trace_start(100000);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        cr_assert_eq(pthread_create(&threads[i], NULL, record_spans, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    trace_stop();
    cr_assert_eq(trace_take(&spans, &dropped), THREADS * SPANS);
    for (int i = 0; i < THREADS * SPANS; i++) {
        cr_assert_eq(spans[i].thread, spans[i - i % SPANS].thread);
        cr_assert_eq(spans[i].work, i % SPANS);
    }
    cr_expect_eq(strncmp(trace_thread_name(spans[0].thread), "worker ", 7), 0);
    free(spans);
}

Test(trace, starting_again_forgets_what_was_not_taken)
{
    struct trace_span *spans;
    size_t dropped;

    trace_start(100000);
    trace_end(trace_begin(), "x", "old", 0);
    trace_start(100000);
    trace_end(trace_begin(), "x", "new", 0);
    trace_stop();
    cr_assert_eq(trace_take(&spans, &dropped), 1);
    cr_expect_str_eq(spans[0].name, "new");
    free(spans);
}

Test(trace, a_layer_carries_its_parts)
{
    struct trace_span *spans;
    size_t dropped;

    trace_part(trace_begin(), TRACE_GEMM); /* off: nothing */
    trace_start(100);
    double layer = trace_begin(), piece = trace_begin();
    trace_part(piece, TRACE_GEMM);
    piece = trace_begin();
    trace_part(piece, TRACE_GEMM);
    trace_end(trace_begin(), "decode", "of another thread", 0);
    trace_share(0, 0.5);
    trace_share(1, 1);
    trace_share(1, 0.5);
    trace_end_layer(layer, "forward", "conv", 1, 20);
    trace_end_layer(trace_begin(), "forward", "next", 1, 0);
    trace_stop();
    cr_assert_eq(trace_take(&spans, &dropped), 3);
    cr_expect_str_eq(spans[0].name, "conv");
    cr_expect_gt(spans[0].parts[TRACE_GEMM], 0);
    cr_expect_leq(spans[0].parts[TRACE_GEMM], spans[0].end - spans[0].start);
    cr_expect_eq(spans[0].parts[TRACE_IM2COL], 0);
    cr_expect_eq(spans[1].parts[TRACE_GEMM], 0, "a plain span has none");
    cr_expect_eq(spans[2].parts[TRACE_GEMM], 0, "the next layer begins at 0");
    cr_expect_float_eq(spans[0].largest_share, 1.5, 1e-9);
    cr_expect_eq(spans[0].bytes, 20);
    cr_expect_eq(spans[2].largest_share, 0, "nobody worked in it");
    free(spans);
}

Test(trace, what_is_too_much_is_counted)
{
    struct trace_span *spans;
    size_t dropped;

    trace_start(3);
    for (int i = 0; i < 5; i++)
        trace_end(trace_begin(), "x", "y", i);
    trace_stop();
    cr_assert_eq(trace_take(&spans, &dropped), 3);
    cr_expect_eq(dropped, 2);
    cr_expect_eq(spans[2].work, 2, "the first are kept");
    free(spans);
}
