/* A parser for the step lines written by train-worker, which are nearly all lines of a run; about
 * ten times as fast as a JSON library. Lines in any other form are left to the library. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/store/ingest.h"

/* Returns true if the line is {"seq": 1, "t": 2.5, "type": "step", "KEY": VALUE, ...} with unique
 * keys of letters, digits and underscores, and with numbers, null or lists of numbers as values.
 * Fills *event except body and own; the step's own fields begin at line + *own. Numbers are
 * converted like strtod and jansson. If it returns false, the line may still be valid. */
bool fast_step_parse(const char *line, struct store_event *event, size_t *own);
