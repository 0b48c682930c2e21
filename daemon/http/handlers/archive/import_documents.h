/* The documents of an archive that was unpacked: from anywhere, so everything in them is checked as
 * if it had just been sent. */
#ifndef TRAIND_DAEMON_HTTP_HANDLERS_ARCHIVE_IMPORT_DOCUMENTS_H
#define TRAIND_DAEMON_HTTP_HANDLERS_ARCHIVE_IMPORT_DOCUMENTS_H

#include <jansson.h>
#include <stdio.h>

#include "common/job/job_spec.h"
#include "common/plan/plan.h"
#include "daemon/store/import.h"

struct import_documents {
    struct job_spec *spec;
    struct plan *own; /* made here of the document and the archive's image counts */
    char *spec_text;  /* written anew */
    char *plan_text;  /* the archive's, of the shape of a plan */
    FILE *events;
    char *line; /* of events */
    size_t room;
    int64_t number;   /* of the line */
    int64_t attempts; /* that the manifest tells */
    json_t *event;    /* the last */
};

/* ERR_INVALID: what is wrong, and with which file, all events included; ERR_TOO_LARGE: there are
 * too many of them. Clear in any case. */
int import_documents_read(const char *folder, int64_t attempts, struct import_documents *d,
                          struct error *e);

/* As struct store_import's next; context: struct import_documents. */
int import_documents_next(void *context, struct store_import_event *event, struct error *e);
void import_documents_clear(struct import_documents *d);

#endif
