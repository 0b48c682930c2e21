#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Prints the jobs of an answer. columns: validated names separated by commas; NULL: those that fit
 * the terminal. wide: more columns, and nothing is truncated. */
void list_print_jobs(const json_t *answer, const char *columns, bool wide);
