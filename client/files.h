/* Files and folders that trainctl makes. */
#pragma once

#include <limits.h>
#include <stdio.h>

#include "common/error.h"

/* Makes a folder of its own in $TMPDIR, or /tmp, for the caller to remove. */
int files_make_temporary(char folder[PATH_MAX], struct error *e);

typedef int files_fill_call(FILE *out, void *context, struct error *e);

/* Writes a file of mode 0600, which appears atomically, even if a signal ends the process. Only one
 * at a time. *bytes: its size. */
int files_write(const char *file, files_fill_call *fill, void *context, double *bytes,
                struct error *e);
