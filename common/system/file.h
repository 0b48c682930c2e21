/* Whole files: read with a limit, and written atomically. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/error.h"

/* Opens a regular file for reading, without blocking on a named pipe or device. ERR_INVALID,
 * ERR_NOT_FOUND, ERR_NOT_ALLOWED, ERR_IO. */
int file_open(const char *path, struct error *e);

int file_check_regular(int fd, const char *path, struct error *e);

const char *file_kind(mode_t mode); /* of what is not one: "a named pipe" */

/* Reads a regular file of at most limit_bytes; "-" is standard input, and /dev/stdin or /dev/fd/N
 * may be a pipe. The caller frees *text, which is NUL-terminated. ERR_TOO_LARGE, and the errors of
 * file_open. */
int file_read(const char *path, size_t limit_bytes, char **text, size_t *bytes, struct error *e);

/* The same from a descriptor, which is closed in any case; path is for messages. */
int file_read_fd(int fd, const char *path, size_t limit_bytes, char **text, size_t *bytes,
                 struct error *e);

/* As file_read, without UTF-8's byte order mark; ERR_USAGE for UTF-16 and UTF-32. */
int file_read_text(const char *path, size_t limit_bytes, char **text, size_t *bytes,
                   struct error *e);

int file_write_all(int fd, const void *data, size_t bytes);

/* Formats a path. If it does not fit, ERR_INVALID and an empty path, which open refuses with
 * ENOENT; a caller without an error of its own may thus ignore the result. */
int file_path(char path[PATH_MAX], struct error *e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

const char *file_base_name(const char *path); /* what stands after the last "/" of it */

/* Writes a temporary file beside path: fsync, rename, fsync of the folder. */
int file_write_atomic(const char *path, const void *data, size_t bytes, struct error *e);

/* The same for name in an open folder. */
int file_write_atomic_in(int folder, const char *name, const void *data, size_t bytes,
                         struct error *e);

/* The same unless the file exists: the first of several writers wins, or without hard links in the
 * file system the last. */
int file_write_first(const char *path, const void *data, size_t bytes, struct error *e);

/* Without syncs, for files that are verified and rewritten after a power cut. */
int file_write_unsynced(const char *path, const void *data, size_t bytes, struct error *e);

/* Readable by the owner alone (mode 0600). */
int file_write_secret(const char *path, const void *data, size_t bytes, struct error *e);

void file_sync_dir(const char *path);
void file_sync_dir_of(const char *path); /* the folder that path lies in */

/* mkdir -p with mode 0755, synced. */
int file_make_dirs(const char *path, struct error *e);
int file_make_dirs_unsynced(const char *path, struct error *e); /* may be gone after a power cut */

/* The folder for regenerable files (XDG Base Directory Specification): $XDG_CACHE_HOME/traind, else
 * ~/.cache/traind; it may not exist. False: neither variable is set. */
bool file_cache_folder(char path[PATH_MAX]);

/* Called first in main: opens closed descriptors 0 to 2 so that using them fails, instead of a
 * later file or connection receiving the terminal's output. */
void file_refuse_closed_streams(void);

/* Removes a folder and all below it without following symbolic links; concurrent removal is
 * fine. */
int file_remove_tree(const char *path, struct error *e);
/* Stops after `until` (clock_monotonic), but removes one entry at least. 1: there is more. */
int file_remove_tree_until(const char *path, double until, struct error *e);

int64_t file_tree_bytes(const char *path);
