/*
 * The launcher `slurm`: one Slurm job an attempt (several, if Slurm puts the job back into its
 * queue: then its next start is the next attempt).
 *
 * All calls to Slurm are made by a thread of its own, as they may take long: what is to be
 * submitted and cancelled, and every poll_seconds one look at all jobs. The manager's thread leaves
 * wishes there and reads what is known; told(context) is called, from that thread, when something
 * changed.
 *
 * A submission is never made twice: the job's name is unique, and where an answer was lost (or the
 * daemon killed) the name is looked for first. While Slurm does not answer, nothing is concluded.
 */
#pragma once

#include "daemon/launch/slurm_script.h"
#include "launch/launch.h"

struct slurm;
struct slurm *slurm_create(const struct slurm_settings *settings, void (*told)(void *context),
                           void *context);
void slurm_destroy(struct slurm *s); /* NULL is fine; jobs go on */

/* ERR_INVALID: Slurm cannot be used from here, with words. Thread-safe. */
int slurm_check(struct error *e);

enum slurm_phase {
    SLURM_SUBMITTING, /* or being looked for */
    SLURM_WAITING,    /* in Slurm's queue */
    SLURM_RUNNING,
    SLURM_ENDED,  /* by its state */
    SLURM_GONE,   /* Slurm has no record of it any more */
    SLURM_REFUSED /* it was not taken */
};

struct slurm_status {
    enum slurm_phase phase;
    int64_t job_id;   /* 0: not known */
    char state[24];   /* Slurm's word; "" before it is known */
    char reason[64];  /* Slurm's code */
    char nodes[256];  /* n[1-2]; cut if too long */
    char words[512];  /* what it waits for, or why it was refused */
    int64_t restarts; /* by Slurm */
    bool silent;      /* Slurm has not said anything of it yet, or does not answer any more */
    int64_t exit_code, exit_signal;
    double start;         /* Unix seconds: it runs since, or may start then; 0: not known */
    double limit_seconds; /* of its allocation; NAN: none */
};

struct slurm_job; /* one that is followed */

/* As a daemon before this one stored it; job_id 0: it may not have been submitted. run_dir holds
 * attempt-N/sbatch and attempt-N/properties.json, N as in the name. */
int slurm_adopt(struct slurm *s, const char *name, int64_t job_id, const char *run_dir,
                struct launch_process *process, struct error *e);

/* May be submitted now; before that nothing is. */
void slurm_release(struct slurm_job *job);
void slurm_read(struct slurm_job *job, struct slurm_status *status);
const char *slurm_name(const struct slurm_job *job);
int64_t slurm_first_attempt(const struct slurm_job *job); /* of the name */
void slurm_cancel(struct slurm_job *job);                 /* again and again, until it has ended */
/* It is to end, and Slurm is silent: where no rank of it has ever started it ends at once (true),
 * and should Slurm have it, or get it yet, it is cancelled there when that can be. */
bool slurm_disown(struct slurm_job *job);
void slurm_look_soon(struct slurm_job *job); /* something happened that Slurm may know of */
void slurm_forget(struct slurm_job *job);    /* it goes on */

extern const struct launcher launcher_slurm;
