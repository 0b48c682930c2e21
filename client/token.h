/* The user's token. Never passed as an argument, which other users could see. */
#pragma once

#include "common/error.h"

#define TOKEN_BYTES 128

/* Finds the token in TRAINCTL_TOKEN, in the first line of the context's file, or without a context
 * in traind/token below XDG_CONFIG_HOME or ~/.config. Returns 1 if found, 0 if not, or negative:
 * ERR_NOT_ALLOWED if others may read the file, ERR_INVALID if it contains something else. */
int token_find(char token[TOKEN_BYTES], struct error *e);

/* Returns the variable or file that the last token came from; "": none, NULL: token_use. */
const char *token_source(void);

/* Reads a token from such a file, or from standard input, where a terminal shows a prompt and hides
 * the input. Returns 1 or a negative error. */
int token_load(const char *path, char token[TOKEN_BYTES], struct error *e);
int token_ask(const char *words, char token[TOKEN_BYTES], struct error *e);

/* Overrides the configured token; "": none. */
void token_use(const char *token);
