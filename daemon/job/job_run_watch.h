/* Observes the jobs that the loop is responsible for and dispatches the observations. */
#pragma once

#include <stdbool.h>

struct active_job;
struct job_manager;

/* Checks a job once; due: also reads its events. May free *a. */
void job_run_watch(struct job_manager *m, struct active_job *a, bool due);

/* Call it when the launcher's process has ended. */
void job_run_launcher_ended(struct job_manager *m, struct active_job *a);

/* Call it when a cancellation has been requested. */
void job_run_cancel(struct job_manager *m, struct active_job *a);

/* Stores the events written so far. */
void job_run_read_events(struct active_job *a);

/* Returns the latest monotonic time of the next check. */
double job_run_next_at(const struct active_job *a, double now);
