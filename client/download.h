#pragma once

#include "common/error.h"

/* Fetches an answer of any length into a file, which appears whole or not at all, also where a
 * signal ends us, and only its owner can read. type: as for api_get_file. *bytes: its size. */
int download(const char *path, const char *type, const char *file, double *bytes, struct error *e);
