/*
 * Reports of a run that makes no progress. The watchers of the ranks (worker/watch/stall.h) write
 * them to the log, where the daemon parses them: a remote host's log arrives even if its events do
 * not.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define STALL_REPORT_BYTES 384

enum stall_phase {
    STALL_IN_START,
    STALL_IN_DATA, /* opening data sets */
    STALL_IN_STEP,
    STALL_IN_EVALUATION,
    STALL_IN_CHECKPOINT,
    STALL_IN_END
};

enum stall_state {
    /* Of one rank that does not run. */
    STALL_STOPPED,
    STALL_DEAD,
    STALL_STARVED,
    /* Of one rank that runs, but slowly. */
    STALL_DATA_LATE,
    STALL_COMPUTES,
    STALL_FILES_LATE,
    /* Of all ranks of a machine, or of one rank that does not know its neighbours yet. */
    STALL_WAITS,
    /* Of a machine: gradients are still being exchanged. */
    STALL_EXCHANGES,
    /* Of a machine: a long phase that does make progress. */
    STALL_GETS_ON
};

struct stall_report {
    double seconds; /* since the phase or the step began */
    enum stall_phase phase;
    enum stall_state state;
    int rank; /* -1: all of the machine */
    char host[128];
};

/* Formats "no step for 12 s: rank 1 on n2 is stopped by a signal"; "no progress in the evaluation
 * for 12 s on n2: all ranks wait for each other"; "no step for 12 s on n2: its ranks still exchange
 * gradients: the network is slow"; "in the evaluation for 300 s on n2: its ranks are at work".
 * others: the run has other machines. */
void stall_report_print(const struct stall_report *report, bool others,
                        char text[STALL_REPORT_BYTES]);

/* False: text does not begin with a report. */
bool stall_report_parse(const char *text, struct stall_report *report);

/* "is stopped by a signal" */
const char *stall_state_words(enum stall_state state);

/* "no step", or "no progress in the evaluation" */
void stall_report_missing(enum stall_phase phase, char words[STALL_REPORT_BYTES]);

/* The phase in a `failed` event and a job's failure: start data train evaluate checkpoint end. */
const char *stall_phase_name(enum stall_phase phase);
enum stall_phase stall_phase_of(const char *name); /* STALL_IN_STEP for an unknown name */

/* Counts work of this process in any unit: images read or evaluated, files listed, pieces written.
 * Only growth matters: a long phase in which it grows is not stalled. From any thread. */
void stall_progress_add(uint64_t units);
uint64_t stall_progress(void);
