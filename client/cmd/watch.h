/* Shared by show, run, watch, wait and submit --watch/--wait: follow a job to its end, say how it
 * ended. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Returns the exit code: the job's outcome, or that of an error (printed). progress: show it, on a
 * terminal in full screen. */
int watch_until_end(long id, bool progress);

void show_job(const json_t *json); /* the table of show; in cmd_show.c */

/* Prints what happens to all jobs, line by line, until something ends it; returns the exit code. */
int watch_queue(void);
