/*
 * Full-screen views of `trainctl watch`: one job, or the queue. They follow the daemon's live
 * stream and ask for what it does not tell behind an event, at most every few seconds.
 */
#pragma once

#include <stdbool.h>

#include "client/stream.h"

/* How a view ended. */
enum view_end {
    VIEW_STAY,     /* not at all */
    VIEW_QUIT,     /* q */
    VIEW_BACK,     /* q or Esc in a view that was opened by another */
    VIEW_DONE,     /* the job has ended */
    VIEW_SIGNALLED /* screen_signal() */
};

struct local;

/* Shows a job until it ends (stay: until a key ends the view), or without an id the one that
 * trainctl runs itself. screen_open was called. Negative: *e. */
int view_job(long id, bool stay, struct local *local, struct error *e);

/* Shows the queue until a key ends it. */
int view_queue(struct error *e);

/* ---- what the views share: view.c */

struct view {
    void *context;
    struct stream *stream;
    void (*draw)(void *context);
    void (*take)(void *context, const struct stream_event *event);
    int (*key)(void *context, int key, struct error *e); /* a view_end */
    /* Asks the daemon again; a view_end, or -code with *e. */
    int (*read)(void *context, struct error *e);

    bool lost;           /* the daemon is away */
    bool stale;          /* something happened that only the daemon can tell */
    bool dirty;          /* to be drawn */
    double read_at;      /* clock_monotonic */
    double drawn_at;     /* clock_monotonic */
    struct local *local; /* what trainctl runs itself; NULL: a job of the daemon's */
    long confirm;        /* the job that is to be cancelled, if the next key is y; 0: none */
    char message[256];   /* in the last row, until the next key */
};

/* Until it ends; a view_end, or negative with *e. */
int view_run(struct view *view, struct error *e);

/* Keys that both have: c asks, y cancels. True: it was one. */
bool view_cancel_key(struct view *view, int key, long id, bool ended);

/* The last row: the keys, or a question, or a message; and whether the daemon answers. */
void view_footer(const struct view *view, const char *keys);

/* "14:03:01  checkpoint, step 1200": an event in words; false: it is not worth a line. */
bool view_event_words(const struct stream_event *event, char *text, size_t bytes);
