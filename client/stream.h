/* The daemon's event stream (server-sent events). Reconnects with Last-Event-ID, so no event is
 * lost or repeated. If the daemon has never answered, that is an error at once; otherwise
 * reconnection is attempted for STREAM_PATIENCE_SECONDS, with growing pauses. Single-threaded:
 * everything happens in stream_next. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "common/buffer.h"
#include "common/error.h"

/* Long enough to restart a busy machine, or for someone to find the cause. */
#define STREAM_PATIENCE_SECONDS 600

struct stream;

struct stream_event {
    const char *type; /* "state", "step", ... (common/run/attempt.h) */
    json_t *body;     /* {"id", "job", "attempt", "t", "type", ...} */
};

enum stream_news {
    STREAM_NOTHING, /* timeout, or fd is readable */
    STREAM_EVENT,
    STREAM_ALIVE, /* a heartbeat, or the stream has begun */
    STREAM_LOST,  /* the connection was lost; returned once, with the reason in *e */
    STREAM_BACK   /* the connection has been restored */
};

/* Opens a stream of path ("/v1/jobs/3/events") after event `after`; negative: new events only.
 * Connects on the first stream_next. */
struct stream *stream_create(const char *path, long long after);
void stream_destroy(struct stream *s); /* NULL-safe */

/* Waits for news, at most this long (negative: no limit) or until fd (-1: none) is readable. *event
 * is valid until the next call. Negative: the stream has ended, see *e. */
int stream_next(struct stream *s, int fd, double seconds, struct stream_event *event,
                struct error *e);

/* Prints one message when the daemon is lost and one when it is back. meanwhile: "the job
 * continues; ", or "". */
void stream_report(int news, const char *meanwhile);

int stream_newest(long long *id, struct error *e);

/* ---- the parser, exposed for tests */

struct sse {
    struct buffer text; /* received input, parsed up to from; also the body of an error response */
    size_t from;
    char type[32];
    struct buffer data; /* data of the event being read */
    long long coming;   /* id of that event */
    long long id;       /* id of the last complete event; negative: none */
    long retry_ms;
};

#define SSE_LIMIT_BYTES (16u * 1024 * 1024)
void sse_init(struct sse *sse, long long after, long retry_ms);
int sse_add(struct sse *sse, const char *text,
            size_t bytes); /* negative: larger than SSE_LIMIT_BYTES */

/* Returns 1 if an event is complete, with type and data (either may be ""), valid until the next
 * call; 0 if more input is needed. */
int sse_next(struct sse *sse, const char **type, const char **data);
void sse_clear(struct sse *sse); /* discards the input; keeps id and retry_ms */
