/* Opens data sets and weights that a job names, beneath data_roots of traind.conf. A file is opened
 * first and then checked by its real location, as reported by the kernel, so that no symbolic link
 * leads out of the roots, even one created meanwhile. The roots are global because daemon and
 * worker read data sets by the same code. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "common/error.h"

void open_beneath_set_roots(const char *roots);
const char *open_beneath_roots(void);

/* A descriptor for reading a regular file or of a folder; ERR_NOT_ALLOWED outside the roots,
 * ERR_INVALID for another type, ERR_NOT_FOUND, ERR_IO. */
int open_beneath_file(const char *path, struct error *e);
int open_beneath_folder(const char *path, struct error *e);

int open_beneath_stat(const char *path, struct stat *st, struct error *e);

/* Whether a real path lies in one of the roots. */
bool open_beneath_holds(const char *roots, const char *path);
