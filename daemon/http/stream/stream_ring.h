/*
 * The newest events as text for server-sent events, made once for all streams: a ring of bounded
 * memory. A stream behind its beginning reads the store instead. Not thread-safe: its owner locks.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/store/event.h"

#define RING_BYTES  (4u * 1024 * 1024)
#define RING_EVENTS 16384u /* a power of two */

struct ring_event {
    int64_t id, job_id;
    size_t at, bytes; /* of text; whole, never wrapped round */
};

struct stream_ring {
    int64_t base, head;  /* ids in (base, head] are all here */
    size_t first, count; /* of events[], first modulo RING_EVENTS */
    size_t used_to;      /* where the next text may begin */
    struct ring_event events[RING_EVENTS];
    char text[RING_BYTES];
};

void ring_reset(struct stream_ring *r, int64_t head); /* empty, everything up to head forgotten */

/* An event's text: "id: 17\nevent: step\ndata: {...}\n\n". The caller frees it; NULL: no memory. */
char *event_text(const struct store_event_row *row, size_t *bytes);

/* Copies the text; the oldest make room. Ids must rise. */
void ring_add(struct stream_ring *r, int64_t id, int64_t job_id, const char *text, size_t bytes);

/* The first event with an id above after, of job_id (STORE_ALL_JOBS: any); NULL: none. after must
 * not lie below base. */
const struct ring_event *ring_find(const struct stream_ring *r, int64_t after, int64_t job_id);
/* The one behind it that fits the same, or NULL. */
const struct ring_event *ring_next(const struct stream_ring *r, const struct ring_event *event,
                                   int64_t job_id);
