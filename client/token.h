/* The user's token: never an argument, as others see those. */
#pragma once

#include "common/error.h"

#define TOKEN_BYTES 128

/* From the environment's TRAINCTL_TOKEN, else the first line of the context's file, or without a
 * context of traind/token below XDG_CONFIG_HOME or ~/.config. 1: found; 0: there is none; negative:
 * ERR_NOT_ALLOWED where others may read that file, ERR_INVALID where it holds something else. */
int token_find(char token[TOKEN_BYTES], struct error *e);

/* The variable or the file that the last one was found in; "": none was, NULL: it is that
 * of token_use. */
const char *token_source(void);

/* From a file, as above, or standard input: a terminal shows words and hides what is typed. 1, or
 * negative. */
int token_load(const char *path, char token[TOKEN_BYTES], struct error *e);
int token_ask(const char *words, char token[TOKEN_BYTES], struct error *e);

/* From now on this one is found; "": none. */
void token_use(const char *token);
