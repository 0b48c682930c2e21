/* The launcher `slurm`. An attempt is a Slurm job; if Slurm requeues the job, its next start is the
 * next attempt.
 *
 * A separate thread makes all calls to Slurm, which may be slow: submissions, cancellations, and a
 * poll of all jobs every poll_seconds. The manager's thread sets requests and reads the state.
 * changed(context) is called on the Slurm thread after a change.
 *
 * A job is never submitted twice: its name is unique, and if an answer was lost or the daemon was
 * killed, that name is searched for first. While Slurm does not answer, jobs keep their last known
 * state. */
#pragma once

#include "daemon/launch/slurm_script.h"
#include "launch/launch.h"

struct slurm;
struct slurm *slurm_create(const struct slurm_settings *settings, void (*changed)(void *context),
                           void *context);
void slurm_destroy(struct slurm *s); /* NULL-safe; jobs continue */

/* ERR_INVALID: Slurm cannot be used here. Thread-safe. */
int slurm_check(struct error *e);

enum slurm_phase {
    SLURM_SUBMITTING, /* or being searched for */
    SLURM_WAITING,    /* in Slurm's queue */
    SLURM_RUNNING,
    SLURM_ENDED, /* reported by Slurm's state */
    SLURM_GONE,  /* no longer in Slurm's records */
    SLURM_REFUSED
};

struct slurm_status {
    enum slurm_phase phase;
    int64_t job_id;   /* 0: unknown */
    char state[24];   /* Slurm's state; "": unknown */
    char reason[64];  /* Slurm's reason code */
    char nodes[256];  /* such as n[1-2], possibly truncated */
    char words[512];  /* what it waits for, or why it was rejected */
    int64_t restarts; /* requeues */
    bool silent;      /* no state yet, or Slurm does not answer */
    int64_t exit_code, exit_signal;
    double start;         /* Unix time of its start, or when it may start; 0: unknown */
    double limit_seconds; /* time limit of its allocation; NAN: none */
};

struct slurm_job;

/* Follows a job submitted by an earlier daemon; job_id 0: it may not have been submitted. run_dir
 * contains attempt-N/sbatch, with N as in the name. */
int slurm_adopt(struct slurm *s, const char *name, int64_t job_id, const char *run_dir,
                struct launch_process *process, struct error *e);

void slurm_release(struct slurm_job *job);
void slurm_read(struct slurm_job *job, struct slurm_status *status);
const char *slurm_name(const struct slurm_job *job);
int64_t slurm_first_attempt(const struct slurm_job *job); /* encoded in the name */
void slurm_cancel(struct slurm_job *job);                 /* repeated until it has ended */
/* Ends a job while Slurm does not answer. Returns true if no rank has started, so that it has
 * ended; Slurm's job, if any, is cancelled as soon as possible. */
bool slurm_disown(struct slurm_job *job);
void slurm_look_soon(struct slurm_job *job);
void slurm_forget(struct slurm_job *job); /* the job continues */

extern const struct launcher launcher_slurm;
