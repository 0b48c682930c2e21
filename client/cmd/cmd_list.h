#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Prints the answer's jobs. columns: names separated by commas, checked; NULL: those that fit the
 * terminal. wide: more columns, and nothing is cut. */
void list_print_jobs(const json_t *answer, const char *columns, bool wide);
