/* Observes the jobs that the loop is responsible for, and dispatches what is seen. */
#pragma once

#include <stdbool.h>

struct active_job;
struct job_manager;

/* One look. due: reads its events, too. *a may be freed. */
void job_run_watch(struct job_manager *m, struct active_job *a, bool due);

/* When the launcher's process has ended. */
void job_run_launcher_ended(struct job_manager *m, struct active_job *a);

/* When its cancellation was requested. */
void job_run_cancel(struct job_manager *m, struct active_job *a);

/* Stores the events so far. */
void job_run_read_events(struct active_job *a);

/* The monotonic time of the next look in any case. */
double job_run_next_at(const struct active_job *a, double now);
