/*
 * Live streams of events (server-sent events, WHATWG HTML "Server-sent events"): every event
 * with its id, in order, exactly once, and heartbeats.
 *
 * A stream is only a position in the table of events, so a slow reader costs nothing: it is sent
 * events from memory (stream_ring.h), or from the store if it is far behind. The server's
 * timeout drops readers that take nothing for a minute. One thread follows the store and wakes
 * waiting streams. A stream ends within a second after its token is revoked or has expired.
 */
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
    int64_t per_client;        /* streams at a time */
    int64_t heartbeat_seconds; /* of silence */
};

/* The store and the tokens must outlive it. */
int streams_create(struct store *store, struct tokens *tokens, const struct streams_limits *limits,
                   struct streams **out, struct error *e);
/* Ends all streams. Called before the HTTP server is stopped, which needs them awake. */
void streams_stop(struct streams *all);
/* Called after the HTTP server was stopped; NULL is fine. */
void streams_destroy(struct streams *all);
int64_t streams_count(struct streams *all);

#define STREAM_FROM_NOW (-1)
struct stream_request {
    const char *client; /* counted against per_client */
    int64_t token;      /* of the request; 0: none */
    int64_t job_id;     /* or STORE_ALL_JOBS */
    int64_t after;      /* id; STREAM_FROM_NOW: new events only */
};
/* ERR_TOO_MANY: per_client is reached. */
int stream_open(struct streams *all, const struct stream_request *request, struct stream **out,
                struct error *e);
void stream_close(struct stream *s); /* NULL is fine */

/* The response that sends the stream over this connection, and closes it at its end. NULL leaves it
 * open. */
struct MHD_Response *stream_response(struct stream *s, struct MHD_Connection *connection);
