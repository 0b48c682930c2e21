#include <stdio.h>
#include <string.h>

#include "client/cmd.h"
#include "client/cmd/watch.h"
#include "client/follow.h"
#include "client/stream.h"
#include "client/views/print.h"
#include "client/views/view.h"

/* The news of all jobs: under --json each event as it came, steps too. */
static void watch_queue_print_event(const struct stream_event *event)
{
    char words[512];

    if (client.json) {
        print_json_line(stdout, event->body);
    } else if (view_event_words(event, words, sizeof words)) {
        char *rest = strchr(words, ' ');
        printf("%.*s  job %lld %s\n", (int)(rest - words), words,
               (long long)json_integer_value(json_object_get(event->body, "job")), rest + 2);
    }
    fflush(stdout);
}

int watch_queue(void)
{
    struct stream *stream = stream_create("/v1/events", -1);
    struct stream_event event;
    struct error e;
    int news = 0;

    follow_on_interrupt();
    while (!ferror(stdout) && (news = stream_next(stream, -1, -1, &event, &e)) >= 0) {
        if (news == STREAM_EVENT)
            watch_queue_print_event(&event);
        stream_report(news, "");
    }
    stream_destroy(stream);
    return news < 0 ? cmd_fail(&e) : 0; /* main tells that the output is lost */
}
