/* Full-screen views of `trainctl watch`: one job, or the queue. They follow the daemon's event
 * stream, and poll every few seconds at most for what the stream does not report. Requires an open
 * screen (screen_open). */
#pragma once

#include <stdbool.h>

#include "client/stream.h"

enum view_end {
    VIEW_STAY,     /* the view continues */
    VIEW_QUIT,     /* q */
    VIEW_BACK,     /* q or Esc in a view opened from another */
    VIEW_DONE,     /* the job has ended */
    VIEW_SIGNALLED /* screen_signal() */
};

struct local;

/* Shows a job until it ends or, with stay, until a key closes the view. local: show that run of
 * trainctl itself instead of a job of the daemon. Negative: *e. */
int view_job(long id, bool stay, struct local *local, struct error *e);

int view_queue(struct error *e);

/* Whether events of this type come with each step, and are shown only if asked for. */
bool view_event_is_frequent(const char *type);

/* Formats as "14:03:01  checkpoint, step 1200". Returns false if the event is not worth a line. */
bool view_event_words(const struct stream_event *event, char *text, size_t bytes);
