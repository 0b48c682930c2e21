/* Whole files: reading with a limit, atomic writing, folders. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/error.h"

/* Opens a regular file for reading, without blocking on a named pipe or device. Returns a
 * descriptor, or ERR_INVALID, ERR_NOT_FOUND, ERR_NOT_ALLOWED or ERR_IO. */
int file_open(const char *path, struct error *e);

int file_check_regular(int fd, const char *path, struct error *e);

const char *file_kind(mode_t mode); /* describes a file that is not regular: "a named pipe" */

/* Reads a regular file of at most limit_bytes. "-" is standard input; /dev/stdin and /dev/fd/N may
 * be pipes. The caller frees *text, which is NUL-terminated. Errors: ERR_TOO_LARGE, file_open's. */
int file_read(const char *path, size_t limit_bytes, char **text, size_t *bytes, struct error *e);

/* Like file_read, from a descriptor, which is always closed; path is used in messages. */
int file_read_fd(int fd, const char *path, size_t limit_bytes, char **text, size_t *bytes,
                 struct error *e);

/* Like file_read, without UTF-8's byte order mark. Returns ERR_USAGE for UTF-16 and UTF-32. */
int file_read_text(const char *path, size_t limit_bytes, char **text, size_t *bytes,
                   struct error *e);

int file_write_all(int fd, const void *data, size_t bytes);

/* Formats a path. If it does not fit, returns ERR_INVALID and sets an empty path, which open()
 * refuses with ENOENT; so a caller that does not need this error may ignore it. */
int file_path(char path[PATH_MAX], struct error *e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

const char *file_base_name(const char *path); /* the part after the last "/" */

/* Replaces a file: a temporary file in the same folder, fsync, rename, fsync of the folder. */
int file_write_atomic(const char *path, const void *data, size_t bytes, struct error *e);

/* Like file_write_atomic, for `name` in an open folder. */
int file_write_atomic_in(int folder, const char *name, const void *data, size_t bytes,
                         struct error *e);

/* Like file_write_atomic, but keeps an existing file: of several writers the first one wins, or the
 * last one if the file system has no hard links. */
int file_write_first(const char *path, const void *data, size_t bytes, struct error *e);

/* Like file_write_atomic without fsync, for files that are verified and can be rewritten. */
int file_write_unsynced(const char *path, const void *data, size_t bytes, struct error *e);

/* Like file_write_atomic, with mode 0600. */
int file_write_secret(const char *path, const void *data, size_t bytes, struct error *e);

void file_sync_dir(const char *path);
void file_sync_dir_of(const char *path); /* fsync of the folder that contains path */

/* Creates a folder and its missing parents (mode 0755), and syncs them. */
int file_make_dirs(const char *path, struct error *e);
int file_make_dirs_unsynced(const char *path,
                            struct error *e); /* they may be lost in a power cut */

/* Sets path to the folder for regenerable files (XDG Base Directory Specification):
 * $XDG_CACHE_HOME/traind, or ~/.cache/traind, which may not exist. False: neither variable is
 * set. */
bool file_cache_folder(char path[PATH_MAX]);

/* Must be called first in main. Opens descriptors 0 to 2 if they are closed, such that using them
 * fails; otherwise a file or connection opened later would receive the terminal's output. */
void file_refuse_closed_streams(void);

/* Removes a folder without following symbolic links, also while other processes remove it. */
int file_remove_tree(const char *path, struct error *e);
/* Like file_remove_tree, but stops at `until` (clock_monotonic), after at least one entry. Returns
 * 1 if entries remain. */
int file_remove_tree_until(const char *path, double until, struct error *e);

int64_t file_tree_bytes(const char *path);
