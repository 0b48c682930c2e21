#include "client/views/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/job.h"
#include "client/local.h"
#include "client/views/format.h"
#include "client/views/screen.h"
#include "common/clock.h"
#include "common/json.h"

#define DRAW_SECONDS  0.1 /* between two pictures, however fast events come */
#define TICK_SECONDS  1.0 /* clocks go on */
#define READ_SECONDS  0.3 /* after a change of state: others may follow */
#define STALE_SECONDS 3.0 /* after a step: the time left has moved */

/* ---- the loop */

static void view_draw(struct view *v)
{
    screen_clear();
    v->draw(v->context);
    screen_show();
    v->dirty = false;
    v->drawn_at = clock_monotonic();
}

/* All keys that were pressed. */
static int view_take_keys(struct view *v, struct error *e)
{
    int key, end = VIEW_STAY;

    while (end == VIEW_STAY && (key = screen_key()) != SCREEN_NO_KEY) {
        v->dirty = true;
        if (key == SCREEN_SIGNAL)
            return VIEW_SIGNALLED;
        if (key != SCREEN_RESIZE) {
            v->message[0] = '\0';
            end = v->key(v->context, key, e);
        }
    }
    return end;
}

/* Only the stream says that the daemon is away: what is asked in between may fail. */
static int view_read_again(struct view *v, struct error *e)
{
    v->stale = false;
    v->read_at = clock_monotonic();
    v->dirty = true;
    int end = v->read(v->context, e);
    v->stale = end == -(int)ERR_UNREACHABLE;
    return v->stale ? VIEW_STAY : end;
}

static void view_take_news(struct view *v, int news, const struct stream_event *event)
{
    bool state = news == STREAM_EVENT && strcmp(event->type, "state") == 0;

    if (news == STREAM_LOST || news == STREAM_BACK) {
        v->lost = news == STREAM_LOST;
        v->dirty = true;
    }
    if (news == STREAM_BACK || state) {
        v->read_at = fmin(v->read_at, clock_monotonic() - STALE_SECONDS + READ_SECONDS);
        v->stale = true;
    }
    if (news == STREAM_EVENT) {
        v->take(v->context, event);
        v->stale = v->dirty = true;
    }
}

static double view_seconds_to_wait(const struct view *v)
{
    double now = clock_monotonic();
    double wait = v->drawn_at + (v->dirty ? DRAW_SECONDS : TICK_SECONDS) - now;

    if (v->stale && !v->lost)
        wait = fmin(wait, v->read_at + STALE_SECONDS - now);
    return fmax(wait, 0);
}

int view_run(struct view *v, struct error *e)
{
    struct stream_event event;
    int end = VIEW_STAY;

    view_draw(v);
    v->read_at = clock_monotonic();
    while (end == VIEW_STAY) {
        double wait = view_seconds_to_wait(v);
        int news = v->local ? local_next(v->local, screen_fd(), wait, &event)
                            : stream_next(v->stream, screen_fd(), wait, &event, e);
        if (news < 0)
            return news;
        view_take_news(v, news, &event);
        end = view_take_keys(v, e);
        double now = clock_monotonic();
        if (end == VIEW_STAY && v->stale && !v->lost && now >= v->read_at + STALE_SECONDS)
            end = view_read_again(v, e);
        if (now >= v->drawn_at + (v->dirty ? DRAW_SECONDS : TICK_SECONDS))
            view_draw(v);
    }
    return end;
}

/* ---- cancelling */

static void view_cancel(struct view *v)
{
    char path[64];
    struct error e;
    json_t *answer;

    if (v->local) {
        local_stop(v->local);
        snprintf(v->message, sizeof v->message, "stopping after this step");
        return;
    }
    snprintf(path, sizeof path, "/v1/jobs/%ld/cancel", v->confirm);
    if (api_post(path, NULL, 0, &answer, &e) < 0) {
        snprintf(v->message, sizeof v->message, "%.200s", e.text);
        return;
    }
    json_decref(answer);
    snprintf(v->message, sizeof v->message, "job %ld is being cancelled", v->confirm);
    v->stale = true;
}

bool view_cancel_key(struct view *v, int key, long id, bool ended)
{
    if (v->confirm) {
        if (key == 'y' || key == 'Y')
            view_cancel(v);
        v->confirm = 0;
        return true;
    }
    if (key != 'c' || id < 1)
        return false;
    if (ended)
        snprintf(v->message, sizeof v->message, "job %ld has already ended", id);
    else
        v->confirm = id;
    return true;
}

void view_footer(const struct view *v, const char *keys)
{
    int row = screen_rows() - 1, columns = screen_columns();
    const char *link = v->lost ? "no answer, trying again" : "live";
    int end = columns - (int)strlen(link) - 1;

    if (v->confirm)
        screen_text(row, 1, end - 2, SCREEN_BOLD, "red",
                    v->local ? "stop the training?  y yes  any other key no"
                             : "cancel job %ld?  y yes  any other key no",
                    v->confirm);
    else if (*v->message)
        screen_text(row, 1, end - 2, SCREEN_BOLD, NULL, "%s", v->message);
    else
        screen_text(row, 1, end - 2, SCREEN_DIM, NULL, "%s", keys);
    screen_text(row, end, -1, v->lost ? SCREEN_BOLD : SCREEN_PLAIN, v->lost ? "red" : "green", "%s",
                link);
}

/* ---- events in words */

static void view_format_step(char *text, size_t bytes, const json_t *body)
{
    size_t used = strlen(text);

    if (json_get_number(body, "step", NAN) > 0)
        snprintf(text + used, bytes - used, " at step %.0f", json_get_number(body, "step", NAN));
}

static void view_eval_words(const json_t *body, char *text, size_t bytes)
{
    char top1[FORMAT_BYTES], top5[FORMAT_BYTES];
    size_t used = strlen(text);

    snprintf(text + used, bytes - used, ": top-1 %s, top-5 %s",
             format_percent(top1, sizeof top1, json_get_number(body, "top1", NAN)),
             format_percent(top5, sizeof top5, json_get_number(body, "top5", NAN)));
}

bool view_event_words(const struct stream_event *event, char *text, size_t bytes)
{
    const json_t *body = event->body;
    const char *type = event->type, *words = json_get_text(body, "message", "");
    time_t t = (time_t)json_get_number(body, "t", NAN);
    struct tm local;

    if (strcmp(type, "step") == 0 || strcmp(type, "eval_progress") == 0)
        return false;
    localtime_r(&t, &local);
    size_t used = strftime(text, bytes, "%H:%M:%S  ", &local);
    if (strcmp(type, "state") == 0) {
        const char *by = json_get_text(body, "by", "");
        words = json_get_text(body, "reason", "");
        snprintf(text + used, bytes - used, *by ? "%s (by %s)" : "%s",
                 json_get_text(body, "state", ""), by);
    } else {
        if (strcmp(type, "failed") == 0)
            words = json_get_text(body, "reason", "");
        snprintf(text + used, bytes - used, "%s", type);
        for (char *c = text + used; (c = strchr(c, '_'));)
            *c = ' ';
        view_format_step(text, bytes, body);
    }
    used = strlen(text);
    if (*words)
        snprintf(text + used, bytes - used, ": %s", words);
    else if (strcmp(type, "eval") == 0)
        view_eval_words(body, text, bytes);
    else if (strcmp(type, "straggler") == 0) /* an older worker's, without a message */
        snprintf(text + used, bytes - used, ": rank %.0f on %s, %.0f ms of %s instead of %.0f",
                 json_get_number(body, "rank", NAN), json_get_text(body, "host", ""),
                 json_get_number(body, "busy_ms", NAN), json_get_text(body, "phase", ""),
                 json_get_number(body, "median_ms", NAN));
    for (char *c = text; *c; c++) /* a worker's log may steer terminals, and have lines */
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = ' ';
    return true;
}
