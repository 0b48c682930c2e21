#include "daemon/job/job_state_machine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TERM_SECONDS  3  /* mpirun kills its ranks one second after SIGTERM, then cleans up */
#define RANKS_SECONDS 2  /* ranks that outlive mpirun are killed after this time */
#define LOOK_SECONDS  10 /* the time limit is checked again, because steps may become longer */

/* ---------------------------------------------------------------- transition table */

enum condition {
    ALWAYS,
    LOCAL, /* launcher is not slurm */
    RESUMES,
    NOT_STOPPING,
    ASKED_IN_VAIN,
    TERMINATED_IN_VAIN,
    LIMITED,
    LIMIT_NEAR,
    MAY_BE_PUT_BACK, /* otherwise Slurm is told to end the job */
    NO_RESTART_LEFT,
    STOPPED_UNRUN,
    CLEARS_TOO_LONG,
    UNSTARTED,
    WAITED_ONLY
};

enum {
    LIMIT_BEGINS = 1,
    LOOK_LATER = 2,
    NEXT_ATTEMPT = 4,
    NEVER_STARTED = 8,
    CANCEL_ASKED = 16,
    KILLED = 32
};

#define AT(phase)    (1u << PHASE_##phase)
#define UNDER_WAY    (AT(IN_SLURM) | AT(RUNNING))
#define STAYS        PHASE_COUNT
#define ACTIONS_MAX  7
#define ANY_OF_START DO_PREPARE /* up to DO_OPEN_GATE; no transition is for DO_PREPARE alone */
#define CONFLICT     (1u << ERR_CONFLICT)
#define NOT_FOUND    (1u << ERR_NOT_FOUND)
#define START                                                                                      \
    DO_PREPARE, DO_STORE_ATTEMPT, DO_START_LAUNCHER, DO_STORE_LAUNCHER, DO_FOLLOW, DO_OPEN_GATE

/* The first row whose phase, event and conditions match applies. */
static const struct transition {
    unsigned from; /* bit set of phases */
    enum job_observed on;
    const char *when;  /* condition text for the documentation */
    enum job_phase to; /* STAYS: unchanged */
    enum job_action act[ACTIONS_MAX];
    enum condition only_if;
    enum job_action failed; /* for ON_ACTION_FAILED */
    unsigned why;           /* bit set of error codes; 0: any */
    enum job_stop stop;     /* how the job is being stopped; STOP_NONE: it is not */
    enum failure_stop why_stopped;
    unsigned sets;
} transitions[] = {
  /* clang-format off */
    {AT(WAITING), ON_MAY_START, "its slots are free", PHASE_RUNNING, .act = {START},
     .only_if = LOCAL, .sets = LIMIT_BEGINS},
    {AT(WAITING), ON_MAY_START, "it is for Slurm", PHASE_IN_SLURM, .act = {START}},
    {AT(WAITING), ON_ACTION_FAILED, "it was cancelled or held meanwhile", PHASE_FORGOTTEN,
     .act = {DO_FORGET}, .failed = DO_STORE_ATTEMPT, .why = CONFLICT},
    {AT(WAITING), ON_ACTION_FAILED, "the store cannot be written", PHASE_FORGOTTEN,
     .act = {DO_TRY_LATER, DO_FORGET}, .failed = DO_STORE_ATTEMPT},
    {AT(WAITING), ON_ACTION_FAILED, "it cannot be started", PHASE_FORGOTTEN,
     .act = {DO_ABANDON_LAUNCHER, DO_STORE_NO_START, DO_FORGET}, .failed = ANY_OF_START},
    {AT(WAITING) | AT(CLEARING), ON_ACTION_FAILED, "it has been cancelled or removed since", PHASE_FORGOTTEN,
     .act = {DO_FORGET}, .failed = DO_STORE_NO_START, .why = CONFLICT | NOT_FOUND},
    {AT(WAITING), ON_ACTION_FAILED, "the store cannot be written", PHASE_CLEARING,
     .failed = DO_STORE_NO_START, .sets = NEVER_STARTED},
    {AT(WAITING), ON_NEVER_FITS, "the node has too few slots now, and it has a checkpoint", PHASE_WAITING,
     .act = {DO_SHRINK}, .only_if = RESUMES},
    {AT(WAITING), ON_NEVER_FITS, "the node has too few slots now", PHASE_ENDED,
     .act = {DO_STORE_UNFIT}},
    {AT(WAITING), ON_ACTION_FAILED, "it cannot run with fewer workers", PHASE_ENDED,
     .act = {DO_STORE_UNFIT}, .failed = DO_SHRINK},

    {AT(WAITING), ON_CANCEL_ASKED, "its cancellation is requested", PHASE_ENDED,
     .act = {DO_STORE_CANCELLED}},
    {UNDER_WAY, ON_CANCEL_ASKED, "its cancellation is requested", STAYS,
     .act = {DO_STORE_CANCEL_REQUEST, DO_MARK_CANCEL, DO_WAKE_LOOP}},
    {UNDER_WAY, ON_CANCEL_SEEN, "the loop finds the request", STAYS,
     .act = {DO_ASK_WORKERS, DO_STORE_STOPPING}, .only_if = NOT_STOPPING, .stop = STOP_ASKED,
     .why_stopped = FAILURE_CANCELLED},
    {UNDER_WAY, ON_TIME_PASSED, "its time limit is near", STAYS,
     .act = {DO_MARK_LIMIT, DO_ASK_WORKERS, DO_STORE_STOPPING}, .only_if = LIMIT_NEAR,
     .stop = STOP_ASKED, .why_stopped = FAILURE_TIME_LIMIT},
    {UNDER_WAY, ON_TIME_PASSED, "its time limit is not near yet", STAYS, .only_if = LIMITED,
     .sets = LOOK_LATER},
    {UNDER_WAY, ON_STALLED, "it makes no progress", STAYS,
     .act = {DO_MARK_STALL, DO_TERMINATE}, .only_if = NOT_STOPPING, .stop = STOP_TERMINATED,
     .why_stopped = FAILURE_STALLED},
    {AT(RUNNING), ON_MAY_GROW, "more of its hosts answer and are free", STAYS,
     .act = {DO_MARK_GROW, DO_ASK_WORKERS, DO_STORE_STOPPING}, .only_if = NOT_STOPPING,
     .stop = STOP_ASKED, .why_stopped = FAILURE_GROWS},
    {UNDER_WAY, ON_TIME_PASSED, "the workers did not stop when asked", STAYS,
     .act = {DO_TERMINATE}, .only_if = ASKED_IN_VAIN, .stop = STOP_TERMINATED},
    {UNDER_WAY, ON_TIME_PASSED, "the launcher did not end after SIGTERM", STAYS,
     .act = {DO_KILL}, .only_if = TERMINATED_IN_VAIN, .stop = STOP_KILLED},

    {AT(IN_SLURM), ON_SLURM_STARTED, "Slurm starts it", PHASE_RUNNING, .act = {DO_STORE_STARTED},
     .sets = LIMIT_BEGINS},
    {AT(IN_SLURM), ON_SLURM_SILENT, "it must end, has not run, and Slurm does not answer", PHASE_CLEARING,
     .act = {DO_DISOWN_IN_SLURM}, .only_if = STOPPED_UNRUN},
    {UNDER_WAY, ON_SLURM_PUT_BACK, "Slurm requeues it, and no restart is left", PHASE_CLEARING,
     .act = {DO_CANCEL_IN_SLURM}, .only_if = NO_RESTART_LEFT},
    {UNDER_WAY, ON_SLURM_PUT_BACK, "Slurm requeues it", PHASE_IN_SLURM, .act = {DO_STORE_PUT_BACK},
     .only_if = MAY_BE_PUT_BACK, .sets = NEXT_ATTEMPT},
    {UNDER_WAY, ON_ACTION_FAILED, "its cancellation was requested first", STAYS, .act = {DO_CANCEL_IN_SLURM},
     .failed = DO_STORE_PUT_BACK, .why = CONFLICT, .sets = CANCEL_ASKED},

    {UNDER_WAY, ON_LAUNCHER_ENDED, "its launcher has ended", PHASE_CLEARING, .sets = KILLED},
    {AT(CLEARING), ON_PROCESSES_LEFT, "some of its processes remain after 2 s, or after a signal", STAYS,
     .act = {DO_KILL}, .only_if = CLEARS_TOO_LONG},
    {AT(CLEARING), ON_NOTHING_LEFT, "its failure to start is not stored yet", PHASE_FORGOTTEN,
     .act = {DO_STORE_NO_START, DO_FORGET}, .only_if = UNSTARTED},
    {AT(CLEARING), ON_NOTHING_LEFT, "all its processes have ended", PHASE_FORGOTTEN,
     .act = {DO_STORE_END, DO_FINISH, DO_FORGET}},
    {AT(CLEARING), ON_ACTION_FAILED, "its cancellation was requested meanwhile", PHASE_CLEARING,
     .failed = DO_STORE_END, .why = CONFLICT, .sets = CANCEL_ASKED},

    {AT(LOST), ON_FOUND_FOREIGN, "a new daemon finds another job's run directory", PHASE_FORGOTTEN,
     .act = {DO_STORE_LOST, DO_FORGET}},
    {AT(LOST), ON_FOUND_NOTHING, "a new daemon finds neither launcher nor run directory", PHASE_FORGOTTEN,
     .act = {DO_KILL, DO_STORE_LOST, DO_FORGET}},
    {AT(LOST), ON_FOUND_UNLAUNCHED, "a new daemon finds that it was never launched", PHASE_FORGOTTEN,
     .act = {DO_STORE_BACK, DO_FORGET}},
    {AT(LOST), ON_ACTION_FAILED, "its cancellation was requested meanwhile", PHASE_FORGOTTEN,
     .act = {DO_STORE_CANCELLED, DO_FORGET}, .failed = DO_STORE_BACK, .why = CONFLICT},
    {AT(LOST), ON_FOUND_ALIVE, "a new daemon finds its launcher", PHASE_RUNNING, .act = {DO_FOLLOW},
     .sets = LIMIT_BEGINS},
    {AT(LOST), ON_FOUND_DEAD, "a new daemon finds its launcher gone", PHASE_CLEARING,
     .act = {DO_FOLLOW}},
    {AT(LOST), ON_FOUND_IN_SLURM, "a new daemon finds that it waited in Slurm's queue", PHASE_IN_SLURM,
     .act = {DO_FOLLOW, DO_OPEN_GATE}, .only_if = WAITED_ONLY},
    {AT(LOST), ON_FOUND_IN_SLURM, "a new daemon finds that Slurm had started it", PHASE_RUNNING,
     .act = {DO_FOLLOW, DO_OPEN_GATE}},
  /* clang-format on */
};

#define TRANSITIONS ((int)(sizeof transitions / sizeof transitions[0]))

/* ---------------------------------------------------------------- choosing a transition */

/* Returns a time early enough for a checkpoint, but not before half of the limit. */
static double state_ask_at(const struct job_machine *machine, double grace_seconds)
{
    return machine->limit_at - fmin(grace_seconds, machine->limit_seconds / 2);
}

static bool state_holds(enum condition condition, const struct job_machine *machine,
                        const struct job_observation *seen)
{
    bool due = seen->now >= machine->due;
    bool limited = machine->stop == STOP_NONE && isfinite(machine->limit_at);
    bool may_be_put_back = machine->stop <= STOP_ASKED && !machine->cancel_asked;

    switch (condition) {
    case ALWAYS:
        return true;
    case LOCAL:
        return !machine->slurm;
    case RESUMES:
        return machine->resumes;
    case NOT_STOPPING:
        return machine->stop == STOP_NONE;
    case ASKED_IN_VAIN:
        return machine->stop == STOP_ASKED && due;
    case TERMINATED_IN_VAIN:
        return machine->stop > STOP_ASKED && due;
    case LIMITED:
        return limited;
    case LIMIT_NEAR:
        return limited && seen->now >= state_ask_at(machine, seen->grace_seconds);
    case MAY_BE_PUT_BACK:
        return may_be_put_back;
    case NO_RESTART_LEFT:
        return may_be_put_back && seen->last;
    case STOPPED_UNRUN:
        return machine->stop != STOP_NONE && !machine->may_have_run;
    case CLEARS_TOO_LONG:
        return machine->killed || seen->now - machine->ended_at >= RANKS_SECONDS;
    case UNSTARTED:
        return machine->never_started;
    case WAITED_ONLY:
        return !machine->may_have_run;
    }
    return false;
}

static bool state_is_of_failure(const struct transition *t, const struct job_observation *seen)
{
    bool this = t->failed == ANY_OF_START
                    ? seen->failed >= DO_PREPARE && seen->failed <= DO_OPEN_GATE
                    : t->failed == seen->failed;

    return this && (!t->why || t->why & 1u << seen->why);
}

static void state_note(struct job_machine *machine, const struct transition *t,
                       const struct job_observation *seen)
{
    if (t->sets & NEXT_ATTEMPT) {
        machine->stop = STOP_NONE;
        machine->stop_why = FAILURE_NOT_STOPPED;
        machine->limit_at = machine->due = INFINITY;
        machine->may_have_run = false;
    }
    if (t->stop != STOP_NONE) {
        if (machine->stop == STOP_NONE)
            machine->stop_why = t->why_stopped;
        machine->stop = t->stop;
        machine->due = seen->now + (t->stop == STOP_ASKED ? seen->grace_seconds : TERM_SECONDS);
    }
    if (t->sets & LOOK_LATER)
        machine->due = fmin(state_ask_at(machine, seen->grace_seconds), seen->now + LOOK_SECONDS);
    if (t->sets & LIMIT_BEGINS && !isnan(machine->limit_seconds)) {
        machine->limit_at = seen->now + machine->limit_seconds - seen->ran_seconds;
        if (machine->stop == STOP_NONE)
            machine->due = seen->now;
    }
    machine->never_started |= (t->sets & NEVER_STARTED) != 0;
    machine->cancel_asked |= (t->sets & CANCEL_ASKED) != 0;
    if (t->sets & KILLED)
        machine->killed = seen->killed;
    if (t->to == PHASE_CLEARING && machine->phase != PHASE_CLEARING)
        machine->ended_at = seen->now;
    if (t->to != STAYS)
        machine->phase = t->to;
    if (machine->phase != PHASE_IN_SLURM && machine->phase != PHASE_RUNNING)
        machine->due = INFINITY;
}

/* Finds the matching row and sets the machine to its state after all actions; NULL: none. */
static const struct transition *state_decide(const struct transition *rows, int count,
                                             const struct job_machine *machine,
                                             const struct job_observation *seen,
                                             struct job_machine *then)
{
    for (const struct transition *t = rows; t < rows + count; t++) {
        if (t->on != seen->event || !(t->from & 1u << machine->phase) ||
            !state_holds(t->only_if, machine, seen) ||
            (t->on == ON_ACTION_FAILED && !state_is_of_failure(t, seen)))
            continue;
        *then = *machine;
        state_note(then, t, seen);
        return t;
    }
    return NULL;
}

static int state_act(const struct transition *t, job_act *act, void *context,
                     enum job_action *failed, struct error *e)
{
    for (int i = 0; i < ACTIONS_MAX && t->act[i] != DO_NOTHING; i++) {
        int status = act(context, t->act[i], e);
        if (t->act[i] == DO_FORGET)
            return MACHINE_GONE;
        if (status && !job_state_action_is_optional(t->act[i])) {
            *failed = t->act[i];
            return status;
        }
    }
    return MACHINE_DONE;
}

static int state_step(const struct transition *rows, int count, struct job_machine *machine,
                      const struct job_observation *seen, job_act *act, void *context,
                      struct error *e)
{
    struct job_observation failure = *seen;
    struct job_machine then;
    const struct transition *t = state_decide(rows, count, machine, seen, &then);
    int status = MACHINE_NOTHING;

    while (t && (status = state_act(t, act, context, &failure.failed, e)) < 0) {
        failure.event = ON_ACTION_FAILED;
        failure.why = e->code;
        t = state_decide(rows, count, machine, &failure, &then);
    }
    if (status == MACHINE_DONE)
        *machine = then;
    return status;
}

int job_state_machine_step(struct job_machine *machine, const struct job_observation *seen,
                           job_act *act, void *context, struct error *e)
{
    return state_step(transitions, TRANSITIONS, machine, seen, act, context, e);
}

struct job_machine job_state_machine_of(enum job_state state, bool slurm)
{
    return (struct job_machine){.phase = job_state_is_final(state) ? PHASE_ENDED
                                         : state != JOB_QUEUED     ? PHASE_RUNNING
                                         : slurm                   ? PHASE_IN_SLURM
                                                                   : PHASE_WAITING,
                                .slurm = slurm,
                                .due = INFINITY,
                                .limit_at = INFINITY,
                                .limit_seconds = NAN};
}

enum job_observed job_state_found_event(const struct job_found *found)
{
    if (found->foreign)
        return ON_FOUND_FOREIGN;
    if (found->slurm)
        return ON_FOUND_IN_SLURM;
    if (!found->launched)
        return ON_FOUND_UNLAUNCHED;
    if (found->alive)
        return ON_FOUND_ALIVE;
    return found->missing ? ON_FOUND_NOTHING : ON_FOUND_DEAD;
}

bool job_state_action_is_optional(enum job_action action)
{
#define JOB_ACTION_OPTIONAL(name, words, optional) [DO_##name] = (optional),
    static const bool is_optional[] = {JOB_ACTIONS(JOB_ACTION_OPTIONAL)};

    return is_optional[action];
}

/* ---------------------------------------------------------------- the end of an attempt */

/* A job that failed before its first step would fail again, as would one with an invalid document
 * or one that diverged, unless a failure rule says otherwise. */
static bool state_is_worth_a_restart(const struct verdict *v, const struct attempt_history *h)
{
    bool has_begun = v->step > 0 || v->outside || (v->hosts_missing && h->resumes);
    bool usual = has_begun && !v->own_fault;
    bool again = v->again == FAILURE_AGAIN_USUAL ? usual : v->again == FAILURE_AGAIN;

    return v->state == JOB_FAILED && again && h->restarts < h->restarts_max;
}

double job_state_restart_delay(double restart_delay_seconds, int64_t restarts)
{
    return fmin(RESTART_DELAY_MAX_SECONDS, restart_delay_seconds * pow(2, (double)restarts));
}

#define FROM_BYTES 64

static const char *state_from(const struct attempt_history *h, char from[FROM_BYTES])
{
    if (h->checkpoint > 0)
        snprintf(from, FROM_BYTES, "its checkpoint of step %lld", (long long)h->checkpoint);
    else
        snprintf(from, FROM_BYTES, "the beginning, as it has no checkpoint");
    return from;
}

static void state_say_next_link(const struct verdict *v, const struct attempt_history *h,
                                char *reason)
{
    char from[FROM_BYTES];

    snprintf(reason, ATTEMPT_REASON_BYTES, "%s; %s%s from %s", v->reason,
             h->checkpoint > 0 ? "continues" : "starts", v->grows ? "" : " in another allocation,",
             state_from(h, from));
}

static void state_say_restart(const struct verdict *v, const struct attempt_history *h,
                              double pause_seconds, char *reason)
{
    char from[FROM_BYTES];
    int used = snprintf(reason, ATTEMPT_REASON_BYTES, "%.*s; restart %lld of %lld",
                        (int)failure_cause_length(v->reason), v->reason, (long long)h->restarts + 1,
                        (long long)h->restarts_max);

    if (!h->keeps_slurm)
        snprintf(reason + used, ATTEMPT_REASON_BYTES - (size_t)used, " follows in %.0f s, from %s",
                 pause_seconds, state_from(h, from));
}

/* Names the first cause first, and quotes the log only for the failure that ended the job. */
static void state_say_end(const struct verdict *v, const struct attempt_history *h, char *reason)
{
    const char *times = h->restarts == 1 ? "restart" : "restarts";
    const char *first = h->first_failure ? h->first_failure : "";
    size_t length = failure_cause_length(first);
    bool same = length == failure_cause_length(v->reason) && !strncmp(first, v->reason, length);

    snprintf(reason, ATTEMPT_REASON_BYTES, "%s", v->reason);
    if (h->restarts == 0)
        return;
    if (v->state == JOB_SUCCEEDED)
        snprintf(reason, ATTEMPT_REASON_BYTES, "complete after %lld %s; the first failure: %.*s",
                 (long long)h->restarts, times, (int)length, first);
    else if (v->state == JOB_FAILED && same)
        snprintf(reason, ATTEMPT_REASON_BYTES, "%.*s; failed in the same way after %lld %s%s",
                 (int)length, first, (long long)h->restarts, times, v->reason + length);
    else if (v->state == JOB_FAILED)
        snprintf(reason, ATTEMPT_REASON_BYTES,
                 "%.*s; failed again after %lld %s, the last time: %s", (int)length, first,
                 (long long)h->restarts, times, v->reason);
}

void job_state_after_attempt(const struct verdict *v, const struct attempt_history *h,
                             struct attempt_outcome *end)
{
    *end = (struct attempt_outcome){
        .to = v->state,
        .goes_on = v->goes_on,
        .restarts = !v->goes_on && state_is_worth_a_restart(v, h),
        .failed = v->state == JOB_FAILED && !v->goes_on,
        .resumes = h->trains && (h->ran || h->resumes),
    };
    if (end->restarts || end->goes_on)
        end->to = JOB_QUEUED;
    if (end->restarts && !h->keeps_slurm)
        end->pause_seconds = job_state_restart_delay(h->restart_delay_seconds, h->restarts);
    if (end->goes_on)
        state_say_next_link(v, h, end->reason);
    else if (end->restarts)
        state_say_restart(v, h, end->pause_seconds, end->reason);
    else
        state_say_end(v, h, end->reason);
}
