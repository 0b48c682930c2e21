/* The lines with which the ranks' watchers speak of a run that does not get on
 * (worker/watch/stall.h): they are written to the log and the daemon reads them there, as a host's
 * log comes through where its events do not. */
#pragma once

#include <stdbool.h>

#define STALL_LINE_BYTES 384

enum stall_phase {
    STALL_IN_START,
    STALL_IN_DATA, /* they are opened */
    STALL_IN_STEP,
    STALL_IN_EVALUATION,
    STALL_IN_CHECKPOINT,
    STALL_IN_END
};

enum stall_state {
    /* Of one rank: it does not run. */
    STALL_STOPPED,
    STALL_DEAD,
    STALL_STARVED,
    /* Of one rank: it runs, but is slow. */
    STALL_DATA_LATE,
    STALL_COMPUTES,
    STALL_FILES_LATE,
    /* Of one rank before it knows those beside it, or else of all ranks of a machine. */
    STALL_WAITS,
    /* Of a machine: a step whose gradients are still on their way. */
    STALL_EXCHANGES,
    /* Of a machine: a long phase in which something is done. */
    STALL_GETS_ON
};

struct stall_line {
    double seconds; /* since the phase or the step began */
    enum stall_phase phase;
    enum stall_state state;
    int rank; /* -1: all of the machine */
    char host[128];
};

/* "no step for 12 s: rank 1 on n2 is stopped by a signal"; "no progress in the evaluation for 12 s
 * on n2: all ranks wait for each other"; "no step for 12 s on n2: its ranks still exchange
 * gradients: the network is slow"; "in the evaluation for 300 s on n2: its ranks are at work".
 * others: the run has other machines. */
void stall_line_print(const struct stall_line *line, bool others, char text[STALL_LINE_BYTES]);

/* False: text does not begin with such a line. */
bool stall_line_parse(const char *text, struct stall_line *line);

/* "is stopped by a signal" */
const char *stall_state_words(enum stall_state state);

/* "no step", or "no progress in the evaluation" */
void stall_missing(enum stall_phase phase, char words[STALL_LINE_BYTES]);

/* As a `failed` event and a job's failure name it: start data train evaluate checkpoint end. */
const char *stall_phase_name(enum stall_phase phase);
enum stall_phase stall_phase_of(const char *name); /* STALL_IN_STEP for another */
