/* What /proc/PID/stat and environ say of a process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct process_stat {
    char state; /* R S D: it lives; T t: stopped; Z X: it has ended and only waits to be reaped */
    int64_t parent, session;
    int64_t start; /* clock ticks since boot: a pid's second life has another */
};

/* False: there is no such process. */
bool process_stat_read(int64_t pid, struct process_stat *stat);

/* Of a file's content: "1234 (any name) S 1 ...". */
bool process_stat_parse(const char *text, struct process_stat *stat);

/* A variable of the environment that a process was started with (/proc/PID/environ). The caller
 * frees it; NULL: it has none, or may not be read. */
char *process_variable(int64_t pid, const char *name);

static inline bool process_has_ended(const struct process_stat *stat)
{
    return stat->state == 'Z' || stat->state == 'X';
}

static inline bool process_is_stopped(const struct process_stat *stat)
{
    return stat->state == 'T' || stat->state == 't';
}
