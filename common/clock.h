/* Time. All durations are seconds as double, all dates Unix seconds (UTC). */
#pragma once

#include <pthread.h>
#include <stdbool.h>

double clock_monotonic(void); /* seconds since some fixed moment: for durations */
double clock_now(void);       /* Unix time with microseconds: for dates in events and in SQLite */

/* Waits for the condition until clock_monotonic() is `until`; INFINITY: without end. false: that
 * time has come. */
bool clock_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, double until);
