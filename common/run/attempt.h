#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* The environment variable of all its processes; its value is the folder RUN/attempt-N. */
#define ATTEMPT_MARK "TRAIND_ATTEMPT_DIR"

/* Exit status of a rank that found the disk full, where it can write neither log nor event. */
#define ATTEMPT_EXIT_NO_SPACE 8

/* Empty files in the attempt's folder that say why it is to end: for the next daemon, the batch
 * script, and ranks that start after the signal was sent. */
#define ATTEMPT_FLAG_CANCEL "cancel-requested"
#define ATTEMPT_FLAG_LIMIT  "time-limit-reached"

int attempt_flag_write(const char *attempt_dir, const char *name, struct error *e);
bool attempt_flag_is_set(const char *attempt_dir, const char *name);

bool attempt_file_is_filled(const char *attempt_dir, const char *name);

/* The end of a file of the attempt, from the first whole line on; "" if it cannot be read. NULs
 * become spaces. The caller frees it. */
char *attempt_read_tail(const char *attempt_dir, const char *name);

/* Types of the lines of events.jsonl, {"seq": 1, "t": 1789.25, "type": "step", ...}, which rank 0
 * writes and the daemon stores. Contract: schema/api/events.json. */
enum event_type {
    EVENT_RUN_START,
    EVENT_GRADIENTS,
    EVENT_STEP,
    EVENT_EVAL_PROGRESS,
    EVENT_EVAL,
    EVENT_CHECKPOINT,
    EVENT_STRAGGLER,
    EVENT_WARNING,
    EVENT_ENERGY,
    EVENT_RUN_STOP,
    EVENT_FAILED,
    EVENT_TYPE_COUNT /* also: an unknown name */
};

const char *event_type_name(enum event_type type);
enum event_type event_type_of(const char *name);

/* Types that the API filters by: the daemon's own ("state"), then those above; NULL at the end. */
const char *event_kind_at(size_t i);

#define EVENT_METRICS_MAX 16
struct event_metric {
    const char *name;
    const char *unit;
    const char *help;
};
const struct event_metric *event_metric_at(size_t i);

/* Larger steps are not stored: no run has so many, and arithmetic on them would overflow. */
#define EVENT_STEP_MAX ((int64_t)1000 * 1000 * 1000 * 1000)
