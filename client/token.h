/* The user's token. It is never an argument, which other users could see. */
#pragma once

#include "common/error.h"

#define TOKEN_BYTES 128

/* From TRAINCTL_TOKEN, else from the first line of the context's file, or without a context of
 * traind/token below XDG_CONFIG_HOME or ~/.config. 1: found, 0: none, or negative: ERR_NOT_ALLOWED
 * if others may read the file, ERR_INVALID if it contains something else. */
int token_find(char token[TOKEN_BYTES], struct error *e);

/* The variable or file of the last token; "": none, NULL: token_use. */
const char *token_source(void);

/* From such a file, or from standard input; a terminal shows words and hides the input. 1, or
 * negative. */
int token_load(const char *path, char token[TOKEN_BYTES], struct error *e);
int token_ask(const char *words, char token[TOKEN_BYTES], struct error *e);

/* Replaces the configured token; "": none. */
void token_use(const char *token);
