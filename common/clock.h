/* Time. Durations are seconds as double, dates are Unix seconds (UTC). */
#pragma once

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

static inline double clock_read(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds since an arbitrary point in time; for durations. */
static inline double clock_monotonic(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

static inline double clock_now(void)
{
    return clock_read(CLOCK_REALTIME);
}

/* Waits for the condition until clock_monotonic() reaches `until`; INFINITY: without a limit.
 * Returns false after a timeout. */
static inline bool clock_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, double until)
{
    if (isinf(until))
        return pthread_cond_wait(condition, mutex) == 0;
    struct timespec t = {.tv_sec = (time_t)until, .tv_nsec = (long)(1e9 * fmod(until, 1))};
    return pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &t) == 0;
}
