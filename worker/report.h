/* events.jsonl (one JSON object per line, written by rank 0 only). Contract:
 * schema/api/events.json. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/error.h"
#include "common/run/attempt.h"

struct report;

/* path NULL (all ranks but 0): the other calls have no effect. Appends to an existing file. */
int report_create(const char *path, struct report **out, struct error *e);
void report_destroy(struct report *r); /* NULL is fine */

/* Another thread's begin waits until end, which makes one write(2). NaN and infinities become
 * null. */
void report_begin(struct report *r, enum event_type type);
/* Returns false if another thread's event did not end for `seconds`: its disk may hang. */
bool report_begin_within(struct report *r, enum event_type type, int seconds);
void report_int(struct report *r, const char *name, int64_t value);
void report_real(struct report *r, const char *name, double value); /* 9 significant digits */
/* Rounded to thousandths; negative, non-finite and values above 1e12 become 0. */
void report_durations(struct report *r, const char *name, const double *values, size_t count);
void report_text(struct report *r, const char *name, const char *value);   /* NULL: null */
void report_json(struct report *r, const char *name, const json_t *value); /* NULL: null */
void report_flag(struct report *r, const char *name, int value);
/* ERR_NO_SPACE or ERR_IO if the line could not be written; later events are then dropped. */
int report_end(struct report *r, struct error *e);
