/* A job that the loop is responsible for: its object, its start, and the actions chosen by the
 * state machine. Everything except job_slurm_script runs on the loop's thread. */
#pragma once

#include "daemon/job/job_state_machine.h"

struct active_job;
struct job_limits;
struct job_manager;
struct job_spec;
struct plan;
struct store_job;

/* Creates a job in this phase, without a launcher and not yet in the list. Requires job->spec. */
struct active_job *job_run_create(struct job_manager *m, const struct store_job *job,
                                  enum job_phase phase);

/* Also removes it from the list. Its processes continue to run. */
void job_run_destroy(struct job_manager *m, struct active_job *a);

/* Appends it to the list; it counts as using its slots from now on. */
void job_run_add(struct job_manager *m, struct active_job *a);

/* Returns NULL if it is not in the list. */
struct active_job *job_run_find(const struct job_manager *m, int64_t id);

/* Returns whether it has an attempt that is running or waiting in Slurm's queue. */
bool job_run_is_under_way(const struct active_job *a);

/* Feeds an observation to job_state_machine_step and carries out the actions. MACHINE_GONE: *a has
 * been freed. Actions log their errors. */
int job_run_dispatch(struct job_manager *m, struct active_job *a,
                     const struct job_observation *seen, struct error *e);

/* For ON_MAY_START and ON_NEVER_FITS. Moves the contents of *job into the attempt. */
void job_run_make_ready(struct active_job *a, struct store_job *job);

/* Returns the seconds that workers need to finish their step and write a checkpoint. */
double job_run_grace_seconds(const struct job_limits *limits, const struct store_job *job);

/* Stores Slurm's status if it has changed. */
void job_run_store_slurm(struct job_manager *m, struct active_job *a);

/* Logs a recurring error, at most once in ten seconds per job. */
void job_run_complain(struct active_job *a, const char *what, const struct error *e);

/* Creates the batch script with which a user may submit a job of launcher slurm. The caller frees
 * *text. Thread-safe. */
int job_slurm_script(struct job_manager *m, const struct job_spec *spec, const struct plan *plan,
                     char **text, struct error *e);
