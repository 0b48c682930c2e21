/*
 * A job as one file, a tar with gzip: what GET /v1/jobs/ID/archive writes and POST /v1/jobs/import
 * reads. Its first member is manifest.json, which lists the others with their sizes and digests;
 * doc/provenance.md describes them. The same job gives the same bytes.
 *
 * What is read comes from anywhere: a member whose name is not in the table of this file, that is
 * no regular file, is not as the manifest says, or is one too many ends the reading.
 */
#ifndef TRAIND_DAEMON_ARCHIVE_JOB_ARCHIVE_H
#define TRAIND_DAEMON_ARCHIVE_JOB_ARCHIVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/digest.h"
#include "common/error.h"

#define JOB_ARCHIVE_FORMAT   1
#define JOB_ARCHIVE_MANIFEST "manifest.json"
#define JOB_ARCHIVE_FILES    4096 /* at most */

/* What is in an attempt's folder beside stdout.log and is exported; NULL behind the last. */
const char *job_archive_attempt_file(size_t i);

/* Whether a member may have this name: "job.json", "attempt-3/stdout.log",
 * "checkpoints/step-00000520/state.json". */
bool job_archive_takes(const char *name);

/* ---- writing */

struct job_archive_file {
    char *name;
    int fd;     /* read from its start; -1: text, or opened when it is written */
    char *text; /* or NULL */
    uint64_t bytes;
    char hex[DIGEST_BYTES];
};
struct job_archive_files {
    struct job_archive_file *items; /* in the order of the archive */
    size_t count, room;
    /* Opens a file that was added by job_archive_add_file: -1 with errno. */
    int (*open)(const char *folder, const char *name);
    const char *folder;
};

/* They take over the text or the descriptor, also after an error. */
int job_archive_add_text(struct job_archive_files *files, const char *name, char *text,
                         struct error *e);
int job_archive_add_fd(struct job_archive_files *files, const char *name, int fd, struct error *e);
/* The same of one of very many: closes fd, and opens the file again when it is written. */
int job_archive_add_file(struct job_archive_files *files, const char *name, int fd,
                         struct error *e);
void job_archive_files_clear(struct job_archive_files *files);

/* Writes the archive to out. "files" is added to the manifest; mtime: of all members. ERR_CONFLICT:
 * a file has changed since it was added. */
int job_archive_write(const struct job_archive_files *files, json_t *manifest, int64_t mtime,
                      int out, struct error *e);

/* ---- reading */

/* Unpacks the archive that in is open for (from its start) into an empty folder. At most
 * limit_bytes come of it. *manifest: a new object; hex: its digest, which is that of all that the
 * archive holds. ERR_INVALID: what is wrong with it; ERR_TOO_LARGE; ERR_NO_SPACE, ERR_IO. */
int job_archive_read(int in, const char *folder, uint64_t limit_bytes, json_t **manifest,
                     char hex[DIGEST_BYTES], struct error *e);

#endif
