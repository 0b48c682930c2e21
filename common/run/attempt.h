#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Environment variable of all processes of an attempt; its value is the folder RUN/attempt-N. */
#define ATTEMPT_MARK "TRAIND_ATTEMPT_DIR"

/* Exit status of a rank that found the disk full and could write neither log nor event. */
#define ATTEMPT_EXIT_NO_SPACE 8

/* Empty files in the attempt's folder that state why it is to end. They are read by a restarted
 * daemon, the batch script, and ranks that started after the signal was sent. */
#define ATTEMPT_FLAG_CANCEL "cancel-requested"
#define ATTEMPT_FLAG_LIMIT  "time-limit-reached"
#define ATTEMPT_FLAG_GROW   "grow-requested" /* not empty: the changes of the document, as JSON */

int attempt_flag_write(const char *attempt_dir, const char *name, struct error *e);
bool attempt_flag_is_set(const char *attempt_dir, const char *name);

bool attempt_file_is_filled(const char *attempt_dir, const char *name);

/* Returns the end of a file in the attempt's folder, from the first complete line on, or "" if it
 * cannot be read. NULs become spaces. The caller frees it. */
char *attempt_read_tail(const char *attempt_dir, const char *name);

/* Types of the lines of events.jsonl, for example {"seq": 1, "t": 1789.25, "type": "step", ...},
 * which rank 0 writes and the daemon stores. Contract: schema/api/events.json. */
enum event_type {
    EVENT_RUN_START,
    EVENT_GRADIENTS,
    EVENT_STEP,
    EVENT_EVAL_PROGRESS,
    EVENT_EVAL,
    EVENT_CONFUSION,
    EVENT_CHECKPOINT,
    EVENT_STRAGGLER,
    EVENT_WARNING,
    EVENT_ENERGY,
    EVENT_RUN_STOP,
    EVENT_FAILED,
    EVENT_TYPE_COUNT /* also represents an unknown name */
};

const char *event_type_name(enum event_type type);
enum event_type event_type_of(const char *name);

/* Returns the i-th type that the API can filter by: first the daemon's own ("state"), then those
 * above; NULL after the last one. */
const char *event_kind_at(size_t i);

#define EVENT_METRICS_MAX 16
struct event_metric {
    const char *name;
    const char *unit;
    const char *help;
};
const struct event_metric *event_metric_at(size_t i);

/* Larger step numbers are rejected: no run has that many steps, and arithmetic would overflow. */
#define EVENT_STEP_MAX ((int64_t)1000 * 1000 * 1000 * 1000)
