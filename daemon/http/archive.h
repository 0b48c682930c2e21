/*
 * The run directories as one answer: what tar prints, sent as it is read, so that nothing of it is
 * stored a second time.
 *
 * A thread of its own reads each archive: tar may wait for a slow disk, and one of microhttpd's few
 * threads that waited with it would hold up every connection it serves. While there is nothing to
 * send, the connection is suspended. Like a download it is broken off when the token it was asked
 * for with is revoked or expires.
 */
#ifndef TRAIND_DAEMON_HTTP_ARCHIVE_H
#define TRAIND_DAEMON_HTTP_ARCHIVE_H

#include <stdint.h>

#include "common/error.h"

struct archives; /* all that are being sent; thread-safe */
struct archive;  /* one */
struct tokens;
struct MHD_Connection;
struct MHD_Response;

/* The tokens must outlive it. */
int archives_create(struct tokens *tokens, struct archives **out, struct error *e);
/* Breaks all off: before the HTTP server is stopped, which needs their connections awake. */
void archives_stop(struct archives *all);
/* After the HTTP server was stopped; NULL is fine. */
void archives_destroy(struct archives *all);

/* Starts tar on STATE/jobs; names in the archive begin with "jobs/". token: that the request came
 * with; 0: none. ERR_TOO_MANY: so many are being sent that another would only slow them down. */
int archive_open(struct archives *all, const char *state, int64_t token, struct archive **out,
                 struct error *e);

/* The answer that sends it over this connection; it closes the archive at its end, and NULL leaves
 * it open. */
struct MHD_Response *archive_response(struct archive *a, struct MHD_Connection *connection);

void archive_close(struct archive *a); /* ends tar; NULL is fine */

#endif
