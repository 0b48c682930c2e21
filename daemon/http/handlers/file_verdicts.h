/*
 * What whole reads of large files said: whether a file is what its digest says, remembered for as
 * long as the file has the same inode, size and time of change. Thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

/* False: this file was not read for this digest, or has changed since. */
bool file_verdict_find(const struct stat *st, const char *digest, bool *whole);
void file_verdict_keep(const struct stat *st, const char *digest, bool whole);
