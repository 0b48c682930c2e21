#pragma once

#include "common/error.h"

/* Downloads an answer of any length into a file, which appears whole or not at all, even if a
 * signal ends the process; mode 0600. type: as for api_get_file. *bytes: its size. */
int download(const char *path, const char *type, const char *file, double *bytes, struct error *e);
