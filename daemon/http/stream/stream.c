#include "daemon/http/stream/stream.h"

#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert_always.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "daemon/http/access/token.h"
#include "daemon/http/stream/stream_ring.h"
#include "daemon/store/store_open.h"

#define PAGE_EVENTS   512u /* read from the store at once */
#define PAGE_BYTES    (32u * 1024)
#define RETRY_MS      1000 /* reconnection time sent to clients */
#define CLIENT_BYTES  64
#define LOOK_SECONDS  0.9 /* just below the thread's period of one second */
#define BLOCK_BYTES   (32u * 1024)
#define PENDING_BYTES ((size_t)256 << 20) /* for a page and the largest event */
#define FOLLOW_EVENTS 4096u               /* read at once by the thread */

#define STREAM_MAGIC 0x57bea3e5u

struct stream {
    unsigned magic;
    struct stream *next;
    struct streams *all;
    char client[CLIENT_BYTES];
    int64_t token;                     /* 0: none */
    bool refused;                      /* its token is revoked or expired */
    int64_t job_id, after;             /* after: id of the last event sent or pending */
    struct MHD_Connection *connection; /* suspended while waiting */
    int socket;                        /* socket of the connection; -1: none yet */
    bool waiting;
    bool left;      /* the client has disconnected: no longer counted, ends when woken */
    double sent_at; /* monotonic time of the last data */
    struct buffer
        pending; /* data being sent: the greeting, a page from the store, or a large event */
    size_t pending_from;
};

#define STREAMS_MAGIC 0x57bea3a1u

struct streams {
    unsigned magic;
    struct store *store;
    struct tokens *tokens;
    struct streams_limits limits;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* guards the fields below; taken before microhttpd's locks */
    pthread_cond_t change;
    bool committed, stopping;
    double looked_at; /* monotonic time of the last check for disconnected clients */
    int64_t count;
    struct stream *first;
    struct stream_ring *ring; /* filled while there are streams */
};

/* ---------------------------------------------------------------- waking streams */

/* The functions below require the lock. */
static void stream_wake(struct stream *s)
{
    if (!s->waiting)
        return;
    s->waiting = false;
    MHD_resume_connection(s->connection);
}

static void stream_wake_for_events(struct streams *all)
{
    for (struct stream *s = all->first; s; s = s->next) {
        if (!s->waiting)
            continue;
        if (s->after < all->ring->base || ring_find(all->ring, s->after, s->job_id))
            stream_wake(s);
        else
            s->after = all->ring->head; /* no events for this stream up to there */
    }
}

/* microhttpd does not read suspended connections and would notice only at a heartbeat. */
static bool stream_has_left(struct stream *s)
{
    struct pollfd fd = {.fd = s->socket, .events = POLLRDHUP};

    if (!s->left && s->socket >= 0 && poll(&fd, 1, 0) > 0)
        s->left = true;
    return s->left;
}

static void stream_wake_by_time(struct streams *all, double now)
{
    bool look = now - all->looked_at >= LOOK_SECONDS;

    all->looked_at = look ? now : all->looked_at;
    for (struct stream *s = all->first; s; s = s->next) {
        if (look)
            s->refused = s->token && !tokens_alive(all->tokens, s->token, clock_now());
        if (now - s->sent_at >= (double)all->limits.heartbeat_seconds || s->refused ||
            (look && s->waiting && stream_has_left(s)))
            stream_wake(s);
    }
}

/* ---------------------------------------------------------------- following the store */

static void stream_on_commit(void *context)
{
    struct streams *all = context;

    pthread_mutex_lock(&all->lock);
    all->committed = true;
    pthread_cond_signal(&all->change);
    pthread_mutex_unlock(&all->lock);
}

static bool streams_add_event(void *context, const struct store_event_row *row)
{
    struct streams *all = context;
    size_t bytes;
    char *text = event_text(row, &bytes);

    pthread_mutex_lock(&all->lock);
    if (row->id <= all->ring->head)
        ; /* the ring was reset meanwhile */
    else if (text)
        ring_add(all->ring, row->id, row->job_id, text, bytes);
    else
        ring_reset(all->ring, row->id);
    pthread_mutex_unlock(&all->lock);
    free(text);
    return true;
}

static int64_t stream_ring_head(struct streams *all)
{
    pthread_mutex_lock(&all->lock);
    int64_t head = all->ring->head;
    pthread_mutex_unlock(&all->lock);
    return head;
}

/* If events arrive faster than they can be read, the ring restarts at the newest, and streams read
 * the skipped ones from the store. */
static int streams_follow(struct streams *all, struct error *e)
{
    struct store_event_range range = {.limit = FOLLOW_EVENTS};
    int64_t newest, head = stream_ring_head(all);

    if (store_event_newest(all->store, &newest, e))
        return -(int)e->code;
    if (newest - head > (int64_t)RING_EVENTS) {
        pthread_mutex_lock(&all->lock);
        ring_reset(all->ring, newest);
        pthread_mutex_unlock(&all->lock);
        return 0;
    }
    do {
        range.after = head;
        if (store_event_each(all->store, &range, streams_add_event, all, e))
            return -(int)e->code;
        head = stream_ring_head(all);
    } while (head > range.after && head < newest);
    return 0;
}

static void *streams_run(void *context)
{
    struct streams *all = context;
    struct error e;

    pthread_mutex_lock(&all->lock);
    while (!all->stopping) {
        double until = clock_monotonic() + 1; /* wake up for heartbeats */
        while (!all->committed && !all->stopping && clock_wait(&all->change, &all->lock, until))
            ;
        bool look = all->committed && all->first;
        all->committed = false;
        if (look) {
            pthread_mutex_unlock(&all->lock);
            int status = streams_follow(all, &e);
            pthread_mutex_lock(&all->lock);
            if (status)
                log_warning("streams: cannot read the events: %s", e.text);
            stream_wake_for_events(all);
        }
        stream_wake_by_time(all, clock_monotonic());
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

/* ---------------------------------------------------------------- sending */

static size_t stream_send_pending(struct stream *s, char *buffer, size_t capacity)
{
    size_t bytes = s->pending.bytes - s->pending_from;

    bytes = bytes < capacity ? bytes : capacity;
    memcpy(buffer, s->pending.data + s->pending_from, bytes);
    s->pending_from += bytes;
    if (s->pending_from == s->pending.bytes) {
        buffer_clear(&s->pending);
        s->pending_from = 0;
    }
    return bytes;
}

/* Copies as many whole events as fit; an event larger than the buffer becomes pending. Requires the
 * lock. */
static size_t stream_send_from_ring(struct stream *s, char *buffer, size_t capacity)
{
    const struct stream_ring *ring = s->all->ring;
    const struct ring_event *event = ring_find(ring, s->after, s->job_id);
    size_t bytes = 0;

    for (; event && bytes + event->bytes <= capacity; event = ring_next(ring, event, s->job_id)) {
        memcpy(buffer + bytes, ring->text + event->at, event->bytes);
        bytes += event->bytes;
        s->after = event->id;
    }
    if (!event)
        s->after = ring->head;
    else if (bytes == 0 && buffer_append(&s->pending, ring->text + event->at, event->bytes))
        s->after = event->id;
    return bytes;
}

struct page {
    struct stream *stream;
    size_t events;
    bool failed;
};

static bool stream_add_to_page(void *context, const struct store_event_row *row)
{
    struct page *page = context;
    size_t bytes;
    char *text = event_text(row, &bytes);

    page->failed = !text || !buffer_append(&page->stream->pending, text, bytes);
    free(text);
    if (page->failed)
        return false;
    page->stream->after = row->id;
    page->events++;
    return page->stream->pending.bytes < PAGE_BYTES;
}

/* Reads events no longer in the ring. head: the ring's head before this call; all events up to it
 * are stored. */
static int stream_read_page(struct stream *s, int64_t head)
{
    struct page page = {.stream = s};
    struct store_event_range range = {.job_id = s->job_id, .after = s->after, .limit = PAGE_EVENTS};
    struct error e;

    if (store_event_each(s->all->store, &range, stream_add_to_page, &page, &e))
        return log_warning("streams: cannot read the events: %s", e.text), -1;
    if (page.failed)
        return -1;
    if (page.events < PAGE_EVENTS && s->pending.bytes < PAGE_BYTES && s->after < head)
        s->after = head;
    return 0;
}

/* Sends a heartbeat if it is due, otherwise suspends the connection. Requires the lock. */
static ssize_t stream_read_idle(struct stream *s, char *buffer, size_t capacity, double now)
{
    if (now - s->sent_at >= (double)s->all->limits.heartbeat_seconds) {
        int bytes =
            snprintf(buffer, capacity, "event: heartbeat\ndata: {\"t\":%.3f}\n\n", clock_now());
        s->sent_at = now;
        return bytes > 0 && (size_t)bytes < capacity ? bytes : 0;
    }
    s->waiting = true;
    MHD_suspend_connection(s->connection);
    return 0;
}

/* Requires the lock; releases it while reading the store. */
static ssize_t stream_send_some(struct stream *s, char *buffer, size_t capacity)
{
    struct streams *all = s->all;
    size_t bytes = 0;

    while (!all->stopping && !s->left && !s->refused) {
        if (s->pending.data)
            bytes = stream_send_pending(s, buffer, capacity);
        else if (s->after >= all->ring->base)
            bytes = stream_send_from_ring(s, buffer, capacity);
        if (bytes) {
            s->sent_at = clock_monotonic();
            return (ssize_t)bytes;
        }
        if (s->pending.data)
            continue;
        if (s->after >= all->ring->base)
            return stream_read_idle(s, buffer, capacity, clock_monotonic());
        int64_t head = all->ring->head;
        pthread_mutex_unlock(&all->lock);
        int status = stream_read_page(s, head);
        pthread_mutex_lock(&all->lock);
        if (status)
            return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    return s->left ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
}

static ssize_t stream_read(void *context, uint64_t position, char *buffer, size_t capacity)
{
    struct stream *s = context;

    assert_object(s, STREAM_MAGIC);
    (void)position;
    pthread_mutex_lock(&s->all->lock);
    ssize_t bytes = stream_send_some(s, buffer, capacity);
    pthread_mutex_unlock(&s->all->lock);
    return bytes;
}

/* ---------------------------------------------------------------- one stream */

/* Requires the lock. The ring is not filled while there are no streams. */
static int streams_admit(struct streams *all, struct stream *s, int64_t newest, struct error *e)
{
    char text[64];
    int64_t count = 0;

    if (all->stopping)
        return error_set(e, ERR_UNREACHABLE, "the daemon is being stopped");
    for (struct stream *other = all->first; other; other = other->next)
        count +=
            strncmp(other->client, s->client, CLIENT_BYTES - 1) == 0 && !stream_has_left(other);
    if (count >= all->limits.per_client)
        return error_set(e, ERR_TOO_MANY,
                         "this client already has %lld event streams, which is the limit "
                         "(streams_per_client); close one first",
                         (long long)all->limits.per_client);
    if (!all->first) {
        ring_reset(all->ring, newest);
        all->committed = true; /* for events committed since newest was read */
        pthread_cond_signal(&all->change);
    }
    if (s->after == STREAM_FROM_NOW)
        s->after = newest;
    int bytes =
        snprintf(text, sizeof text, "retry: %d\nid: %lld\n\n", RETRY_MS, (long long)s->after);
    if (!buffer_append(&s->pending, text, (size_t)bytes))
        return error_set(e, ERR_NO_MEMORY, "out of memory for a stream");
    s->next = all->first;
    all->first = s;
    all->count++;
    return 0;
}

int stream_open(struct streams *all, const struct stream_request *request, struct stream **out,
                struct error *e)
{
    int64_t newest;
    struct stream *s = xcalloc(1, sizeof *s);

    assert_object(all, STREAMS_MAGIC);
    *out = NULL;
    *s = (struct stream){.magic = STREAM_MAGIC,
                         .all = all,
                         .token = request->token,
                         .job_id = request->job_id,
                         .after = request->after,
                         .socket = -1,
                         .pending = BUFFER(PENDING_BYTES)};
    snprintf(s->client, sizeof s->client, "%s", request->client);
    s->sent_at = clock_monotonic();
    int status = store_event_newest(all->store, &newest, e);
    if (!status) {
        pthread_mutex_lock(&all->lock);
        status = streams_admit(all, s, newest, e);
        pthread_mutex_unlock(&all->lock);
    }
    if (status) {
        buffer_clear(&s->pending);
        free(s);
        return status;
    }
    *out = s;
    return 0;
}

void stream_close(struct stream *s)
{
    if (!s)
        return;
    assert_object_ends(s, STREAM_MAGIC);
    pthread_mutex_lock(&s->all->lock);
    for (struct stream **at = &s->all->first; *at; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            s->all->count--;
            assert_always(s->all->count >= 0);
            break;
        }
    pthread_mutex_unlock(&s->all->lock);
    buffer_clear(&s->pending);
    free(s);
}

static void stream_close_context(void *context)
{
    stream_close(context);
}

struct MHD_Response *stream_response(struct stream *s, struct MHD_Connection *connection)
{
    assert_object(s, STREAM_MAGIC);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    pthread_mutex_lock(&s->all->lock);
    s->connection = connection;
    s->socket = info ? info->connect_fd : -1;
    pthread_mutex_unlock(&s->all->lock);
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, stream_read, s,
                                             stream_close_context);
}

/* ---------------------------------------------------------------- all streams */

int streams_create(struct store *store, struct tokens *tokens, const struct streams_limits *limits,
                   struct streams **out, struct error *e)
{
    struct streams *all = xcalloc(1, sizeof *all);

    *out = NULL;
    if (!(all->ring = malloc(sizeof *all->ring))) { /* larger than 4 MiB */
        free(all);
        return error_set(e, ERR_NO_MEMORY, "out of memory for streams");
    }
    all->magic = STREAMS_MAGIC;
    all->store = store;
    all->tokens = tokens;
    all->limits = *limits;
    ring_reset(all->ring, 0);
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->change, NULL);
    if (pthread_create(&all->thread, NULL, streams_run, all)) {
        streams_destroy(all);
        return error_set(e, ERR_NO_MEMORY, "cannot create a thread for streams");
    }
    all->has_thread = true;
    store_on_commit(store, stream_on_commit, all);
    *out = all;
    return 0;
}

void streams_stop(struct streams *all)
{
    if (!all || !all->has_thread)
        return;
    store_on_commit(all->store, NULL, all);
    pthread_mutex_lock(&all->lock);
    all->stopping = true;
    pthread_cond_signal(&all->change);
    for (struct stream *s = all->first; s; s = s->next)
        stream_wake(s);
    pthread_mutex_unlock(&all->lock);
    pthread_join(all->thread, NULL);
    all->has_thread = false;
}

void streams_destroy(struct streams *all)
{
    if (!all)
        return;
    assert_object_ends(all, STREAMS_MAGIC);
    streams_stop(all);
    pthread_cond_destroy(&all->change);
    pthread_mutex_destroy(&all->lock);
    free(all->ring);
    free(all);
}

int64_t streams_count(struct streams *all)
{
    assert_object(all, STREAMS_MAGIC);
    pthread_mutex_lock(&all->lock);
    int64_t count = all->count;
    pthread_mutex_unlock(&all->lock);
    return count;
}
