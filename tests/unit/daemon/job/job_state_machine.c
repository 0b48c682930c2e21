/* The table of transitions, row by row: what is done for an event, and in which phase the job is
 * then. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/job/job_state_machine.h"

#define START "PREPARE STORE_ATTEMPT START_LAUNCHER STORE_LAUNCHER FOLLOW OPEN_GATE"

struct actions {
    char text[256];
    enum job_action fails;
    enum error_code why;
};

static int record(void *context, enum job_action action, struct error *e)
{
#define ACTION_NAME(name, words, optional) [DO_##name] = #name,
    static const char *const names[] = {JOB_ACTIONS(ACTION_NAME)};
    struct actions *actions = context;
    size_t used = strlen(actions->text);

    snprintf(actions->text + used, sizeof actions->text - used, "%s%s", used ? " " : "",
             names[action]);
    return action == actions->fails ? error_set(e, actions->why, "it fails") : 0;
}

/* In a phase, without a time limit. */
static struct job_machine machine_in(enum job_phase phase)
{
    return (struct job_machine){.phase = phase,
                                .slurm = phase == PHASE_IN_SLURM,
                                .due = INFINITY,
                                .limit_at = INFINITY,
                                .limit_seconds = NAN};
}

static int step(struct job_machine *machine, enum job_observed event, double now,
                struct actions *actions)
{
    struct job_observation seen = {.event = event, .now = now, .grace_seconds = 10};
    struct error e;

    actions->text[0] = '\0';
    return job_state_machine_step(machine, &seen, record, actions, &e);
}

Test(job_state_machine, each_event_has_its_actions_and_its_next_phase)
{
    static const struct {
        enum job_phase from;
        enum job_observed event;
        const char *actions;
        enum job_phase to;
        int status;
    } rows[] = {
  /* clang-format off */
        {PHASE_WAITING, ON_MAY_START, START, PHASE_RUNNING, MACHINE_DONE},
        {PHASE_WAITING, ON_NEVER_FITS, "STORE_UNFIT", PHASE_ENDED, MACHINE_DONE},
        {PHASE_WAITING, ON_CANCEL_ASKED, "STORE_CANCELLED", PHASE_ENDED, MACHINE_DONE},
        {PHASE_WAITING, ON_LAUNCHER_ENDED, "", PHASE_WAITING, MACHINE_NOTHING},
        {PHASE_IN_SLURM, ON_CANCEL_ASKED, "STORE_CANCEL_REQUEST MARK_CANCEL WAKE_LOOP", PHASE_IN_SLURM, MACHINE_DONE},
        {PHASE_IN_SLURM, ON_SLURM_STARTED, "STORE_STARTED", PHASE_RUNNING, MACHINE_DONE},
        {PHASE_IN_SLURM, ON_SLURM_PUT_BACK, "STORE_PUT_BACK", PHASE_IN_SLURM, MACHINE_DONE},
        {PHASE_IN_SLURM, ON_SLURM_SILENT, "", PHASE_IN_SLURM, MACHINE_NOTHING},
        {PHASE_RUNNING, ON_CANCEL_ASKED, "STORE_CANCEL_REQUEST MARK_CANCEL WAKE_LOOP", PHASE_RUNNING, MACHINE_DONE},
        {PHASE_RUNNING, ON_CANCEL_SEEN, "ASK_WORKERS STORE_STOPPING", PHASE_RUNNING, MACHINE_DONE},
        {PHASE_RUNNING, ON_STALLED, "MARK_STALL TERMINATE", PHASE_RUNNING, MACHINE_DONE},
        {PHASE_RUNNING, ON_MAY_GROW, "MARK_GROW ASK_WORKERS STORE_STOPPING", PHASE_RUNNING, MACHINE_DONE},
        {PHASE_IN_SLURM, ON_MAY_GROW, "", PHASE_IN_SLURM, MACHINE_NOTHING},
        {PHASE_RUNNING, ON_LAUNCHER_ENDED, "", PHASE_CLEARING, MACHINE_DONE},
        {PHASE_RUNNING, ON_MAY_START, "", PHASE_RUNNING, MACHINE_NOTHING},
        {PHASE_CLEARING, ON_NOTHING_LEFT, "STORE_END FINISH FORGET", PHASE_CLEARING, MACHINE_GONE},
        {PHASE_ENDED, ON_CANCEL_ASKED, "", PHASE_ENDED, MACHINE_NOTHING},
        {PHASE_LOST, ON_FOUND_FOREIGN, "STORE_LOST FORGET", PHASE_LOST, MACHINE_GONE},
        {PHASE_LOST, ON_FOUND_NOTHING, "KILL STORE_LOST FORGET", PHASE_LOST, MACHINE_GONE},
        {PHASE_LOST, ON_FOUND_UNLAUNCHED, "STORE_BACK FORGET", PHASE_LOST, MACHINE_GONE},
        {PHASE_LOST, ON_FOUND_ALIVE, "FOLLOW", PHASE_RUNNING, MACHINE_DONE},
        {PHASE_LOST, ON_FOUND_DEAD, "FOLLOW", PHASE_CLEARING, MACHINE_DONE},
        {PHASE_LOST, ON_FOUND_IN_SLURM, "FOLLOW OPEN_GATE", PHASE_IN_SLURM, MACHINE_DONE},
  /* clang-format on */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct job_machine machine = machine_in(rows[i].from);
        struct actions actions = {0};
        cr_expect_eq(step(&machine, rows[i].event, 1000, &actions), rows[i].status, "row %zu", i);
        cr_expect_str_eq(actions.text, rows[i].actions, "row %zu", i);
        cr_expect_eq(machine.phase, rows[i].to, "row %zu", i);
    }
}

Test(job_state_machine, a_failed_action_has_other_actions_instead_of_the_rest)
{
    static const struct {
        enum job_phase from;
        enum job_observed event;
        enum job_action fails;
        enum error_code why;
        const char *actions;
        enum job_phase to;
        int status;
    } rows[] = {
  /* clang-format off */
        {PHASE_WAITING, ON_MAY_START, DO_STORE_ATTEMPT, ERR_CONFLICT, "PREPARE STORE_ATTEMPT FORGET", PHASE_WAITING, MACHINE_GONE},
        {PHASE_WAITING, ON_MAY_START, DO_STORE_ATTEMPT, ERR_IO, "PREPARE STORE_ATTEMPT TRY_LATER FORGET", PHASE_WAITING, MACHINE_GONE},
        {PHASE_WAITING, ON_MAY_START, DO_START_LAUNCHER, ERR_IO, "PREPARE STORE_ATTEMPT START_LAUNCHER ABANDON_LAUNCHER STORE_NO_START FORGET", PHASE_WAITING, MACHINE_GONE},
        {PHASE_CLEARING, ON_NOTHING_LEFT, DO_STORE_END, ERR_CONFLICT, "STORE_END", PHASE_CLEARING, MACHINE_DONE},
        {PHASE_RUNNING, ON_CANCEL_SEEN, DO_ASK_WORKERS, ERR_IO, "ASK_WORKERS STORE_STOPPING", PHASE_RUNNING, MACHINE_DONE},
        {PHASE_LOST, ON_FOUND_UNLAUNCHED, DO_STORE_BACK, ERR_CONFLICT, "STORE_BACK STORE_CANCELLED FORGET", PHASE_LOST, MACHINE_GONE},
        {PHASE_WAITING, ON_CANCEL_ASKED, DO_STORE_CANCELLED, ERR_IO, "STORE_CANCELLED", PHASE_WAITING, -(int)ERR_IO},
  /* clang-format on */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct job_machine machine = machine_in(rows[i].from);
        struct actions actions = {.fails = rows[i].fails, .why = rows[i].why};
        cr_expect_eq(step(&machine, rows[i].event, 1000, &actions), rows[i].status, "row %zu", i);
        cr_expect_str_eq(actions.text, rows[i].actions, "row %zu", i);
        cr_expect_eq(machine.phase, rows[i].to, "row %zu", i);
    }
}

Test(job_state_machine, a_run_is_asked_then_terminated_then_killed)
{
    struct job_machine machine = machine_in(PHASE_RUNNING);
    struct actions actions = {0};

    step(&machine, ON_CANCEL_SEEN, 1000, &actions);
    cr_assert_eq(machine.stop_why, FAILURE_CANCELLED);
    cr_assert_eq(machine.due, 1010, "after the grace period");
    cr_assert_eq(step(&machine, ON_TIME_PASSED, 1009, &actions), MACHINE_NOTHING);
    step(&machine, ON_TIME_PASSED, 1010, &actions);
    cr_assert_str_eq(actions.text, "TERMINATE");
    cr_assert_eq(step(&machine, ON_TIME_PASSED, 1011, &actions), MACHINE_NOTHING);
    step(&machine, ON_TIME_PASSED, 1013, &actions);
    cr_assert_str_eq(actions.text, "KILL");
    cr_assert_eq(machine.stop, STOP_KILLED);
    cr_assert_eq(step(&machine, ON_CANCEL_SEEN, 1014, &actions), MACHINE_NOTHING, "once");
}

Test(job_state_machine, a_time_limit_leaves_time_for_a_checkpoint)
{
    struct job_machine machine = machine_in(PHASE_WAITING);
    struct actions actions = {0};

    machine.limit_seconds = 100;
    step(&machine, ON_MAY_START, 1000, &actions);
    cr_assert_eq(machine.limit_at, 1100);
    step(&machine, ON_TIME_PASSED, 1089, &actions);
    cr_assert_str_eq(actions.text, "");
    cr_assert_eq(machine.due, 1090);
    step(&machine, ON_TIME_PASSED, 1090, &actions);
    cr_assert_str_eq(actions.text, "MARK_LIMIT ASK_WORKERS STORE_STOPPING");
    cr_assert_eq(machine.stop_why, FAILURE_TIME_LIMIT);
}

Test(job_state_machine, processes_that_are_left_are_killed_after_two_seconds)
{
    struct job_machine machine = machine_in(PHASE_RUNNING);
    struct actions actions = {0};

    step(&machine, ON_LAUNCHER_ENDED, 1000, &actions);
    cr_assert_eq(step(&machine, ON_PROCESSES_LEFT, 1001, &actions), MACHINE_NOTHING);
    step(&machine, ON_PROCESSES_LEFT, 1002, &actions);
    cr_assert_str_eq(actions.text, "KILL");
}

Test(job_state_machine, the_phase_of_a_stored_job_follows_from_its_state)
{
    static const struct {
        enum job_state state;
        bool slurm;
        enum job_phase phase;
    } rows[] = {
        {JOB_QUEUED,     false, PHASE_WAITING },
        {JOB_QUEUED,     true,  PHASE_IN_SLURM},
        {JOB_STARTING,   false, PHASE_RUNNING },
        {JOB_RUNNING,    true,  PHASE_RUNNING },
        {JOB_EVALUATING, false, PHASE_RUNNING },
        {JOB_SUCCEEDED,  false, PHASE_ENDED   },
        {JOB_FAILED,     true,  PHASE_ENDED   },
        {JOB_CANCELLED,  false, PHASE_ENDED   },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_expect_eq(job_state_machine_of(rows[i].state, rows[i].slurm).phase, rows[i].phase,
                     "row %zu", i);
}

Test(job_state_machine, a_new_daemon_names_what_it_finds)
{
    static const struct {
        struct job_found found;
        enum job_observed event;
    } rows[] = {
        {{.foreign = true, .slurm = true, .alive = true},    ON_FOUND_FOREIGN   },
        {{.slurm = true},                                    ON_FOUND_IN_SLURM  },
        {{0},                                                ON_FOUND_UNLAUNCHED},
        {{.launched = true, .alive = true, .missing = true}, ON_FOUND_ALIVE     },
        {{.launched = true, .missing = true},                ON_FOUND_NOTHING   },
        {{.launched = true},                                 ON_FOUND_DEAD      },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_expect_eq(job_state_found_event(&rows[i].found), rows[i].event, "row %zu", i);
}

/* A job with two restarts, which has run to step 8 with a checkpoint at step 6. */
static struct attempt_outcome after(struct verdict verdict, int64_t restarts, const char *first)
{
    struct attempt_history history = {.restarts = restarts,
                                      .restarts_max = 2,
                                      .restart_delay_seconds = 10,
                                      .checkpoint = 6,
                                      .trains = true,
                                      .ran = true,
                                      .first_failure = first};
    struct attempt_outcome outcome;

    job_state_after_attempt(&verdict, &history, &outcome);
    return outcome;
}

#define FROM ", from its checkpoint of step 6"

Test(job_state_machine, what_follows_an_attempt)
{
    static const struct {
        struct verdict verdict;
        int64_t restarts;
        const char *first;
        enum job_state to;
        double pause_seconds;
        const char *reason;
    } rows[] = {
  /* clang-format off */
        {{.state = JOB_SUCCEEDED}, 0, NULL, JOB_SUCCEEDED, 0, ""},
        {{.state = JOB_SUCCEEDED}, 1, "a crash", JOB_SUCCEEDED, 0, "complete after 1 restart; the first failure: a crash"},
        {{.state = JOB_FAILED, .reason = "a crash", .step = 8}, 0, NULL, JOB_QUEUED, 10, "a crash; restart 1 of 2 follows in 10 s" FROM},
        {{.state = JOB_FAILED, .reason = "a crash", .step = 8}, 1, "a crash", JOB_QUEUED, 20, "a crash; restart 2 of 2 follows in 20 s" FROM},
        {{.state = JOB_FAILED, .reason = "a crash", .step = 8}, 2, "a crash", JOB_FAILED, 0, "a crash; failed in the same way after 2 restarts"},
        {{.state = JOB_FAILED, .reason = "a fire", .step = 8}, 2, "a crash", JOB_FAILED, 0, "a crash; failed again after 2 restarts, the last time: a fire"},
        {{.state = JOB_FAILED, .reason = "no data"}, 0, NULL, JOB_FAILED, 0, "no data"},
        {{.state = JOB_FAILED, .reason = "a node failed", .outside = true}, 0, NULL, JOB_QUEUED, 10, "a node failed; restart 1 of 2 follows in 10 s" FROM},
        {{.state = JOB_FAILED, .reason = "diverged", .step = 8, .own_fault = true}, 0, NULL, JOB_FAILED, 0, "diverged"},
        {{.state = JOB_FAILED, .reason = "flaky", .own_fault = true, .again = FAILURE_AGAIN}, 0, NULL, JOB_QUEUED, 10, "flaky; restart 1 of 2 follows in 10 s" FROM},
        {{.state = JOB_FAILED, .reason = "broken", .step = 8, .again = FAILURE_NOT_AGAIN}, 0, NULL, JOB_FAILED, 0, "broken"},
        {{.state = JOB_CANCELLED, .reason = "cancelled", .step = 8}, 0, NULL, JOB_CANCELLED, 0, "cancelled"},
        {{.state = JOB_FAILED, .reason = "its time was up", .step = 8, .goes_on = true}, 0, NULL, JOB_QUEUED, 0,
         "its time was up; continues in another allocation" FROM},
        {{.state = JOB_CANCELLED, .reason = "stopped to grow", .step = 8, .goes_on = true, .grows = true}, 2, "a crash", JOB_QUEUED, 0,
         "stopped to grow; continues from its checkpoint of step 6"},
  /* clang-format on */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct attempt_outcome end = after(rows[i].verdict, rows[i].restarts, rows[i].first);
        cr_expect_eq(end.to, rows[i].to, "row %zu", i);
        cr_expect_eq(end.pause_seconds, rows[i].pause_seconds, "row %zu", i);
        cr_expect_str_eq(end.reason, rows[i].reason, "row %zu", i);
        cr_expect_eq(end.restarts, end.to == JOB_QUEUED && !rows[i].verdict.goes_on, "row %zu", i);
        cr_expect(end.resumes, "row %zu", i);
    }
}

Test(job_state_machine, the_pause_doubles_up_to_ten_minutes)
{
    static const double seconds[] = {10, 20, 40, 80, 160, 320, 600, 600};

    for (int64_t i = 0; i < 8; i++)
        cr_expect_eq(job_state_restart_delay(10, i), seconds[i]);
    cr_expect_eq(job_state_restart_delay(0, 5), 0);
}
