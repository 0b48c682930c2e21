/* Whole files: read with a limit, written so that a reader sees the old or the new, never half. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/error.h"

/* Opens a regular file for reading. Anything else is refused at once: opening a named pipe would
 * wait for a writer, and a device may never end. ERR_INVALID, ERR_NOT_FOUND, ERR_NOT_ALLOWED,
 * ERR_IO. */
int file_open(const char *path, struct error *e);

/* 0 if the descriptor is of a regular file, else ERR_INVALID with what it is. */
int file_check_regular(int fd, const char *path, struct error *e);

const char *file_kind(mode_t mode); /* of what is not one: "a named pipe" */

/* Reads a regular file of at most limit_bytes. "-" is standard input, and what a shell hands over
 * by a descriptor (/dev/stdin, /dev/fd/N) may be a pipe. The caller frees *text, which is
 * NUL-terminated behind its *bytes bytes. ERR_TOO_LARGE, and the errors of file_open. */
int file_read(const char *path, size_t limit_bytes, char **text, size_t *bytes, struct error *e);

/* The same from a descriptor, which it closes, also after an error; path is for messages. */
int file_read_fd(int fd, const char *path, size_t limit_bytes, char **text, size_t *bytes,
                 struct error *e);

/* As file_read, of a text: without UTF-8's byte order mark; ERR_USAGE for UTF-16 and UTF-32. */
int file_read_text(const char *path, size_t limit_bytes, char **text, size_t *bytes,
                   struct error *e);

/* write(2) until all is written: 0, or an errno. */
int file_write_all(int fd, const void *data, size_t bytes);

/* Makes a path, as snprintf. ERR_INVALID and an empty path if it has PATH_MAX bytes or more; an
 * open of that fails with ENOENT, so a caller that reports nothing else may leave the result. */
int file_path(char path[PATH_MAX], struct error *e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

const char *file_base_name(const char *path); /* what stands after the last "/" of it */

/* Writes path through a temporary file beside it: fsync, rename, fsync of the folder. */
int file_write_atomic(const char *path, const void *data, size_t bytes, struct error *e);

/* The same for name in the folder that the descriptor is of, wherever that is now. */
int file_write_atomic_in(int folder, const char *name, const void *data, size_t bytes,
                         struct error *e);

/* The same, but a file that is there stays as it is, also one that another process wrote meanwhile:
 * the first writer wins. Where the file system has no hard links, the last one does. */
int file_write_first(const char *path, const void *data, size_t bytes, struct error *e);

/* As file_write_atomic, but without the syncs, for what is checked and written again after a power
 * cut. */
int file_write_unsynced(const char *path, const void *data, size_t bytes, struct error *e);

/* As file_write_atomic, for what only the owner may read (mode 0600). */
int file_write_secret(const char *path, const void *data, size_t bytes, struct error *e);

/* fsync of a folder: a renamed entry is safe only once its folder is on disk too. */
void file_sync_dir(const char *path);
void file_sync_dir_of(const char *path); /* the folder that path lies in */

/* mkdir -p with mode 0755; the new names are on disk when the call returns. */
int file_make_dirs(const char *path, struct error *e);
int file_make_dirs_unsynced(const char *path, struct error *e); /* may be gone after a power cut */

/* The user's folder for what can be made again: $XDG_CACHE_HOME/traind, else ~/.cache/traind (XDG
 * Base Directory Specification). It need not exist. false: neither variable names a folder. */
bool file_cache_folder(char path[PATH_MAX]);

/* First in main: where 0, 1 or 2 is closed, reading or writing it goes on failing. A file or a
 * connection opened later would take the number, and be written what is for the terminal. */
void file_refuse_closed_streams(void);

/* Removes a folder and all below it, without following symbolic links; what is missing, also
 * because another process removes it too, is fine. 0: it is gone. */
int file_remove_tree(const char *path, struct error *e);
/* As much of it as can go until then (monotonic), but one entry at least. 1: there is more. */
int file_remove_tree_until(const char *path, double until, struct error *e);

/* Of all files below a folder, as far as they can be looked at; 0 of one that is missing. */
int64_t file_tree_bytes(const char *path);
