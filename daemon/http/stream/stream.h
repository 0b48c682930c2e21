/*
 * Live streams of events (server-sent events, WHATWG HTML "Server-sent events"): each event with
 * its id, oldest first, each exactly once; "event: heartbeat" where nothing happens.
 *
 * A stream is a position in the table of events and no more, so a slow reader costs nothing: what
 * it has not taken is read again from memory (stream_ring.h) or from the store when it can take it.
 * A reader that takes nothing for a minute is dropped by the server's time limit. One thread
 * follows the store and wakes the streams that wait. A stream ends within a second when its token
 * is revoked or has expired; who comes again gets 401.
 */
#pragma once

#include <stdint.h>

#include "common/error.h"
#include "daemon/store/store.h"

struct streams; /* all of them; thread-safe */
struct stream;  /* one */
struct tokens;
struct MHD_Connection;
struct MHD_Response;

struct streams_limits {
    int64_t per_client;        /* streams at a time */
    int64_t heartbeat_seconds; /* without an event */
};

/* The store and the tokens must outlive it. */
int streams_create(struct store *store, struct tokens *tokens, const struct streams_limits *limits,
                   struct streams **out, struct error *e);
/* Ends all streams: before the HTTP server is stopped, which needs them awake. */
void streams_stop(struct streams *all);
/* After the HTTP server was stopped; NULL is fine. */
void streams_destroy(struct streams *all);
int64_t streams_count(struct streams *all);

#define STREAM_FROM_NOW (-1)
struct stream_request {
    const char *client; /* who it counts for */
    int64_t token;      /* that it came with; 0: none */
    int64_t job_id;     /* or STORE_ALL_JOBS */
    int64_t after;      /* ids above it; STREAM_FROM_NOW: events to come */
};
/* ERR_TOO_MANY: the client has as many as it may. */
int stream_open(struct streams *all, const struct stream_request *request, struct stream **out,
                struct error *e);
void stream_close(struct stream *s); /* NULL is fine */

/* The answer that sends the stream over this connection; it closes the stream at its end, and
 * NULL leaves it open. */
struct MHD_Response *stream_response(struct stream *s, struct MHD_Connection *connection);
