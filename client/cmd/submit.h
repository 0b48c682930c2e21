/* Submitting a job document, for submit and clone. */
#pragma once

#include <stddef.h>

#include "client/cmd.h"

/* Posts the document, tells the new job, and waits for or watches it as --wait and --watch say.
 * Returns the exit code. */
int submit_text(const struct cmd_args *args, const char *text, size_t bytes);
