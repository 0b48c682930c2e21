/* A ring buffer of the newest events as server-sent text, formatted once for all streams. Streams
 * that have fallen further behind read the store. Not thread-safe. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/store/event.h"

#define RING_BYTES  (4u * 1024 * 1024)
#define RING_EVENTS 16384u /* a power of two */

struct ring_event {
    int64_t id, job_id;
    size_t at, bytes; /* offset in text, not wrapped around */
};

struct stream_ring {
    int64_t base, head;  /* the ring contains all events with ids in (base, head] */
    size_t first, count; /* indices into events[]; first is modulo RING_EVENTS */
    size_t used_to;      /* where the next text is written */
    struct ring_event events[RING_EVENTS];
    char text[RING_BYTES];
};

void ring_reset(struct stream_ring *r, int64_t head); /* empties it and sets base to head */

/* Formats as "id: 17\nevent: step\ndata: {...}\n\n". The caller frees it; NULL: out of memory. */
char *event_text(const struct store_event_row *row, size_t *bytes);

/* Copies the text into the ring, dropping the oldest events to make space. Ids must increase. */
void ring_add(struct stream_ring *r, int64_t id, int64_t job_id, const char *text, size_t bytes);

/* Returns the first event of job_id (STORE_ALL_JOBS: any) with an id above `after`, which must be
 * at least base. */
const struct ring_event *ring_find(const struct stream_ring *r, int64_t after, int64_t job_id);
const struct ring_event *ring_next(const struct stream_ring *r, const struct ring_event *event,
                                   int64_t job_id);
