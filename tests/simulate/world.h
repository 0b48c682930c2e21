/*
 * A made-up world for the real core of a job's life (daemon/job/job_state_machine.h,
 * job_queue_plan.h): a store, run directories, processes, Slurm, users and a clock. The store, the
 * run directories, processes and Slurm outlive a daemon that is killed.
 */
#pragma once

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/job/job_state_machine.h"
#include "daemon/job/job.h"
#include "tests/simulate/chance.h"

#define JOBS_MAX     6
#define ATTEMPTS_MAX 64
#define SLOTS_MAX    4
#define TIME_LIMIT   60
#define TOO_LATE     60 /* seconds behind a limit or a cancellation, for a job to run on */
#define CAUSE_BYTES  48

/* How the ranks of an attempt ended. */
enum outcome { RAN_NOT, RAN_ON, RAN_TO_END, RAN_TO_STOP, RAN_INTO_FAILURE, RAN_INTO_DEATH };

/* A folder attempt-N. */
struct attempt {
    bool folder, mark_cancel, mark_limit, mark_stall, mark_grow;
    int owner; /* slurm-job: which Slurm job's script runs here; 0: none */
    int begun; /* so often ranks began here */
    enum outcome outcome;
    bool own_fault, outside;
    int64_t steps;
    char cause[CAUSE_BYTES]; /* of a failure */
};

/* mpirun and its ranks, or a Slurm job with its script and ranks. */
struct process {
    int job, attempt;
    bool gated;    /* mpirun waits at its gate */
    bool alive;    /* mpirun runs; in Slurm: the ranks run */
    bool ranks;    /* there are any */
    bool hung;     /* no rank gets on, and none hears a request */
    bool deaf;     /* ranks do not hear a request */
    bool stubborn; /* mpirun does not hear SIGTERM */
    double began;
    bool orphans; /* ranks outlive mpirun until they are killed */
    bool asked;
    bool killed_launcher;
    /* In Slurm. */
    bool submitted, pending;
    int restarts, first_attempt;
};

/* A row of the table job, and what the checks need to know of the job. */
struct job {
    enum job_state state;
    int attempt, cancel_attempt, launcher; /* launcher: number of a process; 0: none */
    bool for_slurm, in_slurm;              /* launcher slurm; the column slurm is set */
    int first_attempt;                     /* of the name in it */
    int64_t restarts, restarts_max, slots, priority;
    int64_t wanted; /* slots; it has fewer if the node was smaller */
    const char *user;
    bool resumes, trains, held;
    double queued_at, not_before, time_limit;
    char reason[ATTEMPT_REASON_BYTES], failure[FAILURE_TEXT_BYTES];
    int64_t checkpoint;
    struct attempt attempts[ATTEMPTS_MAX];
    /* For the checks. */
    char first_cause[CAUSE_BYTES]; /* of its first attempt that failed */
    bool vague; /* which cause is first: a stall that nobody has seen, then Slurm put it back */
    int64_t real_restarts;
    int cancelled_at; /* the attempt of which a cancellation was granted; -1: none */
    double cancelled_since;
    int resumed; /* so often by users */
    bool cancelled_waiting;
    int listed, tried; /* in the last look at the queue of this number */
};

/* What the loop knows of a job: gone when the daemon is killed. */
struct active {
    bool used;
    int job, attempt, process;
    struct job_machine machine;
    struct verdict verdict;
    bool judged;
    struct error no_start;
    double ends; /* the upper end of its estimate */
    /* The thread that speaks with Slurm. */
    bool held, known, silent, cancel, ended_there;
};

/* What was once wrong around the core, and is put back to see that it is found. */
enum defect {
    DEFECT_NONE,
    DEFECT_CANCEL_TAKES_ANY_STATE, /* a job that was waiting when it was read is cancelled now */
    DEFECT_WISH_IS_LOST,           /* an attempt's end does not ask if it was to be cancelled */
    DEFECT_SLURM_GETS_IT_ANYWAY,   /* it is handed over without looking if it was cancelled */
    DEFECT_PUT_BACK_IN_TWO,        /* end of one attempt, begin of the next: two transactions */
    DEFECT_QUEUE_STARTS_TWICE,     /* the queue does not know what the loop still has */
    DEFECT_MARK_OF_NEWEST_ALONE,   /* a script does not see that the attempt before is cancelled */
    DEFECT_HELD_AFTER_THE_LOOK,    /* a job that was held behind the look at the queue starts */
    DEFECT_GROWTH_IS_FORGOTTEN,    /* another daemon does not know why the workers were stopped */
    DEFECT_GROWTH_IS_A_RESTART,    /* and counts against their number */
    DEFECT_GROWTH_OVERTAKES,       /* it takes the slots that a job before it waits for */
    DEFECT_COUNT
};

struct world {
    enum defect defect;
    struct chance chance;
    double now;
    struct job jobs[JOBS_MAX + 1]; /* from 1 on */
    int job_count;
    struct process processes[256]; /* from 1 on */
    int process_count;
    struct active active[JOBS_MAX];
    struct queue_plan *plan; /* of a look at the queue under way */
    bool slurm_up, disk_full;
    int64_t slots;          /* of the node */
    struct queue_caps caps; /* of each user */
    struct queue_fair_share fair;
    double share[2]; /* of the use, by user: changes as time passes */
    double calm_at;  /* since when nothing special happens; 0: not yet */
    int looks;       /* at the queue */
    int depth;       /* of what is done between two actions */
    bool violated;
    char violation[512];
    const char *violation_kind; /* its format */
    FILE *trace;                /* NULL: none */
    jmp_buf killed;             /* the daemon was */
    bool may_kill;
    long lives; /* attempts that ran */
    long grown; /* times that a job got slots back */
};

/* A world from a seed or a script: jobs, faults, then calm until all has ended. False: something is
 * wrong, world->violation says what. */
bool world_run(struct world *w);

/* Notes the first thing that is wrong. */
void world_violation(struct world *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Text within the world. */
void world_copy(char *to, size_t bytes, const char *from);

/* A line of the trace. */
void world_trace(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- the state machine (machine.c) */

/* As job_state_machine_step, without a row of the table; -1: with all. */
int simulate_step(struct job_machine *machine, const struct job_observation *seen, job_act *act,
                  void *context, struct error *e);
void simulate_leave_out(int row);
int simulate_row_count(void);
const char *simulate_row_words(int row);
const char *simulate_action_name(enum job_action action);
void simulate_print_table(void); /* for doc/job-lifecycle.md */

/* ---- processes and Slurm (nature.c) */

/* Something happens, or not. */
void nature_act(struct world *w);
int nature_start(struct world *w, int job, int attempt, bool slurm); /* a new process's number */
void nature_release(struct world *w, struct process *p);
void nature_ask(struct world *w, struct process *p);
void nature_terminate(struct world *w, struct process *p);
void nature_kill(struct world *w, struct process *p);
bool nature_is_left(const struct process *p);

/* ---- users (users.c) */

void users_act(struct world *w);

/* ---- the daemon (shell.c) */

void shell_start(struct world *w); /* finds what another one left */
void shell_round(struct world *w);
void shell_forget_all(struct world *w); /* killed */
bool shell_has(const struct world *w, int job);
bool shell_is_before(const struct world *w, int one, int other); /* in the queue */

/* ---- what must hold (check.c) */

void check_now(struct world *w);
void check_start(struct world *w, int job);  /* before its attempt is stored */
void check_growth(struct world *w, int job); /* before its workers are asked to stop for it */
void check_end(struct world *w);             /* all is calm */
