/* Live event streams (server-sent events, WHATWG HTML "Server-sent events"): every event with its
 * id, in order, exactly once, and heartbeats.
 *
 * A stream is only a position in the table of events, so a slow reader costs nothing: events are
 * sent from memory (stream_ring.h), or from the store if the reader has fallen far behind. The
 * server's timeout drops readers that accept no data for a minute. One thread follows the store and
 * wakes waiting streams. A stream ends within a second after its token has been revoked or has
 * expired. */
#pragma once

#include <stdint.h>

#include "common/error.h"
#include "daemon/store/store.h"

struct streams;
struct stream;
struct tokens;
struct MHD_Connection;
struct MHD_Response;

struct streams_limits {
    int64_t per_client;        /* concurrent streams */
    int64_t heartbeat_seconds; /* sent after this long without events */
};

/* The store and the tokens must outlive the result. */
int streams_create(struct store *store, struct tokens *tokens, const struct streams_limits *limits,
                   struct streams **out, struct error *e);
/* Ends all streams. Call it before stopping the HTTP server, which needs them awake. */
void streams_stop(struct streams *all);
/* Call it after the HTTP server has stopped. NULL-safe. */
void streams_destroy(struct streams *all);
int64_t streams_count(struct streams *all);

#define STREAM_FROM_NOW (-1)
struct stream_request {
    const char *client; /* concurrent streams are counted per client */
    int64_t token;      /* token of the request; 0: none */
    int64_t job_id;     /* or STORE_ALL_JOBS */
    int64_t after;      /* event id; STREAM_FROM_NOW: new events only */
};
/* ERR_TOO_MANY: the client already has per_client streams. */
int stream_open(struct streams *all, const struct stream_request *request, struct stream **out,
                struct error *e);
void stream_close(struct stream *s); /* NULL-safe */

/* Returns the response that sends the stream over this connection and closes it at the end; NULL
 * leaves it open. */
struct MHD_Response *stream_response(struct stream *s, struct MHD_Connection *connection);
