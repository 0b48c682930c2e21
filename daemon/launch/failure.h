/* Determines why a run ended from the files of its attempt and the exit status of its launcher.
 * Sources, most trusted first: the last run_stop or failed event, mpirun's message in the log, the
 * exit status, the last lines of the log. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/job/job_state.h"
#include "common/notify/rule.h"
#include "common/notify/target.h"

#define FAILURE_TEXT_BYTES 1024

struct launch_exit {
    int64_t code, signal;
};

struct failure_rank {
    int64_t rank;      /* -1: unknown */
    char host[128];    /* "": unknown */
    int64_t signal;    /* -1: none */
    int64_t exit_code; /* -1: unknown */
    bool host_lost;    /* its host does not respond; rank is -1 */
    bool aborted;      /* it called MPI_Abort */
};

/* Parses mpirun's message in (the end of) a log. Returns false if there is none. */
bool failure_read_log(const char *log, struct failure_rank *rank);

/* Gets the last lines of the workers as "line; line; line", without mpirun's banners, stack traces
 * and control characters; "" if there are none. */
void failure_last_lines(const char *log, char *text, size_t bytes);

/* Returns the length of a verdict's reason without log lines quoted after the cause. */
size_t failure_cause_length(const char *reason);

/* Formats as "signal 9 (SIGKILL, Killed)". */
void failure_signal_words(int64_t signal_number, char *text, size_t bytes);

enum failure_stop {
    FAILURE_NOT_STOPPED,
    FAILURE_CANCELLED,
    FAILURE_TIME_LIMIT,
    FAILURE_STALLED,
    FAILURE_GROWS /* to go on with more hosts */
};

enum failure_again { FAILURE_AGAIN_USUAL, FAILURE_AGAIN, FAILURE_NOT_AGAIN };
enum failure_drain {
    FAILURE_NO_DRAIN,
    FAILURE_DRAIN_VERIFIED, /* only verdict.bad_node */
    FAILURE_DRAIN_LOG       /* also who.host, which comes from the job's own output */
};
#define FAILURE_LABEL_BYTES 33

struct verdict {
    enum job_state state;            /* succeeded, failed or cancelled; queued: never started */
    char reason[FAILURE_TEXT_BYTES]; /* "": none */
    int64_t step;                    /* last completed step; 0: none */
    int64_t checkpoint;              /* step of the last checkpoint; 0: none */
    bool goes_on; /* not a failure: another allocation follows, or (grows) more hosts */
    bool grows;
    /* The fields below are for failed attempts. */
    bool hosts_missing; /* too few hosts are usable, see hosts.h */
    bool own_fault;     /* caused by the job (document, divergence): a restart would fail again */
    bool outside;       /* a node failed or was taken away */
    struct failure_rank who; /* the first rank that failed */
    char bad_node[128]; /* at fault according to Slurm rather than the job's output; "": none */
    /* Set by the failure rules; "": no rule matches. */
    char label[FAILURE_LABEL_BYTES];
    enum failure_again again;
    enum failure_drain drain;
    char notify[NOTICE_TARGET_BYTES]; /* notice target; "": none */
    enum notice_format notify_format;
    char phase[32];      /* start, data, train, evaluate, checkpoint; "": unknown */
    char lines[3 * 256]; /* last lines of the log, separated by newlines */
};
void failure_judge(const char *attempt_dir, const struct launch_exit *how, enum failure_stop why,
                   struct verdict *verdict);

/* Returns a new object {"attempt", "step", "rank", "host", "phase", "signal", "exit_code",
 * "reason", "label", "log": [lines]}; unknown values are null, signal is a name such as
 * "SIGKILL". */
json_t *failure_to_json(const struct verdict *verdict, int64_t attempt);
