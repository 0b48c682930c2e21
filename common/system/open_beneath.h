/*
 * Opens what a job names (data sets, weights) beneath the folders that jobs may use, data_roots of
 * traind.conf. The file is opened first and then judged by where it really lies, as the kernel
 * tells it: no symbolic link, whether there already or put there later, leads out of the roots.
 * Links that stay beneath a root are fine.
 *
 * The roots are the process's, because daemon and worker read data sets by the same code.
 */
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
