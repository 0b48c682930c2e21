/*
 * The life of a job as a pure core: in goes what was asked or observed, out comes what has to be
 * done and what the job is then. There is no clock, store, process or file in here. One table of
 * transitions (life.c) is all there is to know; doc/job-lifecycle.md shows it, made by
 * life_print_table.
 *
 * The actions are the caller's: in the daemon act.h carries them out, in tests/simulate a world
 * that is made up.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "common/error.h"
#include "common/job/job_state.h"
#include "daemon/launch/failure.h"

enum life_phase {
    LIFE_WAITING,   /* queued, without an attempt */
    LIFE_IN_SLURM,  /* queued, in Slurm's queue */
    LIFE_RUNNING,   /* its launcher runs */
    LIFE_CLEARING,  /* its launcher has ended: processes may be left, its end is not stored */
    LIFE_ENDED,     /* succeeded, failed or cancelled */
    LIFE_LOST,      /* stored as active by another daemon, and not looked for yet */
    LIFE_FORGOTTEN, /* waits in the queue again or has ended: the loop has nothing to do with it */
    LIFE_PHASE_COUNT
};

enum life_event {
    LIFE_MAY_START,        /* the queue has slots for it */
    LIFE_NEVER_FITS,       /* the node has become too small for it */
    LIFE_CANCEL_ASKED,     /* by somebody, at any time and from any thread */
    LIFE_CANCEL_SEEN,      /* the loop finds that it was asked for */
    LIFE_TIME_PASSED,      /* life.due has come */
    LIFE_STALLED,          /* nothing of it gets on any more */
    LIFE_SLURM_STARTED,    /* it has left Slurm's queue */
    LIFE_SLURM_PUT_BACK,   /* Slurm will start it again: requeued, preempted, a node failed */
    LIFE_SLURM_SILENT,     /* Slurm does not answer */
    LIFE_LAUNCHER_ENDED,   /* mpirun, or Slurm's job */
    LIFE_PROCESSES_LEFT,   /* of an attempt whose launcher has ended */
    LIFE_NOTHING_LEFT,     /* likewise: none */
    LIFE_ACTION_FAILED,    /* observation.failed, with observation.why */
    LIFE_FOUND_FOREIGN,    /* by a new daemon: its run directory is another job's */
    LIFE_FOUND_NOTHING,    /* neither launcher nor run directory */
    LIFE_FOUND_UNLAUNCHED, /* its launcher was never let go */
    LIFE_FOUND_ALIVE,
    LIFE_FOUND_DEAD,
    LIFE_FOUND_IN_SLURM,
    LIFE_EVENT_COUNT
};

enum life_action {
    LIFE_NO_ACTION,        /* ends a list */
    LIFE_PREPARE,          /* programs, threads, run directory */
    LIFE_STORE_ATTEMPT,    /* the next attempt begins */
    LIFE_START_LAUNCHER,   /* mpirun behind a gate; in Slurm: the script */
    LIFE_STORE_LAUNCHER,   /* pid and start; in Slurm: the job's name */
    LIFE_FOLLOW,           /* its events are read from now on */
    LIFE_OPEN_GATE,        /* mpirun may run; in Slurm: the script may be submitted */
    LIFE_ABANDON_LAUNCHER, /* what waits at the gate ends */
    LIFE_STORE_NO_START,   /* the end of an attempt that could not be made */
    LIFE_TRY_LATER,        /* the queue looks at it again in a second */
    LIFE_SHRINK,           /* planned again for fewer workers */
    LIFE_STORE_UNFIT,      /* failed: it can never run here */
    LIFE_STORE_CANCELLED,  /* cancelled without having run */
    LIFE_STORE_WISH,       /* that its cancellation was asked for, and by whom */
    LIFE_MARK_WISH,        /* the file cancel-requested */
    LIFE_TELL_LOOP,
    LIFE_MARK_LIMIT,      /* the file time-limit-reached */
    LIFE_MARK_STALL,      /* the file stalled.json */
    LIFE_ASK_WORKERS,     /* SIGUSR1: end after this step */
    LIFE_TERMINATE,       /* SIGTERM; in Slurm: scancel */
    LIFE_KILL,            /* SIGKILL to all that is left */
    LIFE_SAY_STOPPING,    /* reason: why its workers end */
    LIFE_STORE_STARTED,   /* Slurm runs it: starting */
    LIFE_STORE_PUT_BACK,  /* the end of this attempt and the begin of the next, Slurm's */
    LIFE_CANCEL_IN_SLURM, /* scancel, without waiting for it */
    LIFE_DISOWN_IN_SLURM, /* no word of Slurm is waited for; it is cancelled there when it can */
    LIFE_STORE_END,       /* what the run directory says of the attempt's end */
    LIFE_FINISH,          /* logs for others, what was measured, old checkpoints */
    LIFE_STORE_BACK,      /* queued again: it was never launched */
    LIFE_STORE_LOST,      /* failed: nothing of it is there */
    LIFE_FORGET,          /* always the last one */
    LIFE_ACTION_COUNT
};

#define LIFE_ACTIONS_MAX 7

/* How far its stop has come. */
enum life_stop { LIFE_STOP_NONE, LIFE_STOP_ASKED, LIFE_STOP_TERMINATED, LIFE_STOP_KILLED };

struct life {
    enum life_phase phase;
    bool slurm;         /* launcher slurm */
    bool resumes;       /* it has a checkpoint to go on from */
    bool may_have_run;  /* LOST, IN_SLURM: there are signs that a worker started */
    bool cancel_asked;  /* LOST: of the attempt that was under way */
    bool never_started; /* CLEARING: the attempt could not be made */
    bool killed;        /* CLEARING: the launcher was ended by a signal */
    enum life_stop stop;
    enum failure_stop stop_why;
    double due;           /* LIFE_TIME_PASSED is wanted at this time; INFINITY: not at all */
    double limit_at;      /* when its time limit is over; INFINITY: none */
    double limit_seconds; /* NAN: none */
    double ended_at;      /* CLEARING: since when */
};

/* Times are seconds of one clock that nobody sets. */
struct life_observation {
    enum life_event event;
    double now;
    double grace_seconds;    /* what workers need to end their step and write a checkpoint */
    double ran_seconds;      /* SLURM_STARTED: so long already */
    bool killed;             /* LAUNCHER_ENDED: by a signal */
    bool last;               /* SLURM_PUT_BACK: no restart is left */
    enum life_action failed; /* ACTION_FAILED */
    enum error_code why;
};

/* Decides, and has the actions carried out in order: *life is changed when all of them are done. At
 * the first one that fails the rest is left out, and LIFE_ACTION_FAILED decides what is done
 * instead. LIFE_GONE: the last action was LIFE_FORGET, *life may not be there any more; negative:
 * an action failed, and that was all; *e has the error. */
enum { LIFE_NOTHING, LIFE_DONE, LIFE_GONE };
typedef int life_act(void *context, enum life_action action, struct error *e);
int life_carry_out(struct life *life, const struct life_observation *seen, life_act *act,
                   void *context, struct error *e);

/* A job in the state that the store says: waiting, in Slurm, running or ended. */
struct life life_of_state(enum job_state state, bool slurm);

/* What a new daemon finds of a job that the store calls active. */
struct life_found {
    bool foreign, missing; /* its run directory */
    bool slurm;            /* it was handed to Slurm */
    bool launched;         /* a launcher is stored */
    bool alive;            /* and runs, for this job */
};
enum life_event life_found(const struct life_found *found);

const char *life_action_name(enum life_action action);
/* An action whose failure is logged and otherwise of no consequence. */
bool life_action_is_optional(enum life_action action);

/* The table for doc/job-lifecycle.md. */
void life_print_table(FILE *out);

/* Leaves a row out, for the simulator, which has to find what is wrong then; -1: none. */
void life_leave_out(int row);
int life_row_count(void);
const char *life_row_words(int row);
