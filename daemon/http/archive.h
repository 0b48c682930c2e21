/* The run directories as one answer: what tar prints, sent as it is read, so that nothing of it is
 * stored a second time. Like a download it is broken off when the token it was asked for with is
 * revoked or expires. */
#ifndef TRAIND_DAEMON_HTTP_ARCHIVE_H
#define TRAIND_DAEMON_HTTP_ARCHIVE_H

#include <stdint.h>

#include "common/error.h"

struct archive;
struct tokens;
struct MHD_Response;

/* Starts tar on STATE/jobs; names in the archive begin with "jobs/". */
int archive_open(const char *state, struct archive **out, struct error *e);

/* The response closes it; NULL leaves it open. The tokens must outlive it. */
struct MHD_Response *archive_response(struct archive *a, struct tokens *tokens, int64_t token);

void archive_close(struct archive *a); /* ends tar; NULL is fine */

#endif
