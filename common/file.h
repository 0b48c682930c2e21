/* Whole files: read with a limit, written so that a reader sees the old or the new, never half. */
#ifndef TRAIND_COMMON_FILE_H
#define TRAIND_COMMON_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

/* Reads a file of at most limit_bytes; "-" is standard input. The caller frees *text, which is
 * NUL-terminated behind its *bytes bytes. ERR_TOO_LARGE, ERR_NOT_FOUND, ERR_NOT_ALLOWED, ERR_IO. */
int file_read(const char *path, size_t limit_bytes, char **text, size_t *bytes, struct error *e);

/* Writes path through a temporary file beside it: fsync, rename, fsync of the folder. */
int file_write_atomic(const char *path, const void *data, size_t bytes, struct error *e);

/* The same without the syncs, for what is checked and written again after a power cut. */
int file_write_unsynced(const char *path, const void *data, size_t bytes, struct error *e);

/* As file_write_atomic, for what only the owner may read (mode 0600). */
int file_write_secret(const char *path, const void *data, size_t bytes, struct error *e);

/* fsync of a folder: a renamed entry is safe only once its folder is on disk too. */
void file_sync_dir(const char *path);
void file_sync_dir_of(const char *path); /* the folder that path lies in */

/* mkdir -p with mode 0755. */
int file_make_dirs(const char *path, struct error *e);

/* The user's folder for what can be made again: $XDG_CACHE_HOME/traind, else ~/.cache/traind (XDG
 * Base Directory Specification). It need not exist. false: neither variable names a folder. */
bool file_cache_folder(char path[PATH_MAX]);

/* Removes a folder and all below it, without following symbolic links; a missing one is fine. */
int file_remove_tree(const char *path, struct error *e);

#endif
