/* A job as one tar.gz: manifest.json, which lists the members with size and digest, then these;
 * doc/provenance.md. The same job gives the same bytes. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/digest.h"
#include "common/error.h"

#define JOB_ARCHIVE_FORMAT   1
#define JOB_ARCHIVE_MANIFEST "manifest.json"
#define JOB_ARCHIVE_FILES    4096 /* at most */

struct job_archive_file {
    char *name;
    int fd;     /* -1: text, or opened when written */
    char *text; /* or NULL */
    uint64_t bytes;
    char hex[DIGEST_BYTES];
};
struct job_archive_files {
    struct job_archive_file *items; /* in the order of the archive */
    size_t count, room;
    /* For job_archive_add_file: -1 with errno. */
    int (*open)(const char *folder, const char *name);
    const char *folder;
};

/* Takes a copy of text, and ownership of fd, also on error. */
int job_archive_add_text(struct job_archive_files *files, const char *name, const char *text,
                         struct error *e);
int job_archive_add_fd(struct job_archive_files *files, const char *name, int fd, struct error *e);
/* Closes fd, and opens the file again when it is written. */
int job_archive_add_file(struct job_archive_files *files, const char *name, int fd,
                         struct error *e);
void job_archive_files_clear(struct job_archive_files *files);

/* Adds "files" to the manifest. mtime: of all members. ERR_CONFLICT: a file has changed. */
int job_archive_write(const struct job_archive_files *files, json_t *manifest, int64_t mtime,
                      int out, struct error *e);
