/* Opens data sets and weights named by a job, beneath data_roots of traind.conf. A file is opened
 * first and its real location, as reported by the kernel, is checked afterwards, so that no
 * symbolic link can lead out of the roots, not even one created in between. The roots are global
 * because daemon and worker read data sets with the same code. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "common/error.h"

void open_beneath_set_roots(const char *roots);
const char *open_beneath_roots(void);

/* Return a descriptor for reading a regular file, or one of a folder. Errors: ERR_NOT_ALLOWED
 * outside the roots, ERR_INVALID for another type of file, ERR_NOT_FOUND, ERR_IO. */
int open_beneath_file(const char *path, struct error *e);
int open_beneath_folder(const char *path, struct error *e);

int open_beneath_stat(const char *path, struct stat *st, struct error *e);

/* Returns whether a real path is in one of the roots. */
bool open_beneath_holds(const char *roots, const char *path);
