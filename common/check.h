/*
 * A list of things looked at, each with a verdict in words: what `trainctl doctor` and
 * `train-worker --self-check` print. An item is {"check", "ok", "found", "advice"}: advice is null
 * where all is well, and an item that is ok and has advice is a warning.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Adds an item; format makes "found", advice says what would put it right. */
void check_note(json_t *list, const char *check, bool ok, const char *advice, const char *format,
                ...) __attribute__((format(printf, 5, 6)));

void check_warn(json_t *list, const char *check, const char *advice, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

const char *check_word(const json_t *item); /* "ok", "warn" or "BAD" */

/* Warnings count as ok. */
bool check_all_ok(const json_t *list);

/* ---- things that more than one program looks at */

#define CHECK_DISK_LOW_BYTES 1e9

/* Whether the wall clock makes sense, and whether NTP keeps it. */
void check_clock(json_t *list);

/* Free space of a folder that is there. */
void check_disk(json_t *list, const char *check, const char *folder, const char *advice);
