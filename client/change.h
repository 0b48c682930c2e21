/* Changes of a job document on the command line: --set lr.base=0.2, or --set /lr/base=0.2. */
#pragma once

#include <jansson.h>

#include "client/cmd.h"

/* Puts one KEY=VALUE into the document. A VALUE that is no JSON is a string. Keys and values are
 * checked by the table of job options: ERR_USAGE, with the nearest right key. */
int change_apply(json_t *document, const char *text, struct error *e);

/* Those of all --set. */
int changes_apply(json_t *document, const struct cmd_args *args, struct error *e);
