/*
 * The daemon's live stream of events (server-sent events), also over the daemon's restart: the
 * connection is made again with Last-Event-ID, so that no event is lost or comes twice. A daemon
 * that has answered nothing yet fails at once; one that has is asked again for
 * STREAM_PATIENCE_SECONDS, after longer and longer pauses. Single-threaded: all happens inside
 * stream_next.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "common/buffer.h"
#include "common/error.h"

/* How long a daemon that had answered before may be away before we give up: a restart of a busy
 * machine and a person who looks for the reason fit in. */
#define STREAM_PATIENCE_SECONDS 600

struct stream;

struct stream_event {
    const char *type; /* "state", "step"... (common/run/attempt.c; the daemon's own: state) */
    json_t *body;     /* {"id", "job", "attempt", "t", "type", ...its own fields} */
};

enum stream_news {
    STREAM_NOTHING, /* the time is over, or fd can be read */
    STREAM_EVENT,
    STREAM_ALIVE, /* a heartbeat, or the stream has just begun */
    STREAM_LOST,  /* the daemon went away: told once, with the words in *e */
    STREAM_BACK   /* and it is there again */
};

/* A stream of path ("/v1/jobs/3/events") behind event `after`; below 0: from what comes now on.
 * Connects at the first stream_next. */
struct stream *stream_create(const char *path, long long after);
void stream_destroy(struct stream *s); /* NULL is fine */

/* Waits for the next news, at most so many seconds (below 0: for ever) or until fd (-1: none) can
 * be read. *event is valid until the next call. Negative: it is over, with the reason in *e. */
int stream_next(struct stream *s, int fd, double seconds, struct stream_event *event,
                struct error *e);

/* One message on stderr when the daemon goes, one when it is back: not one a try. meanwhile: "the
 * job continues; ", or "". */
void stream_report(int news, const char *meanwhile);

/* The id of the newest event of all jobs, by a stream that is opened and closed again. */
int stream_newest(long long *id, struct error *e);

/* ---- the format, for tests */

struct sse {
    struct buffer text; /* what came, read up to from; its failure is that of the stream */
    size_t from;
    char type[32];
    struct buffer data; /* of the event being read */
    long long coming;   /* id of the event being read */
    long long id;       /* of the last whole one, below 0: none came */
    long retry_ms;
};

#define SSE_LIMIT_BYTES (16u * 1024 * 1024)
void sse_init(struct sse *sse, long long after, long retry_ms);
int sse_add(struct sse *sse, const char *text, size_t bytes); /* negative: over SSE_LIMIT_BYTES */

/* Reads on to the end of an event: 1 with type and data (either may be empty), 0: more is needed.
 * They are valid until the next call. */
int sse_next(struct sse *sse, const char **type, const char **data);
void sse_clear(struct sse *sse); /* what came; id and retry_ms stay */
