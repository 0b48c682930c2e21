/* The user's token: never an argument, as others see those. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "common/error.h"

#define TOKEN_BYTES 128

/* From the environment's TRAINCTL_TOKEN, else the first line of $XDG_CONFIG_HOME/traind/token or
 * ~/.config/traind/token. 1: found; 0: there is none; negative: ERR_NOT_ALLOWED where others may
 * read that file, ERR_INVALID where it holds something else. */
int token_find(char token[TOKEN_BYTES], struct error *e);

/* That file, whether there is one or not; false: no folder is known in which it could be. */
bool token_path(char path[PATH_MAX]);
