/* What /proc says of processes; the rest of process.c is declared in launch.h. */
#ifndef TRAIND_DAEMON_LAUNCH_PROCESS_H
#define TRAIND_DAEMON_LAUNCH_PROCESS_H

#include "daemon/launch/launch.h"

/* Field 22 of /proc/PID/stat; -1: no such process, or it has ended and only waits to be reaped. */
int64_t process_start(int64_t pid);

/* Sends a signal (0: none) to every living process that was started with this "NAME=value" in its
 * environment, and returns how many there are. Finds what left its session or lost its parent. */
int process_signal_marked(const char *variable, int signal_number);

#endif
