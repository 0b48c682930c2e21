/*
 * A job that the loop is responsible for: its object, its start, and the actions that the state
 * machine decides. All but job_slurm_script on the loop's thread.
 */
#pragma once

#include "daemon/job/job_state_machine.h"

struct active_job;
struct job_limits;
struct job_manager;
struct job_spec;
struct plan;
struct store_job;

/* A job in this phase, without a launcher, not yet in the list. job->spec is needed. */
struct active_job *job_run_create(struct job_manager *m, const struct store_job *job,
                                  enum job_phase phase);

/* Also takes it out of the list; its processes run on. */
void job_run_destroy(struct job_manager *m, struct active_job *a);

/* Appends it to the list: it takes its slots. */
void job_run_add(struct job_manager *m, struct active_job *a);

/* NULL: it is not in the list. */
struct active_job *job_run_find(const struct job_manager *m, int64_t id);

/* It has an attempt that runs, or waits in Slurm's queue. */
bool job_run_is_under_way(const struct active_job *a);

/* What was observed of a job, and what follows: as job_state_machine_step. MACHINE_GONE: *a is
 * freed. Errors of actions are logged by them. */
int job_run_dispatch(struct job_manager *m, struct active_job *a,
                     const struct job_observation *seen, struct error *e);

/* For ON_MAY_START and ON_NEVER_FITS: what *job points to is the attempt's from now on. */
void job_run_make_ready(struct active_job *a, struct store_job *job);

/* Seconds that workers need to end their step and write a checkpoint. */
double job_run_grace_seconds(const struct job_limits *limits, const struct store_job *job);

/* Stores what Slurm reports, if it has changed. */
void job_run_store_slurm(struct job_manager *m, struct active_job *a);

/* Logs an error that repeats, at most once in ten seconds a job. */
void job_run_complain(struct active_job *a, const char *what, const struct error *e);

/* The batch script by which a user may submit a job of launcher slurm; the caller frees *text.
 * Thread-safe. */
int job_slurm_script(struct job_manager *m, const struct job_spec *spec, const struct plan *plan,
                     char **text, struct error *e);
