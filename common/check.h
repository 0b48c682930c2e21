/* Results of checks, as printed by `trainctl doctor` and `train-worker --self-check`. An item is
 * {"check", "ok", "found", "advice"}. advice is null if there is nothing to do; an item with ok
 * true and advice is a warning. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Adds an item. The format gives "found"; advice says how to solve the problem. */
void check_note(json_t *list, const char *check, bool ok, const char *advice, const char *format,
                ...) __attribute__((format(printf, 5, 6)));

void check_warn(json_t *list, const char *check, const char *advice, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

const char *check_word(const json_t *item);

/* Returns whether no item has failed; warnings are allowed. */
bool check_all_ok(const json_t *list);

#define CHECK_DISK_LOW_BYTES 1e9

/* Checks that the wall clock is plausible and synchronised by NTP. */
void check_clock(json_t *list);

void check_disk(json_t *list, const char *check, const char *folder, const char *advice);
