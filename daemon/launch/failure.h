/*
 * Why a run ended: from what it left in its attempt's folder and how its launcher exited.
 * Sources, most trusted first: the last run_stop or failed event; mpirun's own message in the log;
 * the exit status; the last lines of the log.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/job/job_state.h"
#include "common/notify/rule.h"
#include "common/notify/target.h"

#define FAILURE_TEXT_BYTES 1024

/* How the launcher exited; -1: not known. */
struct launch_exit {
    int64_t code, signal;
};

/* What mpirun says of the first rank that went wrong. */
struct failure_rank {
    int64_t rank;      /* -1: not said */
    char host[128];    /* "": not said */
    int64_t signal;    /* -1: none */
    int64_t exit_code; /* -1: not said */
    bool host_lost;    /* its host does not answer any more; rank is -1 then */
    bool aborted;      /* it called MPI_Abort */
};

/* Reads mpirun's messages out of (the end of) a log; false: there is none. */
bool failure_read_log(const char *log, struct failure_rank *rank);

/* "line; line; line": the last lines of a log that are the workers' own, without mpirun's banners,
 * without a crash's stack trace and without control characters. "" if there is none. */
void failure_last_lines(const char *log, char *text, size_t bytes);

/* How many bytes of a verdict's reason tell the cause: behind it may stand words of the log. */
size_t failure_cause_length(const char *reason);

/* "signal 9 (SIGKILL, Killed)" */
void failure_signal_words(int64_t signal_number, char *text, size_t bytes);

/* Why traind asked an attempt to stop. */
enum failure_stop { FAILURE_NOT_STOPPED, FAILURE_CANCELLED, FAILURE_TIME_LIMIT, FAILURE_STALLED };

/* What a failure rule (failure_rules.h) says of a restart, and of the node at fault. */
enum failure_again { FAILURE_AGAIN_USUAL, FAILURE_AGAIN, FAILURE_NOT_AGAIN };
enum failure_drain {
    FAILURE_NO_DRAIN,
    FAILURE_DRAIN_VERIFIED, /* verdict.bad_node alone */
    FAILURE_DRAIN_LOG       /* also who.host, which the job's own output names */
};
#define FAILURE_LABEL_BYTES 33

/* The verdict on an attempt whose launcher has ended. */
struct verdict {
    enum job_state state;            /* succeeded, failed or cancelled; queued: it never ran */
    char reason[FAILURE_TEXT_BYTES]; /* "": nothing to say */
    int64_t step;                    /* the last one that it did; 0: none */
    int64_t checkpoint;              /* of the last checkpoint that it wrote; 0: none */
    bool goes_on; /* not a failure, and not the end: another allocation follows */
    /* Of a failure. */
    bool hosts_missing;      /* fewer hosts than the job has nodes are fit: hosts.h knows them */
    bool own_fault;          /* of the job: the document, or it diverged. Again, it would again */
    bool outside;            /* of none of its parts: a node failed, or was taken away */
    struct failure_rank who; /* the first rank that went wrong */
    char bad_node[128]; /* at fault, as Slurm itself says, whatever the job wrote; "": none is */
    /* By the failure rules; "": none fits. */
    char label[FAILURE_LABEL_BYTES];
    enum failure_again again;
    enum failure_drain drain;
    char notify[NOTICE_TARGET_BYTES]; /* who is told of it; "": nobody by a rule */
    enum notice_format notify_format;
    char phase[32];      /* start, data, train, evaluate, checkpoint; "": not known */
    char lines[3 * 256]; /* the last lines of the log, separated by newlines */
};
void failure_judge(const char *attempt_dir, const struct launch_exit *how, enum failure_stop why,
                   struct verdict *verdict);

/* {"attempt", "step", "rank", "host", "phase", "signal", "exit_code", "reason", "label",
 * "log": [lines]},
 * null what is not known; signal as "SIGKILL". A new reference. */
json_t *failure_to_json(const struct verdict *verdict, int64_t attempt);
