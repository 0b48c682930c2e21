/*
 * Opens many streams of events and counts, for tests/api/http/stream.sh and tests/bench/streams.sh:
 *
 *   stream_client PORT PATH STREAMS DEAF QUIET_SECONDS
 *
 * DEAF further streams are opened and never read. Ends QUIET_SECONDS after the last event, or on
 * SIGUSR1 once each stream had two more heartbeats: a daemon sends what is stored before it. Prints
 * one line for each stream that is read: events, the sum of their ids, ids that did not rise,
 * heartbeats, "open" or "closed".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"

enum part { HEAD, CHUNK_SIZE, CHUNK, CHUNK_END };

struct reader {
    int fd;
    enum part part;
    size_t left; /* of the chunk */
    char line[1024];
    size_t length; /* of the line so far, which may be longer than what is kept */
    long long events, sum, disorder, heartbeats, last_id, id;
    long long enough; /* heartbeats, once it is told to end */
    bool closed, is_event;
};

static double heard_at;
static volatile sig_atomic_t told;

static void be_told(int number)
{
    (void)number;
    told = 1;
}

static void end_of_event(struct reader *r)
{
    if (r->is_event) {
        r->events++;
        r->sum += r->id;
        r->disorder += r->id <= r->last_id;
        r->last_id = r->id;
        heard_at = clock_monotonic();
    }
    r->is_event = false;
}

static void body_line(struct reader *r)
{
    if (r->length == 0)
        end_of_event(r);
    else if (strncmp(r->line, "id: ", 4) == 0)
        r->id = atoll(r->line + 4);
    else if (strcmp(r->line, "event: heartbeat") == 0)
        r->heartbeats++;
    else if (strncmp(r->line, "data: {\"id\"", 11) == 0)
        r->is_event = true;
}

static void frame_line(struct reader *r)
{
    if (r->part == HEAD && r->length == 0) {
        r->part = CHUNK_SIZE;
    } else if (r->part == CHUNK_SIZE) {
        r->left = strtoul(r->line, NULL, 16);
        r->part = CHUNK;
    } else if (r->part == CHUNK_END) {
        r->part = CHUNK_SIZE;
    }
}

/* The line of the body may go on over chunks; those of the framing have their own place. */
static void take_byte(struct reader *r, struct reader *frame, char byte)
{
    struct reader *line = r->part == CHUNK ? r : frame;
    bool body = r->part == CHUNK;

    if (byte != '\n') {
        if (byte != '\r' && line->length < sizeof line->line - 1)
            line->line[line->length++] = byte;
    } else {
        line->line[line->length] = '\0';
        if (body) {
            body_line(r);
        } else {
            frame->part = r->part;
            frame_line(frame);
            r->part = frame->part;
            r->left = frame->left;
        }
        line->length = 0;
    }
    if (body && --r->left == 0)
        r->part = CHUNK_END;
}

static int dial(const char *port, const char *path)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    char request[512];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int bytes =
        snprintf(request, sizeof request,
                 "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) ||
        write(fd, request, (size_t)bytes) != bytes) {
        perror("stream_client");
        exit(1);
    }
    return fd;
}

/* Whether there was something. */
static bool read_some(struct reader *r, struct reader *frame)
{
    char buffer[65536];
    ssize_t n = recv(r->fd, buffer, sizeof buffer, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    for (ssize_t i = 0; i < n; i++)
        take_byte(r, frame, buffer[i]);
    if (n <= 0) {
        close(r->fd);
        r->closed = true;
    }
    return n > 0;
}

/* Heartbeats that lie unread may be older than what was stored before the signal. */
static int empty(struct reader *readers, struct reader *frames, int count)
{
    int open = 0;
    for (int i = 0; i < count; i++) {
        while (!readers[i].closed && read_some(&readers[i], &frames[i]))
            ;
        readers[i].enough = readers[i].heartbeats + 2;
        open += !readers[i].closed;
    }
    return open;
}

static bool have_enough(const struct reader *readers, int count)
{
    for (int i = 0; i < count; i++)
        if (!readers[i].closed && readers[i].heartbeats < readers[i].enough)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    int count = atoi(argv[3]), deaf = atoi(argv[4]), open = count;
    double quiet = atof(argv[5]);
    struct reader *readers = calloc((size_t)count, sizeof *readers);
    struct reader *frames = calloc((size_t)count, sizeof *frames);
    int poll = epoll_create1(EPOLL_CLOEXEC);
    bool emptied = false;

    signal(SIGUSR1, be_told);
    for (int i = 0; i < deaf; i++)
        dial(argv[1], argv[2]);
    for (int i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        readers[i].fd = dial(argv[1], argv[2]);
        epoll_ctl(poll, EPOLL_CTL_ADD, readers[i].fd, &event);
    }
    heard_at = clock_monotonic();
    while ((open || !count) && clock_monotonic() - heard_at < quiet) {
        struct epoll_event events[64];
        if (told && !emptied) {
            open = empty(readers, frames, count);
            emptied = true;
        }
        if (emptied && have_enough(readers, count))
            break;
        int n = epoll_wait(poll, events, 64, 100);
        for (int i = 0; i < n; i++) {
            struct reader *r = &readers[events[i].data.u32];
            read_some(r, &frames[events[i].data.u32]);
            open -= r->closed;
        }
    }
    for (int i = 0; i < count; i++)
        printf("%lld %lld %lld %lld %s\n", readers[i].events, readers[i].sum, readers[i].disorder,
               readers[i].heartbeats, readers[i].closed ? "closed" : "open");
    return 0;
}
