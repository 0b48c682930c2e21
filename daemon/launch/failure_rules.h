/*
 * Failure rules: what a failure is called, and what follows of it. One rule a line,
 *
 *     # label          actions       pattern
 *     out-of-memory    no-restart    Out of memory|Cannot allocate memory
 *
 * label is 1 to 32 lower-case letters, digits and hyphens; actions are words with commas between,
 * of restart, no-restart, drain, drain-unverified, notify=TARGET and notify-text=TARGET, or "-" for
 * none; pattern is a POSIX extended regular expression up to the end of the line. The
 * first rule that fits the reason of the failure, else a line of the log, counts. traind's own
 * rules stand behind those of the file, which replaces those with its labels. traind.conf(5),
 * FAILURE RULES.
 *
 * Workers write what is searched: patterns are matched line by line, against at most
 * FAILURE_RULES_LINES lines of FAILURE_RULES_LINE_BYTES, and back references are refused, so the
 * time is bounded whatever stands there.
 */
#pragma once

#include <jansson.h>

#include "common/error.h"
#include "daemon/launch/failure.h"

#define FAILURE_RULES_MAX        64
#define FAILURE_RULES_LINES      128 /* the last ones of a log */
#define FAILURE_RULES_LINE_BYTES 512
#define FAILURE_PATTERN_BYTES    512
#define FAILURE_NO_LABEL         "none" /* of failures that no rule fits */

struct failure_rules;

/* The rules of a file and traind's own; path NULL: these alone. ERR_USAGE names each wrong line and
 * what would be right. */
int failure_rules_load(const char *path, struct failure_rules **out, struct error *e);
void failure_rules_destroy(struct failure_rules *r); /* NULL is fine */

/* The first rule that fits the reason, else the first that fits a line of the log: its place, -1:
 * none. */
int failure_rules_find(const struct failure_rules *r, const char *reason, const char *log);

/* Labels a failure, by its reason and the end of attempt_dir's log (NULL: it has none). */
void failure_rules_apply(const struct failure_rules *r, const char *attempt_dir,
                         struct verdict *verdict);

/* Counts a failure under its label. */
void failure_rules_count(struct failure_rules *r, const char *label);
/* Takes over the counts of rules that these replace; labels that are gone count as none. */
void failure_rules_inherit(struct failure_rules *r, const struct failure_rules *before);

/* [{"label", "restart": true, false or null, "drain": "no", "verified" or "unverified",
 * "pattern", "shipped", "count"}], a new reference; *unlabelled: failures that no rule fits. */
json_t *failure_rules_to_json(const struct failure_rules *r, int64_t *unlabelled);
