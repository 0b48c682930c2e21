/* What trainctl list prints: jobs in columns, or groups of jobs. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

const char *list_column_at(size_t i); /* "id"...: what --columns takes; NULL behind the last */

/* The answer's jobs. columns: names with commas between them, checked; NULL: those that fit the
 * terminal. wide: more of them, and nothing is cut. */
void list_print_jobs(const json_t *answer, const char *columns, bool wide);

/* The answer's groups; key: what they are made by. */
void list_print_groups(const json_t *answer, const char *key);
