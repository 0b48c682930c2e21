#include "daemon/http/stream/stream_ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/xalloc.h"

/* Most events are steps, whose stored JSON is embedded unchanged. */
static char *stream_ring_data(const struct store_event_row *row)
{
    if (strcmp(row->type, "step") != 0 || strpbrk(row->body, "\r\n")) {
        json_t *event = store_event_json(row);
        char *data = event ? json_to_text(event, JSON_COMPACT) : NULL;
        json_decref(event);
        return data;
    }
    return xasprintf("{\"id\":%lld,\"job\":%lld,\"attempt\":%lld,\"t\":%.6f,\"type\":\"step\"%s%s",
                     (long long)row->id, (long long)row->job_id, (long long)row->attempt, row->t,
                     row->body[1] == '}' ? "" : ",", row->body + 1);
}

char *event_text(const struct store_event_row *row, size_t *bytes)
{
    char *data = stream_ring_data(row);
    bool is_word = *row->type && !row->type[strspn(row->type, "abcdefghijklmnopqrstuvwxyz_")];

    if (!data)
        return NULL;
    char *text = xasprintf("id: %lld\nevent: %s\ndata: %s\n\n", (long long)row->id,
                           is_word ? row->type : "message", data);
    free(data);
    *bytes = strlen(text);
    return text;
}

static struct ring_event *ring_nth(const struct stream_ring *r, size_t n)
{
    return (struct ring_event *)&r->events[(r->first + n) % RING_EVENTS];
}

void ring_reset(struct stream_ring *r, int64_t head)
{
    r->base = r->head = head;
    r->first = r->count = r->used_to = 0;
}

static void stream_ring_drop_oldest(struct stream_ring *r)
{
    r->base = ring_nth(r, 0)->id;
    r->first = (r->first + 1) % RING_EVENTS;
    r->count--;
}

static void ring_make_room(struct stream_ring *r, size_t bytes)
{
    if (r->used_to + bytes > RING_BYTES) {
        while (r->count && ring_nth(r, 0)->at >= r->used_to)
            stream_ring_drop_oldest(r);
        r->used_to = 0;
    }
    while (r->count && (r->count == RING_EVENTS || (ring_nth(r, 0)->at >= r->used_to &&
                                                    ring_nth(r, 0)->at < r->used_to + bytes)))
        stream_ring_drop_oldest(r);
}

void ring_add(struct stream_ring *r, int64_t id, int64_t job_id, const char *text, size_t bytes)
{
    if (bytes > RING_BYTES / 2) { /* larger than any line; streams read it from the store */
        ring_reset(r, id);
        return;
    }
    ring_make_room(r, bytes);
    memcpy(r->text + r->used_to, text, bytes);
    *ring_nth(r, r->count++) = (struct ring_event){id, job_id, r->used_to, bytes};
    r->used_to += bytes;
    r->head = id;
}

static const struct ring_event *ring_fitting(const struct stream_ring *r, size_t n, int64_t job_id)
{
    for (; n < r->count; n++)
        if (job_id == STORE_ALL_JOBS || ring_nth(r, n)->job_id == job_id)
            return ring_nth(r, n);
    return NULL;
}

const struct ring_event *ring_find(const struct stream_ring *r, int64_t after, int64_t job_id)
{
    size_t low = 0, high = r->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ring_nth(r, middle)->id > after)
            high = middle;
        else
            low = middle + 1;
    }
    return ring_fitting(r, low, job_id);
}

const struct ring_event *ring_next(const struct stream_ring *r, const struct ring_event *event,
                                   int64_t job_id)
{
    size_t place = (size_t)(event - r->events);

    return ring_fitting(r, (place + RING_EVENTS - r->first) % RING_EVENTS + 1, job_id);
}
