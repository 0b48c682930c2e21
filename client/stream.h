/*
 * The daemon's event stream (server-sent events). It reconnects with Last-Event-ID, so no event
 * is lost or repeated. A daemon that has not answered before is an error at once; otherwise
 * reconnecting is tried for STREAM_PATIENCE_SECONDS, with growing pauses. Single-threaded:
 * everything happens in stream_next.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "common/buffer.h"
#include "common/error.h"

/* Long enough for a restart of a busy machine, or for someone to find the reason. */
#define STREAM_PATIENCE_SECONDS 600

struct stream;

struct stream_event {
    const char *type; /* "state", "step", ... (common/run/attempt.h) */
    json_t *body;     /* {"id", "job", "attempt", "t", "type", ...} */
};

enum stream_news {
    STREAM_NOTHING, /* the time is over, or fd is readable */
    STREAM_EVENT,
    STREAM_ALIVE, /* a heartbeat, or the stream has begun */
    STREAM_LOST,  /* the connection was lost; once, with the reason in *e */
    STREAM_BACK   /* it is back */
};

/* A stream of path ("/v1/jobs/3/events") after event `after`; negative: from now on. Connects at
 * the first stream_next. */
struct stream *stream_create(const char *path, long long after);
void stream_destroy(struct stream *s); /* NULL is fine */

/* Waits for news, at most this long (negative: without limit) or until fd (-1: none) is readable.
 * *event is valid until the next call. Negative: the stream is over, see *e. */
int stream_next(struct stream *s, int fd, double seconds, struct stream_event *event,
                struct error *e);

/* Prints one message when the daemon is lost and one when it is back. meanwhile: "the job
 * continues; ", or "". */
void stream_report(int news, const char *meanwhile);

int stream_newest(long long *id, struct error *e);

/* ---- the format, for tests */

struct sse {
    struct buffer text; /* received, parsed up to from; also a failed answer's body */
    size_t from;
    char type[32];
    struct buffer data; /* of the event being read */
    long long coming;   /* id of that event */
    long long id;       /* of the last complete event; negative: none */
    long retry_ms;
};

#define SSE_LIMIT_BYTES (16u * 1024 * 1024)
void sse_init(struct sse *sse, long long after, long retry_ms);
int sse_add(struct sse *sse, const char *text, size_t bytes); /* negative: over SSE_LIMIT_BYTES */

/* 1: an event is complete, with type and data (either may be ""), valid until the next call. 0:
 * more input is needed. */
int sse_next(struct sse *sse, const char **type, const char **data);
void sse_clear(struct sse *sse); /* drops the input; id and retry_ms stay */
