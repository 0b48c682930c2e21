#include "common/run/stall_report.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *place;
} phases[] = {
    [STALL_IN_START] = {"start",      "the start"              },
    [STALL_IN_DATA] = {"data",       "the opening of the data"},
    [STALL_IN_STEP] = {"train",      "a step"                 },
    [STALL_IN_EVALUATION] = {"evaluate",   "the evaluation"         },
    [STALL_IN_CHECKPOINT] = {"checkpoint", "the checkpoint"         },
    [STALL_IN_END] = {"end",        "the end"                },
};
#define PHASES (sizeof phases / sizeof phases[0])

static const char *const states[] = {
    [STALL_STOPPED] = "is stopped by a signal",
    [STALL_DEAD] = "is dead",
    [STALL_STARVED] = "gets no processor time",
    [STALL_DATA_LATE] = "waits for data",
    [STALL_COMPUTES] = "still computes",
    [STALL_FILES_LATE] = "reads or writes files",
    [STALL_WAITS] = "waits for the other ranks",
    [STALL_EXCHANGES] = "exchanges gradients",
    [STALL_GETS_ON] = "gets on",
};
#define STATES (sizeof states / sizeof states[0])

static const char exchanging[] = "its ranks still exchange gradients: the network is slow";

const char *stall_state_words(enum stall_state state)
{
    return states[state];
}

void stall_report_missing(enum stall_phase phase, char text[STALL_REPORT_BYTES])
{
    snprintf(text, STALL_REPORT_BYTES, phase == STALL_IN_STEP ? "no step" : "no progress in %.40s",
             phases[phase].place);
}

const char *stall_phase_name(enum stall_phase phase)
{
    return phases[phase].name;
}

enum stall_phase stall_phase_of(const char *name)
{
    for (size_t i = 0; i < PHASES; i++)
        if (strcmp(phases[i].name, name) == 0)
            return (enum stall_phase)i;
    return STALL_IN_STEP;
}

static const char *stall_host_words(const struct stall_report *report, bool others)
{
    if (report->state == STALL_GETS_ON)
        return "its ranks are at work";
    if (report->state == STALL_EXCHANGES)
        return exchanging;
    return others ? "all ranks of this machine are waiting for ranks on other machines: a network "
                    "or machine is down"
                  : "all ranks wait for each other";
}

static void stall_print_opening(enum stall_phase phase, bool gets_on,
                                char words[STALL_REPORT_BYTES])
{
    if (gets_on)
        snprintf(words, STALL_REPORT_BYTES, "in %.40s", phases[phase].place);
    else
        stall_report_missing(phase, words);
}

void stall_report_print(const struct stall_report *report, bool others,
                        char text[STALL_REPORT_BYTES])
{
    char opening[STALL_REPORT_BYTES];

    stall_print_opening(report->phase, report->state == STALL_GETS_ON, opening);
    if (report->rank >= 0)
        snprintf(text, STALL_REPORT_BYTES, "%.64s for %.0f s: rank %d on %s %s", opening,
                 report->seconds, report->rank, report->host, states[report->state]);
    else
        snprintf(text, STALL_REPORT_BYTES, "%.64s for %.0f s on %s: %s", opening, report->seconds,
                 report->host, stall_host_words(report, others));
}

static bool stall_parse_opening(const char *text, const char **rest, struct stall_report *report)
{
    for (size_t i = 0; i < 2 * PHASES; i++) {
        char opening[STALL_REPORT_BYTES];
        bool gets_on = i % 2;
        report->phase = (enum stall_phase)(i / 2);
        report->state = gets_on ? STALL_GETS_ON : STALL_WAITS;
        stall_print_opening(report->phase, gets_on, opening);
        size_t length = strlen(opening);
        *rest = text + length;
        if (strncmp(text, opening, length) == 0 && strncmp(*rest, " for ", 5) == 0)
            return true;
    }
    return false;
}

static bool stall_parse_state(const char *text, enum stall_state *state)
{
    for (size_t i = 0; i < STATES; i++)
        if (strncmp(text, states[i], strlen(states[i])) == 0) {
            *state = (enum stall_state)i;
            return true;
        }
    return false;
}

bool stall_report_parse(const char *text, struct stall_report *report)
{
    const char *rest;
    int words = 0;

    *report = (struct stall_report){.rank = -1};
    if (!stall_parse_opening(text, &rest, report))
        return false;
    if (sscanf(rest, " for %lf s: rank %d on %127s %n", &report->seconds, &report->rank,
               report->host, &words) == 3 &&
        words)
        return stall_parse_state(rest + words, &report->state);
    report->rank = -1;
    if (sscanf(rest, " for %lf s on %127[^: \n]: %n", &report->seconds, report->host, &words) !=
            2 ||
        !words)
        return false;
    if (strncmp(rest + words, exchanging, sizeof exchanging - 1) == 0)
        report->state = STALL_EXCHANGES;
    return true;
}

static _Atomic uint64_t total;

void stall_progress_add(uint64_t units)
{
    atomic_fetch_add_explicit(&total, units, memory_order_relaxed);
}

uint64_t stall_progress(void)
{
    return atomic_load_explicit(&total, memory_order_relaxed);
}
