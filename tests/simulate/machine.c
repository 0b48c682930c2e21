/* The state machine itself, with a row left out of its table where the simulation asks for that. */
#include "daemon/job/job_state_machine.c"

#include "tests/simulate/world.h"

static struct transition rows[TRANSITIONS];
static int row_count;

void simulate_leave_out(int row)
{
    row_count = 0;
    for (int i = 0; i < TRANSITIONS; i++)
        if (i != row)
            rows[row_count++] = transitions[i];
}

int simulate_row_count(void)
{
    return TRANSITIONS;
}

const char *simulate_row_words(int row)
{
    return transitions[row].when;
}

int simulate_step(struct job_machine *machine, const struct job_observation *seen, job_act *act,
                  void *context, struct error *e)
{
    if (!row_count)
        simulate_leave_out(-1);
    return state_step(rows, row_count, machine, seen, act, context, e);
}

#define PHASE_WORDS(name, words)            words,
#define ACTION_NAME(name, words, optional)  #name,
#define ACTION_WORDS(name, words, optional) words,
static const char *const phases[] = {JOB_PHASES(PHASE_WORDS) ""};
static const char *const action_words[] = {"", JOB_ACTIONS(ACTION_WORDS)};

const char *simulate_action_name(enum job_action action)
{
    static const char *const names[] = {"NOTHING", JOB_ACTIONS(ACTION_NAME)};

    return names[action];
}

static void simulate_print_row(const struct transition *t)
{
    const char *between = "| ";

    for (int phase = 0; phase < PHASE_COUNT; phase++)
        if (t->from & 1u << phase) {
            printf("%s%s", between, phases[phase]);
            between = ", ";
        }
    printf(" | %s | ", t->when);
    for (int i = 0; i < ACTIONS_MAX && t->act[i] != DO_NOTHING; i++)
        printf("%s%s", i ? "; " : "", action_words[t->act[i]]);
    printf(" | %s |\n", phases[t->to]);
}

void simulate_print_table(void)
{
    puts("| phase | when | what is done | then |\n|---|---|---|---|");
    for (int i = 0; i < TRANSITIONS; i++)
        simulate_print_row(&transitions[i]);
}
