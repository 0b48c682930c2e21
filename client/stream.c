#include "client/stream.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "common/clock.h"
#include "common/text.h"
#include "common/xalloc.h"

#define RETRY_MS        1000
#define RETRY_MS_MOST   15000
#define SILENCE_SECONDS 45L /* three times the longest configurable heartbeat interval */

struct stream {
    char path[64];
    CURLM *multi;
    CURL *call; /* NULL: not connected */
    struct curl_slist *headers;
    char words[CURL_ERROR_SIZE];
    struct sse sse;
    json_t *event; /* returned last; borrowed by the caller */
    bool begun;    /* this connection has received a good response */
    bool fed;      /* and an event or heartbeat */
    double next_try;
    double lost_at;
    int failed_tries;
};

struct stream *stream_create(const char *path, long long after)
{
    struct stream *s = xcalloc(1, sizeof *s);

    s->multi = must_alloc(curl_multi_init());
    snprintf(s->path, sizeof s->path, "%s", path);
    sse_init(&s->sse, after, RETRY_MS);
    return s;
}

static void stream_disconnect(struct stream *s)
{
    if (s->call) {
        curl_multi_remove_handle(s->multi, s->call);
        curl_easy_cleanup(s->call);
    }
    curl_slist_free_all(s->headers);
    s->call = NULL;
    s->headers = NULL;
    s->begun = s->fed = false;
    sse_clear(&s->sse);
}

void stream_destroy(struct stream *s)
{
    if (!s)
        return;
    stream_disconnect(s);
    curl_multi_cleanup(s->multi);
    json_decref(s->event);
    free(s);
}

static size_t stream_receive(char *text, size_t size, size_t count, void *context)
{
    struct stream *s = context;
    return sse_add(&s->sse, text, size * count) ? 0 : size * count;
}

static int stream_connect_now(struct stream *s, struct error *e)
{
    char position[64];

    s->headers = curl_slist_append(NULL, "Accept: text/event-stream");
    if (s->sse.id >= 0) {
        snprintf(position, sizeof position, "Last-Event-ID: %lld", s->sse.id);
        s->headers = curl_slist_append(s->headers, position);
    }
    s->call = api_open(s->path, "text/event-stream", &s->headers, s->words, e);
    if (!s->call) {
        stream_disconnect(s);
        return -(int)e->code;
    }
    curl_easy_setopt(s->call, CURLOPT_WRITEFUNCTION, stream_receive);
    curl_easy_setopt(s->call, CURLOPT_WRITEDATA, s);
    curl_easy_setopt(s->call, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(s->call, CURLOPT_LOW_SPEED_TIME, SILENCE_SECONDS);
    curl_multi_add_handle(s->multi, s->call);
    return 0;
}

static bool stream_answered_well(const struct stream *s)
{
    return s->call && api_is_good(s->call);
}

/* Handles the end of the connection. Returns news, or a negative error if it is final. Reconnects
 * silently if the stream had worked: at once if it had delivered data, otherwise after a pause. */
static int stream_has_ended(struct stream *s, CURLcode code, struct error *e)
{
    double now = clock_monotonic();
    bool was_good = s->begun, was_fed = s->fed;
    int status =
        api_outcome(s->call, code, s->path, s->words, s->sse.text.data, s->sse.text.bytes, e);

    stream_disconnect(s);
    if (status == 0)
        status = error_set(e, ERR_UNREACHABLE, "the stream of events ended");
    if (was_good) {
        s->next_try = now + (was_fed ? 0 : (double)s->sse.retry_ms / 1e3);
        return STREAM_NOTHING;
    }
    bool passes = e->code == ERR_UNREACHABLE || e->code == ERR_INTERNAL ||
                  e->code == ERR_TOO_MANY || e->code == ERR_NO_MEMORY || e->code == ERR_IO ||
                  e->code == ERR_BUSY;
    if (!api_has_answered() || !passes)
        return status;
    double pause = (double)s->sse.retry_ms * pow(1.6, s->failed_tries++);
    s->next_try = now + fmin(pause, RETRY_MS_MOST) / 1e3;
    if (s->lost_at > 0 && now - s->lost_at > STREAM_PATIENCE_SECONDS)
        return error_prefix(e, "gave up after %d s", STREAM_PATIENCE_SECONDS);
    if (s->lost_at > 0)
        return STREAM_NOTHING;
    s->lost_at = now;
    return STREAM_LOST;
}

static int stream_perform(struct stream *s, struct error *e)
{
    int running, left, news = STREAM_NOTHING;
    CURLMsg *message;

    if (!s->call && clock_monotonic() >= s->next_try && stream_connect_now(s, e) < 0)
        return -(int)e->code;
    curl_multi_perform(s->multi, &running);
    while ((message = curl_multi_info_read(s->multi, &left)))
        if (message->msg == CURLMSG_DONE && news == STREAM_NOTHING)
            news = stream_has_ended(s, message->data.result, e);
    return news;
}

static int stream_read_news(struct stream *s, struct stream_event *event)
{
    const char *type, *data;

    if (stream_answered_well(s) && !s->begun) {
        bool back = s->lost_at > 0;
        s->begun = true;
        s->lost_at = 0;
        s->failed_tries = 0;
        return back ? STREAM_BACK : STREAM_ALIVE;
    }
    if (!stream_answered_well(s) || !sse_next(&s->sse, &type, &data))
        return STREAM_NOTHING;
    s->fed = true;
    json_decref(s->event);
    s->event = strcmp(type, "heartbeat") == 0 ? NULL : json_loads(data, 0, NULL);
    if (s->event && !client.json)
        text_escape_json(s->event, NULL);
    *event = (struct stream_event){.type = type, .body = s->event};
    return s->event ? STREAM_EVENT : STREAM_ALIVE;
}

static bool stream_wait(struct stream *s, int fd, double until)
{
    struct curl_waitfd extra = {.fd = fd, .events = CURL_WAIT_POLLIN};
    double now = clock_monotonic();
    int active;

    if (!s->call && s->next_try < until)
        until = s->next_try;
    double ms = fmin(fmax(1e3 * (until - now), 0), 60e3);
    curl_multi_poll(s->multi, &extra, fd >= 0, (int)ceil(ms), &active);
    return fd >= 0 && extra.revents;
}

int stream_next(struct stream *s, int fd, double seconds, struct stream_event *event,
                struct error *e)
{
    double until = seconds < 0 ? INFINITY : clock_monotonic() + seconds;

    for (;;) {
        int news = stream_read_news(s, event);
        if (news == STREAM_NOTHING)
            news = stream_perform(s, e);
        if (news == STREAM_NOTHING)
            news = stream_read_news(s, event);
        if (news != STREAM_NOTHING)
            return news;
        if (stream_wait(s, fd, until) || clock_monotonic() >= until)
            return STREAM_NOTHING;
    }
}

void stream_report(int news, const char *meanwhile)
{
    if (news == STREAM_LOST)
        fprintf(stderr, "trainctl: %s does not answer; %strying again\n", client.server, meanwhile);
    else if (news == STREAM_BACK)
        fprintf(stderr, "trainctl: %s is back\n", client.server);
}

int stream_newest(long long *id, struct error *e)
{
    struct stream *s = stream_create("/v1/events", -1);
    struct stream_event event;
    int news = 0;

    while (news >= 0 && s->sse.id < 0) {
        news = stream_next(s, -1, -1, &event, e);
        stream_report(news, "");
    }
    *id = s->sse.id;
    stream_destroy(s);
    return news < 0 ? news : 0;
}

void sse_init(struct sse *sse, long long after, long retry_ms)
{
    *sse = (struct sse){.text = BUFFER(SSE_LIMIT_BYTES),
                        .data = BUFFER(SSE_LIMIT_BYTES),
                        .coming = -1,
                        .id = after,
                        .retry_ms = retry_ms};
}

int sse_add(struct sse *sse, const char *text, size_t bytes)
{
    buffer_drop(&sse->text, sse->from);
    sse->from = 0;
    if (sse->text.bytes + sse->data.bytes + bytes > SSE_LIMIT_BYTES ||
        !buffer_append(&sse->text, text, bytes))
        return -1;
    return 0;
}

static char *stream_next_line(struct sse *sse)
{
    char *line = sse->text.data ? sse->text.data + sse->from : NULL;
    char *end = line ? memchr(line, '\n', sse->text.bytes - sse->from) : NULL;

    if (!end)
        return NULL;
    sse->from = (size_t)(end + 1 - sse->text.data);
    if (end > line && end[-1] == '\r')
        end--;
    *end = '\0';
    return line;
}

static bool stream_parse_field(struct sse *sse, char *line)
{
    char *value = line + strcspn(line, ":");

    if (*value) {
        *value++ = '\0';
        value += *value == ' ';
    }
    if (strcmp(line, "id") == 0)
        sse->coming = strtoll(value, NULL, 10);
    else if (strcmp(line, "event") == 0)
        snprintf(sse->type, sizeof sse->type, "%s", value);
    else if (strcmp(line, "retry") == 0)
        sse->retry_ms = strtol(value, NULL, 10);
    else if (strcmp(line, "data") == 0)
        return (!sse->data.bytes || buffer_append(&sse->data, "\n", 1)) &&
               buffer_append(&sse->data, value, strlen(value));
    return true;
}

int sse_next(struct sse *sse, const char **type, const char **data)
{
    static char type_of_last[sizeof sse->type];
    char *line;

    while ((line = stream_next_line(sse))) {
        if (*line) {
            if (!stream_parse_field(sse, line))
                return 0;
            continue;
        }
        snprintf(type_of_last, sizeof type_of_last, "%s", sse->type);
        *type = type_of_last;
        *data = sse->data.bytes ? sse->data.data : "";
        sse->type[0] = '\0';
        sse->data.bytes = 0;
        if (sse->coming >= 0)
            sse->id = sse->coming;
        sse->coming = -1;
        return 1;
    }
    return 0;
}

void sse_clear(struct sse *sse)
{
    buffer_clear(&sse->text);
    buffer_clear(&sse->data);
    sse_init(sse, sse->id, sse->retry_ms);
}
