/* Time. All durations are seconds as double, all dates Unix seconds (UTC). */
#ifndef TRAIND_COMMON_CLOCK_H
#define TRAIND_COMMON_CLOCK_H

double clock_monotonic(void); /* seconds since some fixed moment: for durations */
double clock_now(void);       /* Unix time with microseconds: for dates in events and in SQLite */

#endif
