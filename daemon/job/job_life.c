#include "daemon/job/job_life.h"

#include <math.h>

#define TERM_SECONDS  3  /* mpirun kills its ranks one second behind SIGTERM and then cleans up */
#define RANKS_SECONDS 2  /* ranks that outlive mpirun end within this, or are killed */
#define LOOK_SECONDS  10 /* steps may become longer, so the time limit is looked at again */

static const struct {
    const char *name, *words;
    bool optional;
} actions[LIFE_ACTION_COUNT] = {
  /* clang-format off */
    [LIFE_NO_ACTION] = {"none", "", false},
    [LIFE_PREPARE] = {"prepare", "prepare its run directory", false},
    [LIFE_STORE_ATTEMPT] = {"store_attempt", "store the attempt", false},
    [LIFE_START_LAUNCHER] = {"start_launcher", "start the launcher behind a gate", false},
    [LIFE_STORE_LAUNCHER] = {"store_launcher", "store the launcher", false},
    [LIFE_FOLLOW] = {"follow", "read its events", false},
    [LIFE_OPEN_GATE] = {"open_gate", "open the gate", false},
    [LIFE_ABANDON_LAUNCHER] = {"abandon_launcher", "close the gate", true},
    [LIFE_STORE_NO_START] = {"store_no_start", "store that it was not started", false},
    [LIFE_TRY_LATER] = {"try_later", "try again in a second", true},
    [LIFE_SHRINK] = {"shrink", "plan it for fewer workers", false},
    [LIFE_STORE_UNFIT] = {"store_unfit", "store that it failed", false},
    [LIFE_STORE_CANCELLED] = {"store_cancelled", "store that it is cancelled", false},
    [LIFE_STORE_WISH] = {"store_wish", "store the wish", false},
    [LIFE_MARK_WISH] = {"mark_wish", "write `cancel-requested`", false},
    [LIFE_TELL_LOOP] = {"tell_loop", "wake the loop", false},
    [LIFE_MARK_LIMIT] = {"mark_limit", "write `time-limit-reached`", true},
    [LIFE_MARK_STALL] = {"mark_stall", "write `stalled.json`", true},
    [LIFE_ASK_WORKERS] = {"ask_workers", "SIGUSR1", true},
    [LIFE_TERMINATE] = {"terminate", "SIGTERM, or scancel", true},
    [LIFE_KILL] = {"kill", "SIGKILL to all processes", true},
    [LIFE_SAY_STOPPING] = {"say_stopping", "store the reason", true},
    [LIFE_STORE_STARTED] = {"store_started", "store that it is starting", true},
    [LIFE_STORE_PUT_BACK] = {"store_put_back", "store the attempt's end and the next one", false},
    [LIFE_CANCEL_IN_SLURM] = {"cancel_in_slurm", "scancel", true},
    [LIFE_DISOWN_IN_SLURM] = {"disown_in_slurm", "scancel when Slurm answers", false},
    [LIFE_STORE_END] = {"store_end", "store the attempt's end", false},
    [LIFE_FINISH] = {"finish", "write its logs for others", true},
    [LIFE_STORE_BACK] = {"store_back", "store that it is queued", false},
    [LIFE_STORE_LOST] = {"store_lost", "store that it failed", false},
    [LIFE_FORGET] = {"forget", "forget it", true},
  /* clang-format on */
};

/* ---------------------------------------------------------------- conditions */

typedef bool life_condition(const struct life *life, const struct life_observation *seen);

static bool life_is_local(const struct life *life, const struct life_observation *seen)
{
    (void)seen;
    return !life->slurm;
}

static bool life_resumes(const struct life *life, const struct life_observation *seen)
{
    (void)seen;
    return life->resumes;
}

static bool life_goes_on(const struct life *life, const struct life_observation *seen)
{
    (void)seen;
    return life->stop == LIFE_STOP_NONE;
}

static bool life_is_asked(const struct life *life, const struct life_observation *seen)
{
    return life->stop == LIFE_STOP_ASKED && seen->now >= life->due;
}

static bool life_is_terminated(const struct life *life, const struct life_observation *seen)
{
    return life->stop > LIFE_STOP_ASKED && seen->now >= life->due;
}

/* Early enough for a checkpoint, but not before half of the time. */
static double life_ask_at(const struct life *life, double grace_seconds)
{
    return life->limit_at - fmin(grace_seconds, life->limit_seconds / 2);
}

static bool life_is_near_limit(const struct life *life, const struct life_observation *seen)
{
    return life->stop == LIFE_STOP_NONE && isfinite(life->limit_at) &&
           seen->now >= life_ask_at(life, seen->grace_seconds);
}

static bool life_has_limit(const struct life *life, const struct life_observation *seen)
{
    (void)seen;
    return life->stop == LIFE_STOP_NONE && isfinite(life->limit_at);
}

/* Otherwise Slurm is told to end it, and it ends there. */
static bool life_may_be_put_back(const struct life *life, const struct life_observation *seen)
{
    (void)seen;
    return life->stop <= LIFE_STOP_ASKED && !life->cancel_asked;
}

static bool life_is_last(const struct life *life, const struct life_observation *seen)
{
    return seen->last && life_may_be_put_back(life, seen);
}

static bool life_was_never_run(const struct life *life, const struct life_observation *seen)
{
    (void)seen;
    return life->stop != LIFE_STOP_NONE && !life->may_have_run;
}

static bool life_is_long_ended(const struct life *life, const struct life_observation *seen)
{
    return life->killed || seen->now - life->ended_at >= RANKS_SECONDS;
}

static bool life_never_started(const struct life *life, const struct life_observation *seen)
{
    (void)seen;
    return life->never_started;
}

static bool life_wait_is_stored(const struct life *life, const struct life_observation *seen)
{
    (void)seen;
    return !life->may_have_run;
}

static bool life_was_just_cancelled(const struct life *life, const struct life_observation *seen)
{
    (void)life;
    return seen->failed == LIFE_STORE_ATTEMPT && seen->why == ERR_CONFLICT;
}

static bool life_attempt_is_not_stored(const struct life *life, const struct life_observation *seen)
{
    (void)life;
    return seen->failed == LIFE_STORE_ATTEMPT;
}

static bool life_no_start_is_pointless(const struct life *life, const struct life_observation *seen)
{
    (void)life;
    return seen->failed == LIFE_STORE_NO_START &&
           (seen->why == ERR_CONFLICT || seen->why == ERR_NOT_FOUND);
}

static bool life_no_start_is_not_stored(const struct life *life,
                                        const struct life_observation *seen)
{
    (void)life;
    return seen->failed == LIFE_STORE_NO_START;
}

static bool life_is_start(const struct life *life, const struct life_observation *seen)
{
    (void)life;
    return seen->failed >= LIFE_PREPARE && seen->failed <= LIFE_OPEN_GATE;
}

static bool life_cannot_shrink(const struct life *life, const struct life_observation *seen)
{
    (void)life;
    return seen->failed == LIFE_SHRINK;
}

static bool life_is_not_put_back(const struct life *life, const struct life_observation *seen)
{
    (void)life;
    return seen->failed == LIFE_STORE_BACK && seen->why == ERR_CONFLICT;
}

/* The store refuses to queue an attempt again that somebody asked to cancel meanwhile. */
static bool life_wish_came_first(const struct life *life, const struct life_observation *seen)
{
    (void)life;
    return seen->why == ERR_CONFLICT && seen->failed == LIFE_STORE_END;
}

static bool life_wish_came_before_slurm(const struct life *life,
                                        const struct life_observation *seen)
{
    (void)life;
    return seen->why == ERR_CONFLICT && seen->failed == LIFE_STORE_PUT_BACK;
}

/* ---------------------------------------------------------------- the table */

#define AT(phase)  (1u << LIFE_##phase)
#define UNDER_WAY  (AT(IN_SLURM) | AT(RUNNING))
#define STOP_KEEPS -1

#define START                                                                                      \
    LIFE_PREPARE, LIFE_STORE_ATTEMPT, LIFE_START_LAUNCHER, LIFE_STORE_LAUNCHER, LIFE_FOLLOW,       \
        LIFE_OPEN_GATE

static const struct life_row {
    unsigned from; /* phases, as bits */
    enum life_event on;
    life_condition *only_if; /* NULL: always. The first row whose condition holds counts. */
    const char *when;
    enum life_phase to; /* LIFE_PHASE_COUNT: stays */
    int stop;           /* enum life_stop */
    enum life_action actions[LIFE_ACTIONS_MAX];
} rows[] = {
  /* clang-format off */
    {AT(WAITING), LIFE_MAY_START, life_is_local, "its slots are free",
     LIFE_RUNNING, STOP_KEEPS, {START}},
    {AT(WAITING), LIFE_MAY_START, NULL, "it is for Slurm",
     LIFE_IN_SLURM, STOP_KEEPS, {START}},
    {AT(WAITING), LIFE_ACTION_FAILED, life_was_just_cancelled, "it was cancelled or held in this moment",
     LIFE_FORGOTTEN, STOP_KEEPS, {LIFE_FORGET}},
    {AT(WAITING), LIFE_ACTION_FAILED, life_attempt_is_not_stored, "the store cannot be written",
     LIFE_FORGOTTEN, STOP_KEEPS, {LIFE_TRY_LATER, LIFE_FORGET}},
    {AT(WAITING), LIFE_ACTION_FAILED, life_is_start, "it cannot be started",
     LIFE_FORGOTTEN, STOP_KEEPS, {LIFE_ABANDON_LAUNCHER, LIFE_STORE_NO_START, LIFE_FORGET}},
    {AT(WAITING) | AT(CLEARING), LIFE_ACTION_FAILED, life_no_start_is_pointless,
     "it has been cancelled or removed since",
     LIFE_FORGOTTEN, STOP_KEEPS, {LIFE_FORGET}},
    {AT(WAITING), LIFE_ACTION_FAILED, life_no_start_is_not_stored, "the store cannot be written",
     LIFE_CLEARING, STOP_KEEPS, {LIFE_NO_ACTION}},
    {AT(WAITING), LIFE_NEVER_FITS, life_resumes, "the node has too few slots now, and it has a checkpoint",
     LIFE_WAITING, STOP_KEEPS, {LIFE_SHRINK}},
    {AT(WAITING), LIFE_NEVER_FITS, NULL, "the node has too few slots now",
     LIFE_ENDED, STOP_KEEPS, {LIFE_STORE_UNFIT}},
    {AT(WAITING), LIFE_ACTION_FAILED, life_cannot_shrink, "it cannot run with fewer workers",
     LIFE_ENDED, STOP_KEEPS, {LIFE_STORE_UNFIT}},

    {AT(WAITING), LIFE_CANCEL_ASKED, NULL, "its cancellation is asked for",
     LIFE_ENDED, STOP_KEEPS, {LIFE_STORE_CANCELLED}},
    {UNDER_WAY, LIFE_CANCEL_ASKED, NULL, "its cancellation is asked for",
     LIFE_PHASE_COUNT, STOP_KEEPS, {LIFE_STORE_WISH, LIFE_MARK_WISH, LIFE_TELL_LOOP}},
    {UNDER_WAY, LIFE_CANCEL_SEEN, life_goes_on, "the loop finds the wish",
     LIFE_PHASE_COUNT, LIFE_STOP_ASKED, {LIFE_ASK_WORKERS, LIFE_SAY_STOPPING}},
    {UNDER_WAY, LIFE_TIME_PASSED, life_is_near_limit, "its time limit is near",
     LIFE_PHASE_COUNT, LIFE_STOP_ASKED, {LIFE_MARK_LIMIT, LIFE_ASK_WORKERS, LIFE_SAY_STOPPING}},
    {UNDER_WAY, LIFE_TIME_PASSED, life_has_limit, "its time limit is not near yet",
     LIFE_PHASE_COUNT, STOP_KEEPS, {LIFE_NO_ACTION}},
    {UNDER_WAY, LIFE_STALLED, life_goes_on, "nothing of it gets on any more",
     LIFE_PHASE_COUNT, LIFE_STOP_TERMINATED, {LIFE_MARK_STALL, LIFE_TERMINATE}},
    {UNDER_WAY, LIFE_TIME_PASSED, life_is_asked, "the workers were asked to end, and did not",
     LIFE_PHASE_COUNT, LIFE_STOP_TERMINATED, {LIFE_TERMINATE}},
    {UNDER_WAY, LIFE_TIME_PASSED, life_is_terminated, "the launcher was told to end, and did not",
     LIFE_PHASE_COUNT, LIFE_STOP_KILLED, {LIFE_KILL}},

    {AT(IN_SLURM), LIFE_SLURM_STARTED, NULL, "Slurm starts it",
     LIFE_RUNNING, STOP_KEEPS, {LIFE_STORE_STARTED}},
    {AT(IN_SLURM), LIFE_SLURM_SILENT, life_was_never_run, "it is to end, has not run, and Slurm does not answer",
     LIFE_CLEARING, STOP_KEEPS, {LIFE_DISOWN_IN_SLURM}},
    {UNDER_WAY, LIFE_SLURM_PUT_BACK, life_is_last, "Slurm puts it back, and no restart is left",
     LIFE_CLEARING, STOP_KEEPS, {LIFE_CANCEL_IN_SLURM}},
    {UNDER_WAY, LIFE_SLURM_PUT_BACK, life_may_be_put_back, "Slurm puts it back",
     LIFE_IN_SLURM, LIFE_STOP_NONE, {LIFE_STORE_PUT_BACK}},
    {UNDER_WAY, LIFE_ACTION_FAILED, life_wish_came_before_slurm, "it was to be cancelled",
     LIFE_PHASE_COUNT, STOP_KEEPS, {LIFE_CANCEL_IN_SLURM}},

    {UNDER_WAY, LIFE_LAUNCHER_ENDED, NULL, "its launcher has ended",
     LIFE_CLEARING, STOP_KEEPS, {LIFE_NO_ACTION}},
    {AT(CLEARING), LIFE_PROCESSES_LEFT, life_is_long_ended, "processes of it are left after 2 s, or after a signal",
     LIFE_PHASE_COUNT, STOP_KEEPS, {LIFE_KILL}},
    {AT(CLEARING), LIFE_NOTHING_LEFT, life_never_started, "that it was not started is not stored yet",
     LIFE_FORGOTTEN, STOP_KEEPS, {LIFE_STORE_NO_START, LIFE_FORGET}},
    {AT(CLEARING), LIFE_NOTHING_LEFT, NULL, "nothing of it is left",
     LIFE_FORGOTTEN, STOP_KEEPS, {LIFE_STORE_END, LIFE_FINISH, LIFE_FORGET}},
    {AT(CLEARING), LIFE_ACTION_FAILED, life_wish_came_first, "its cancellation was asked for in this moment",
     LIFE_CLEARING, STOP_KEEPS, {LIFE_NO_ACTION}},

    {AT(LOST), LIFE_FOUND_FOREIGN, NULL, "a new daemon finds another job's run directory",
     LIFE_FORGOTTEN, STOP_KEEPS, {LIFE_STORE_LOST, LIFE_FORGET}},
    {AT(LOST), LIFE_FOUND_NOTHING, NULL, "a new daemon finds neither launcher nor run directory",
     LIFE_FORGOTTEN, STOP_KEEPS, {LIFE_KILL, LIFE_STORE_LOST, LIFE_FORGET}},
    {AT(LOST), LIFE_FOUND_UNLAUNCHED, NULL, "a new daemon finds that it was never launched",
     LIFE_FORGOTTEN, STOP_KEEPS, {LIFE_STORE_BACK, LIFE_FORGET}},
    {AT(LOST), LIFE_ACTION_FAILED, life_is_not_put_back, "its cancellation was asked for in this moment",
     LIFE_FORGOTTEN, STOP_KEEPS, {LIFE_STORE_CANCELLED, LIFE_FORGET}},
    {AT(LOST), LIFE_FOUND_ALIVE, NULL, "a new daemon finds its launcher",
     LIFE_RUNNING, STOP_KEEPS, {LIFE_FOLLOW}},
    {AT(LOST), LIFE_FOUND_DEAD, NULL, "a new daemon finds its launcher gone",
     LIFE_CLEARING, STOP_KEEPS, {LIFE_FOLLOW}},
    {AT(LOST), LIFE_FOUND_IN_SLURM, life_wait_is_stored, "a new daemon finds that it waited in Slurm's queue",
     LIFE_IN_SLURM, STOP_KEEPS, {LIFE_FOLLOW, LIFE_OPEN_GATE}},
    {AT(LOST), LIFE_FOUND_IN_SLURM, NULL, "a new daemon finds that Slurm had started it",
     LIFE_RUNNING, STOP_KEEPS, {LIFE_FOLLOW, LIFE_OPEN_GATE}},
  /* clang-format on */
};

#define ROWS ((int)(sizeof rows / sizeof rows[0]))

static int left_out = -1;

/* ---------------------------------------------------------------- deciding */

static enum failure_stop life_why(enum life_event event)
{
    return event == LIFE_CANCEL_SEEN ? FAILURE_CANCELLED
           : event == LIFE_STALLED   ? FAILURE_STALLED
                                     : FAILURE_TIME_LIMIT;
}

static void life_note_stop(struct life *life, const struct life_row *row,
                           const struct life_observation *seen)
{
    if (row->stop == LIFE_STOP_NONE) { /* the next attempt */
        life->stop_why = FAILURE_NOT_STOPPED;
        life->limit_at = life->due = INFINITY;
        life->may_have_run = false;
    } else {
        if (life->stop == LIFE_STOP_NONE)
            life->stop_why = life_why(seen->event);
        life->due = seen->now + (row->stop == LIFE_STOP_ASKED ? seen->grace_seconds : TERM_SECONDS);
    }
    life->stop = (enum life_stop)row->stop;
}

/* It runs from now on, or has for some time. */
static void life_note_limit(struct life *life, const struct life_observation *seen)
{
    if (isnan(life->limit_seconds))
        return;
    life->limit_at = seen->now + life->limit_seconds - seen->ran_seconds;
    if (life->stop == LIFE_STOP_NONE)
        life->due = seen->now;
}

static void life_note(struct life *life, const struct life_row *row,
                      const struct life_observation *seen)
{
    if (row->stop != STOP_KEEPS)
        life_note_stop(life, row, seen);
    else if (seen->event == LIFE_TIME_PASSED)
        life->due = fmin(life_ask_at(life, seen->grace_seconds), seen->now + LOOK_SECONDS);
    if (row->to == LIFE_RUNNING && seen->event != LIFE_FOUND_IN_SLURM)
        life_note_limit(life, seen);
    if (row->to == LIFE_CLEARING && life->phase != LIFE_CLEARING)
        life->ended_at = seen->now;
    if (seen->event == LIFE_LAUNCHER_ENDED)
        life->killed = seen->killed;
    if (row->only_if == life_no_start_is_not_stored)
        life->never_started = true;
    if (row->only_if == life_wish_came_first || row->only_if == life_wish_came_before_slurm)
        life->cancel_asked = true;
    if (row->to != LIFE_PHASE_COUNT)
        life->phase = row->to;
    if (life->phase != LIFE_IN_SLURM && life->phase != LIFE_RUNNING)
        life->due = INFINITY;
}

struct life_decision {
    enum life_action actions[LIFE_ACTIONS_MAX]; /* up to the first LIFE_NO_ACTION */
    struct life then;                           /* when all of them are done */
};

/* False: nothing comes of it. */
static bool life_decide(const struct life *life, const struct life_observation *seen,
                        struct life_decision *d)
{
    for (int i = 0; i < ROWS; i++) {
        const struct life_row *row = &rows[i];
        if (i == left_out || row->on != seen->event || !(row->from & 1u << life->phase) ||
            (row->only_if && !row->only_if(life, seen)))
            continue;
        *d = (struct life_decision){.then = *life};
        for (int k = 0; k < LIFE_ACTIONS_MAX; k++)
            d->actions[k] = row->actions[k];
        life_note(&d->then, row, seen);
        return true;
    }
    return false;
}

static int life_act_in_order(struct life_decision *d, life_act *act, void *context,
                             enum life_action *failed, struct error *e)
{
    for (int i = 0; i < LIFE_ACTIONS_MAX && d->actions[i] != LIFE_NO_ACTION; i++) {
        enum life_action action = d->actions[i];
        int status = act(context, action, e);
        if (action == LIFE_FORGET)
            return LIFE_GONE;
        if (status && !life_action_is_optional(action)) {
            *failed = action;
            return status;
        }
    }
    return LIFE_DONE;
}

int life_carry_out(struct life *life, const struct life_observation *seen, life_act *act,
                   void *context, struct error *e)
{
    struct life_observation failure = *seen;
    struct life_decision d;
    int status;

    if (!life_decide(life, seen, &d))
        return LIFE_NOTHING;
    for (;;) {
        status = life_act_in_order(&d, act, context, &failure.failed, e);
        if (status >= 0)
            break;
        failure.event = LIFE_ACTION_FAILED;
        failure.why = e->code;
        if (!life_decide(life, &failure, &d))
            return status;
    }
    if (status == LIFE_DONE)
        *life = d.then;
    return status;
}

struct life life_of_state(enum job_state state, bool slurm)
{
    bool waits = state == JOB_QUEUED && !slurm;

    return (struct life){.phase = job_state_is_final(state) ? LIFE_ENDED
                                  : waits                   ? LIFE_WAITING
                                  : state == JOB_QUEUED     ? LIFE_IN_SLURM
                                                            : LIFE_RUNNING,
                         .slurm = slurm,
                         .due = INFINITY,
                         .limit_at = INFINITY,
                         .limit_seconds = NAN};
}

enum life_event life_found(const struct life_found *found)
{
    if (found->foreign)
        return LIFE_FOUND_FOREIGN;
    if (found->slurm)
        return LIFE_FOUND_IN_SLURM;
    if (!found->launched)
        return LIFE_FOUND_UNLAUNCHED;
    if (found->alive)
        return LIFE_FOUND_ALIVE;
    return found->missing ? LIFE_FOUND_NOTHING : LIFE_FOUND_DEAD;
}

/* ---------------------------------------------------------------- words */

static const char *life_phase_name(enum life_phase phase)
{
    static const char *const names[LIFE_PHASE_COUNT] = {
        "waiting", "in Slurm", "running", "clearing", "ended", "lost", "forgotten"};
    return (unsigned)phase < LIFE_PHASE_COUNT ? names[phase] : "stays";
}

const char *life_action_name(enum life_action action)
{
    return (unsigned)action < LIFE_ACTION_COUNT ? actions[action].name : "unknown";
}

bool life_action_is_optional(enum life_action action)
{
    return (unsigned)action < LIFE_ACTION_COUNT && actions[action].optional;
}

static void life_print_row(const struct life_row *row, FILE *out)
{
    const char *between = "";

    fputs("| ", out);
    for (int phase = 0; phase < LIFE_PHASE_COUNT; phase++)
        if (row->from & 1u << phase) {
            fprintf(out, "%s%s", between, life_phase_name((enum life_phase)phase));
            between = ", ";
        }
    fprintf(out, " | %s | ", row->when);
    between = "";
    for (int i = 0; i < LIFE_ACTIONS_MAX && row->actions[i] != LIFE_NO_ACTION; i++) {
        fprintf(out, "%s%s", between, actions[row->actions[i]].words);
        between = "; ";
    }
    fprintf(out, " | %s |\n", row->to == LIFE_PHASE_COUNT ? "" : life_phase_name(row->to));
}

void life_print_table(FILE *out)
{
    fputs("| phase | when | what is done | then |\n|---|---|---|---|\n", out);
    for (int i = 0; i < ROWS; i++)
        life_print_row(&rows[i], out);
}

/* ---------------------------------------------------------------- for the simulator */

void life_leave_out(int row)
{
    left_out = row;
}

int life_row_count(void)
{
    return ROWS;
}

const char *life_row_words(int row)
{
    return rows[row].when;
}
