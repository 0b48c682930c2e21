/* What /proc says of processes; the rest of process.c is declared in launch.h. */
#pragma once

#include "launch/launch.h"

/* Field 22 of /proc/PID/stat; -1: no such process, or it has ended and only waits to be reaped. */
int64_t process_start(int64_t pid);

/* Brings a set up to date: the dead leave it, and every living process joins that was started with
 * ATTEMPT_MARK=attempt_dir in its environment, is in that session (0: not asked), or is a
 * descendant of one that is in it. So what clears its environment, leaves its session or loses its
 * parent is found as long as it was seen once. No environment is read of what was there before
 * since, the start of the launcher (0: not known). Returns how many there are. */
size_t process_set_update(struct process_set *set, const char *attempt_dir, int64_t session,
                          int64_t since);

struct process_stopped {
    int64_t pid, rank; /* rank -1: it is none */
    char name[64];
};

/* One of the set that is stopped by a signal: first is looked at before the others, then the rank
 * with the lowest number. False: none is. */
bool process_set_find_stopped(const struct process_set *set, int64_t first,
                              struct process_stopped *found);

void process_set_signal(const struct process_set *set, int signal_number);
