/* Failure rules, which label failures and choose actions. One rule per line:
 *
 *     # label          actions       pattern
 *     out-of-memory    no-restart    Out of memory|Cannot allocate memory
 * label: 1 to 32 lower-case letters, digits and hyphens. actions: of restart, no-restart, drain,
 * drain-unverified, notify=TARGET and notify-text=TARGET, separated by commas, or "-". pattern: a
 * POSIX extended regular expression up to the end of the line. The first rule that matches the
 * reason of the failure, else a line of the log, applies. The shipped rules come after those of the
 * file, which replace rules with the same label. See traind.conf(5), FAILURE RULES. Workers write
 * the text that is searched. Patterns are matched against at most FAILURE_RULES_LINES lines of
 * FAILURE_RULES_LINE_BYTES, and back references are refused, so the time is bounded.
 */
#pragma once

#include <jansson.h>

#include "common/error.h"
#include "daemon/launch/failure.h"

#define FAILURE_RULES_MAX        64
#define FAILURE_RULES_LINES      128 /* last lines of a log to search */
#define FAILURE_RULES_LINE_BYTES 512
#define FAILURE_PATTERN_BYTES    512
#define FAILURE_NO_LABEL         "none" /* label of failures that match no rule */

struct failure_rules;

/* Loads a file's rules and the built-in ones; path NULL: only the latter. ERR_USAGE describes every
 * invalid line and what would be valid. */
int failure_rules_load(const char *path, struct failure_rules **out, struct error *e);
void failure_rules_destroy(struct failure_rules *r); /* NULL-safe */

/* Returns the index of the first rule that matches the reason, or else a line of the log; -1:
 * none. */
int failure_rules_find(const struct failure_rules *r, const char *reason, const char *log);

void failure_rules_apply(const struct failure_rules *r, const char *attempt_dir,
                         struct verdict *verdict);

void failure_rules_count(struct failure_rules *r, const char *label);
/* Adds the counts of the rules being replaced; those of removed labels count as unlabelled. */
void failure_rules_inherit(struct failure_rules *r, const struct failure_rules *before);

/* Returns a new array of {"label", "restart": true, false or null, "drain": "no", "verified" or
 * "unverified", "pattern", "shipped", "count"}. *unlabelled: failures that matched no rule. */
json_t *failure_rules_to_json(const struct failure_rules *r, int64_t *unlabelled);
