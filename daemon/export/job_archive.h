/* A job as a tar.gz file: manifest.json, which lists the members with size and digest, followed by
 * these; see doc/provenance.md. The same job gives the same bytes. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/digest.h"
#include "common/error.h"

#define JOB_ARCHIVE_FORMAT   1
#define JOB_ARCHIVE_MANIFEST "manifest.json"
#define JOB_ARCHIVE_FILES    4096 /* maximum number */

struct job_archive_file {
    char *name;
    int fd;     /* -1: use text, or open the file when writing */
    char *text; /* may be NULL */
    uint64_t bytes;
    char hex[DIGEST_BYTES];
};
struct job_archive_files {
    struct job_archive_file *items; /* in archive order */
    size_t count, capacity;
    /* For job_archive_add_file: returns -1 with errno on failure. */
    int (*open)(const char *folder, const char *name);
    const char *folder;
};

/* Copies text, or takes ownership of fd, even on failure. */
int job_archive_add_text(struct job_archive_files *files, const char *name, const char *text,
                         struct error *e);
int job_archive_add_fd(struct job_archive_files *files, const char *name, int fd, struct error *e);
/* Closes fd, and reopens the file when it is written. */
int job_archive_add_file(struct job_archive_files *files, const char *name, int fd,
                         struct error *e);
void job_archive_files_clear(struct job_archive_files *files);

/* Writes the archive and adds "files" to manifest. mtime: of all members. ERR_CONFLICT: a file has
 * changed. */
int job_archive_write(const struct job_archive_files *files, json_t *manifest, int64_t mtime,
                      int out, struct error *e);
