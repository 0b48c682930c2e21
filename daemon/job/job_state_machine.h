/* The state machine of a job, without clock, store, processes or files: one table of transitions
 * (job_state_machine.c), which doc/job-lifecycle.md shows. The caller passes requests and
 * observations and carries out the resulting actions. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/job/job_state.h"
#include "daemon/launch/failure.h"

/* clang-format off */
/* PHASE_NAME and the phase's name in the documentation. */
#define JOB_PHASES(X) \
    X(WAITING, "waiting")     /* queued, no attempt */ \
    X(IN_SLURM, "in Slurm")   /* queued, in Slurm's queue */ \
    X(RUNNING, "running")     /* its launcher is running */ \
    X(CLEARING, "clearing")   /* its launcher has ended; processes may remain, and the end is not stored */ \
    X(ENDED, "ended")         /* succeeded, failed or cancelled */ \
    X(LOST, "lost")           /* stored as active by another daemon, not yet searched for */ \
    X(FORGOTTEN, "forgotten") /* queued again or ended: released by the loop */

/* DO_NAME, a description, and whether a failure is only logged. The first six start a job. */
#define JOB_ACTIONS(X) \
    X(PREPARE, "prepare its run directory", false) \
    X(STORE_ATTEMPT, "store the attempt", false) \
    X(START_LAUNCHER, "start the launcher behind a gate", false) /* in Slurm: write the script */ \
    X(STORE_LAUNCHER, "store the launcher", false)       /* pid and start time, or the job's name in Slurm */ \
    X(FOLLOW, "read its events", false) \
    X(OPEN_GATE, "open the gate", false)                 /* in Slurm: the script may be submitted */ \
    X(ABANDON_LAUNCHER, "close the gate", true) \
    X(STORE_NO_START, "store that it was not started", false) \
    X(TRY_LATER, "try again in a second", true) \
    X(SHRINK, "plan it for fewer workers", false) \
    X(STORE_UNFIT, "store that it failed", false)        /* it can never run here */ \
    X(STORE_CANCELLED, "store that it is cancelled", false) \
    X(STORE_CANCEL_REQUEST, "store the cancellation request", false) /* and who requested it */ \
    X(MARK_CANCEL, "write `cancel-requested`", false) \
    X(WAKE_LOOP, "wake the loop", false) \
    X(MARK_LIMIT, "write `time-limit-reached`", true) \
    X(MARK_STALL, "write `stalled.json`", true) \
    X(MARK_GROW, "write `grow-requested`", false) \
    X(ASK_WORKERS, "SIGUSR1", true)                      /* stop after this step */ \
    X(TERMINATE, "SIGTERM, or scancel", true) \
    X(KILL, "SIGKILL to all processes", true) \
    X(STORE_STOPPING, "store the reason", true) \
    X(STORE_STARTED, "store that it is starting", true)  /* Slurm has started it */ \
    X(STORE_PUT_BACK, "store the attempt's end and the next one", false) \
    X(CANCEL_IN_SLURM, "scancel", true)                  /* without waiting for the result */ \
    X(DISOWN_IN_SLURM, "scancel when Slurm answers", false) /* without waiting for an answer */ \
    X(STORE_END, "store the attempt's end", false) \
    X(FINISH, "export its logs", true) \
    X(STORE_BACK, "store that it is queued", false)      /* it was never launched */ \
    X(STORE_LOST, "store that it failed", false)         /* no trace of it was found */ \
    X(FORGET, "forget it", true)                         /* always the last action */
/* clang-format on */

#define JOB_PHASE_ITEM(name, words)            PHASE_##name,
#define JOB_ACTION_ITEM(name, words, optional) DO_##name,
enum job_phase { JOB_PHASES(JOB_PHASE_ITEM) PHASE_COUNT };
enum job_action { DO_NOTHING /* terminates a list */, JOB_ACTIONS(JOB_ACTION_ITEM) };

enum job_observed {
    ON_MAY_START,        /* the queue has free slots for it */
    ON_NEVER_FITS,       /* the node has become too small for it */
    ON_CANCEL_ASKED,     /* may come at any time, from any thread */
    ON_CANCEL_SEEN,      /* the loop has found the request */
    ON_TIME_PASSED,      /* job_machine.due has come */
    ON_STALLED,          /* it makes no progress */
    ON_MAY_GROW,         /* it has fewer nodes than it wants, and more would start it at once */
    ON_SLURM_STARTED,    /* it has left Slurm's queue */
    ON_SLURM_PUT_BACK,   /* Slurm will restart it: requeued, preempted, or a node failed */
    ON_SLURM_SILENT,     /* Slurm does not answer */
    ON_LAUNCHER_ENDED,   /* mpirun, or Slurm's job */
    ON_PROCESSES_LEFT,   /* after the end of the launcher */
    ON_NOTHING_LEFT,     /* after the end of the launcher */
    ON_ACTION_FAILED,    /* job_observation.failed, with job_observation.why */
    ON_FOUND_FOREIGN,    /* after a daemon restart: the run directory belongs to another job */
    ON_FOUND_NOTHING,    /* neither launcher nor run directory */
    ON_FOUND_UNLAUNCHED, /* its launcher never passed the gate */
    ON_FOUND_ALIVE,
    ON_FOUND_DEAD,
    ON_FOUND_IN_SLURM
};

enum job_stop { STOP_NONE, STOP_ASKED, STOP_TERMINATED, STOP_KILLED };

/* Times are seconds of a monotonic clock. */
struct job_machine {
    enum job_phase phase;
    bool slurm;         /* uses launcher slurm */
    bool resumes;       /* it has a checkpoint to continue from */
    bool may_have_run;  /* LOST, IN_SLURM: there are signs that a worker has started */
    bool cancel_asked;  /* LOST: during the current attempt */
    bool never_started; /* CLEARING: the attempt could not be created */
    bool killed;        /* CLEARING: the launcher was killed by a signal */
    enum job_stop stop;
    enum failure_stop stop_why;
    double due;           /* next time for ON_TIME_PASSED; INFINITY: none */
    double limit_at;      /* time at which its time limit is reached; INFINITY: none */
    double limit_seconds; /* NAN: none */
    double ended_at;      /* CLEARING: time at which the launcher ended */
};

struct job_observation {
    enum job_observed event;
    double now;
    double grace_seconds;   /* needed to finish a step and write a checkpoint */
    double ran_seconds;     /* SLURM_STARTED, FOUND_ALIVE: run time before now */
    bool killed;            /* LAUNCHER_ENDED: by a signal */
    bool last;              /* SLURM_PUT_BACK: no restart is left */
    enum job_action failed; /* ACTION_FAILED */
    enum error_code why;
};

/* Chooses a transition and carries out its actions in order; *machine is updated once all have
 * succeeded. If one fails, ON_ACTION_FAILED selects what to do instead of the rest. MACHINE_GONE:
 * the last action was DO_FORGET and *machine may be freed; negative: a failure without a
 * transition, in *e. */
enum { MACHINE_NOTHING, MACHINE_DONE, MACHINE_GONE };
typedef int job_act(void *context, enum job_action action, struct error *e);
int job_state_machine_step(struct job_machine *machine, const struct job_observation *seen,
                           job_act *act, void *context, struct error *e);

/* Returns the machine for a job in a stored state: waiting, in Slurm, running or ended. */
struct job_machine job_state_machine_of(enum job_state state, bool slurm);

/* What a new daemon finds of a job stored as active. */
struct job_found {
    bool foreign, missing; /* state of its run directory */
    bool slurm;            /* it was submitted to Slurm */
    bool launched;         /* a launcher is stored */
    bool alive;            /* and that launcher still runs this job */
};
enum job_observed job_state_found_event(const struct job_found *found);

bool job_state_action_is_optional(enum job_action action);

/* ---- what follows the end of an attempt: the job's end, another attempt, or the next
 * allocation */

#define RESTART_DELAY_MAX_SECONDS 600.0
#define ATTEMPT_REASON_BYTES      (2 * FAILURE_TEXT_BYTES + 256)

struct attempt_history {
    int64_t restarts, restarts_max;
    double restart_delay_seconds; /* delay of the first restart */
    int64_t checkpoint;           /* step it would continue from; 0: none */
    bool trains;                  /* otherwise it evaluates and has no checkpoints */
    bool ran;                     /* the attempt had a folder to write to */
    bool resumes;                 /* the attempt itself continued from a checkpoint */
    bool keeps_slurm;             /* Slurm starts the next attempt by itself */
    const char *first_failure;    /* reason of the first failed attempt; NULL: none */
};

struct attempt_outcome {
    enum job_state to;                 /* a final state, or queued */
    bool restarts;                     /* counts as a restart */
    bool goes_on;                      /* queued again without counting as a restart */
    bool failed;                       /* the verdict is the job's failure if it is the first */
    bool resumes;                      /* the next attempt continues from a checkpoint */
    double pause_seconds;              /* before the next attempt */
    char reason[ATTEMPT_REASON_BYTES]; /* "": none */
};

void job_state_after_attempt(const struct verdict *verdict, const struct attempt_history *history,
                             struct attempt_outcome *outcome);

/* Returns the delay before the next restart, after this number of restarts. */
double job_state_restart_delay(double restart_delay_seconds, int64_t restarts);
