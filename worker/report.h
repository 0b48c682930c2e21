/*
 * What a run says: events.jsonl (one JSON object a line, written by rank 0 alone) and progress
 * lines on stdout for people. Contract: schema/api/events.json.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/error.h"
#include "common/run/attempt.h"

struct report;

/* path NULL (every rank but 0): all calls do nothing. Appends; numbering goes on where the file
 * ends. */
int report_create(const char *path, struct report **out, struct error *e);
void report_destroy(struct report *r); /* NULL is fine */

/* One event: begin, fields, end. Other threads that begin one wait until then. end writes the line
 * with one write(2). NaN and infinities become null. */
void report_begin(struct report *r, enum event_type type);
/* False: another thread has had one begun for so many seconds, as its file does not take it. */
bool report_begin_within(struct report *r, enum event_type type, int seconds);
void report_int(struct report *r, const char *name, int64_t value);
void report_real(struct report *r, const char *name, double value); /* 9 significant digits */
/* To thousandths; what is negative, not finite or above 1e12 becomes 0. */
void report_durations(struct report *r, const char *name, const double *values, size_t count);
void report_text(struct report *r, const char *name, const char *value);   /* NULL: null */
void report_json(struct report *r, const char *name, const json_t *value); /* NULL: null */
void report_flag(struct report *r, const char *name, int value);
/* Returns ERR_NO_SPACE or ERR_IO when the line could not be written; later events are then dropped
 * too. */
int report_end(struct report *r, struct error *e);
