/* Reports about a run without progress. The ranks' watch threads (worker/watch/stall.h) log them
 * and the daemon parses the log, because the log of a remote host arrives even if events do not. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define STALL_REPORT_BYTES 384

enum stall_phase {
    STALL_IN_START,
    STALL_IN_DATA,
    STALL_IN_STEP,
    STALL_IN_EVALUATION,
    STALL_IN_CHECKPOINT,
    STALL_IN_END
};

enum stall_state {
    STALL_STOPPED,
    STALL_DEAD,
    STALL_STARVED,
    STALL_DATA_LATE,
    STALL_COMPUTES,
    STALL_FILES_LATE,
    STALL_WAITS,
    STALL_EXCHANGES,
    STALL_GETS_ON
};

struct stall_report {
    double seconds;
    enum stall_phase phase;
    enum stall_state state;
    int rank; /* -1: all ranks of the machine */
    char host[128];
};

/* Prints for example "no step for 12 s: rank 1 on n2 is stopped by a signal", "no progress in the
 * evaluation for 12 s on n2: all ranks wait for each other" or "in the evaluation for 300 s on n2:
 * its ranks are at work". others: the run uses other machines too. */
void stall_report_print(const struct stall_report *report, bool others,
                        char text[STALL_REPORT_BYTES]);

bool stall_report_parse(const char *text, struct stall_report *report);

/* Returns for example "is stopped by a signal". */
const char *stall_state_words(enum stall_state state);

void stall_report_missing(enum stall_phase phase, char text[STALL_REPORT_BYTES]);

/* The name in a `failed` event: start, data, train, evaluate, checkpoint or end. */
const char *stall_phase_name(enum stall_phase phase);
enum stall_phase stall_phase_of(const char *name); /* returns STALL_IN_STEP for an unknown name */

/* Counts the work of this process in any unit. A long phase in which the count increases is not
 * considered stalled. Thread-safe. */
void stall_progress_add(uint64_t units);
uint64_t stall_progress(void);
