/* Observes a job that the loop has to do with, and has done what comes of it. */
#pragma once

#include "daemon/job/job_manager_internal.h"

/* The launcher's process has ended. */
void watch_launcher_ended(struct job_manager *m, struct active_job *a);

/* Somebody asked to cancel it. */
void watch_cancel(struct job_manager *m, struct active_job *a);

/* One look. due: its events are to be read too. *a may be freed. */
void watch_job(struct job_manager *m, struct active_job *a, bool due);

/* Reads the events that are there. */
void watch_events(struct active_job *a);

/* Monotonic: when to look again in any case. */
double watch_next_at(const struct active_job *a, double now);
