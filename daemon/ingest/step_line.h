/*
 * The line of a step as train-worker writes it, read some ten times as fast as by a JSON library:
 * nearly all lines of a run are such. Whatever looks different in any way is left to the library.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/store/store.h"

/* True: the line is {"seq": 1, "t": 2.5, "type": "step", "KEY": VALUE, ...} with keys of letters,
 * digits and underscores, none twice, and numbers, null or lists of numbers as values; *event has
 * all of it but body and own, and the step's own fields begin at line + *own. The numbers are those
 * that strtod and jansson read. False: it may still be a good line. */
bool step_line_read(const char *line, struct store_event *event, size_t *own);
