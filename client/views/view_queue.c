#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/job.h"
#include "client/views/format.h"
#include "client/views/progress.h"
#include "client/views/screen.h"
#include "client/views/terminal.h"
#include "client/views/view.h"
#include "common/clock.h"
#include "common/json.h"

#define REASON_COLUMNS 20  /* less says nothing */
#define COLUMNS_SPEED  76  /* of a terminal with room for the speed */
#define LIMIT          200 /* jobs of a kind that are asked for */

/* Jobs that run, then those that wait, then those that have ended, the newest first. */
struct queue_view {
    struct view view;
    json_t *live, *ended; /* the daemon's answers, which the jobs borrow from */
    struct job jobs[3 * LIMIT];
    int count, running, queued;
    long long slots, slots_used; /* of all nodes; slots 0: not known */
    long selected;               /* a job's id; 0: none yet */
    int top;                     /* first row shown */
};

/* ---- what comes */

static int view_queue_group(const struct job *job)
{
    return job_ended(job) ? 2 : strcmp(job->state, "queued") == 0 ? 1 : 0;
}

/* Running and ended ones the newest first, waiting ones as they will start. */
static int view_queue_by_group(const void *a, const void *b)
{
    const struct job *x = a, *y = b;
    int group = view_queue_group(x) - view_queue_group(y);

    if (group)
        return group;
    if (view_queue_group(x) == 1) {
        double sx = isnan(x->estimated_start) ? INFINITY : x->estimated_start;
        double sy = isnan(y->estimated_start) ? INFINITY : y->estimated_start;
        if (sx != sy)
            return sx < sy ? -1 : 1;
        return x->id < y->id ? -1 : x->id > y->id;
    }
    return x->id > y->id ? -1 : x->id < y->id;
}

static void view_queue_add_jobs(struct queue_view *v, const json_t *answer)
{
    const json_t *item;
    size_t i;

    json_array_foreach (json_object_get(answer, "jobs"), i, item)
        if (v->count < 3 * LIMIT)
            job_read(item, &v->jobs[v->count++]);
}

/* Best effort: the jobs matter more. */
static void view_queue_read_slots(struct queue_view *v)
{
    struct error ignored;
    json_t *answer;

    if (api_get("/v1/nodes?limit=1", &answer, &ignored))
        return;
    v->slots = json_get_integer(answer, "slots", 0);
    v->slots_used = json_get_integer(answer, "slots_used", 0);
    json_decref(answer);
}

static int view_queue_read(void *context, struct error *e)
{
    struct queue_view *v = context;
    json_t *live, *ended;
    char path[128];

    snprintf(path, sizeof path, "/v1/jobs?limit=%d&state=queued,starting,running,evaluating",
             2 * LIMIT);
    int status = api_get(path, &live, e);
    if (status)
        return status;
    snprintf(path, sizeof path, "/v1/jobs?limit=%d&state=succeeded,failed,cancelled", LIMIT / 4);
    status = api_get(path, &ended, e);
    if (status) {
        json_decref(live);
        return status;
    }
    json_decref(v->live);
    json_decref(v->ended);
    v->live = live;
    v->ended = ended;
    v->count = v->running = v->queued = 0;
    view_queue_add_jobs(v, live);
    view_queue_add_jobs(v, ended);
    qsort(v->jobs, (size_t)v->count, sizeof v->jobs[0], view_queue_by_group);
    for (int i = 0; i < v->count; i++) {
        v->running += view_queue_group(&v->jobs[i]) == 0;
        v->queued += view_queue_group(&v->jobs[i]) == 1;
    }
    view_queue_read_slots(v);
    return VIEW_STAY;
}

static struct job *view_queue_job_of(struct queue_view *v, long id)
{
    for (int i = 0; i < v->count; i++)
        if (v->jobs[i].id == id)
            return &v->jobs[i];
    return NULL;
}

static void view_queue_handle(void *context, const struct stream_event *event)
{
    struct queue_view *v = context;
    struct job *job =
        view_queue_job_of(v, (long)json_integer_value(json_object_get(event->body, "job")));

    if (job)
        job_take_event(job, event->type, event->body);
}

/* ---- keys */

static int view_queue_find(const struct queue_view *v, long id)
{
    for (int i = 0; i < v->count; i++)
        if (v->jobs[i].id == id)
            return i;
    return 0;
}

static void view_queue_move(struct queue_view *v, int by)
{
    int place = view_queue_find(v, v->selected) + by;

    place = place >= v->count ? v->count - 1 : place;
    place = place < 0 ? 0 : place;
    v->selected = v->count ? v->jobs[place].id : 0;
}

/* Another view for a while; its errors are told below this one. */
static int view_queue_open_job(struct queue_view *v)
{
    struct error e;
    int end = view_job(v->selected, true, NULL, &e);

    if (end < 0)
        snprintf(v->view.message, sizeof v->view.message, "%.200s", e.text);
    v->view.stale = true;
    return end == VIEW_SIGNALLED ? VIEW_SIGNALLED : VIEW_STAY;
}

static int view_queue_key(void *context, int key, struct error *e)
{
    struct queue_view *v = context;
    const struct job *selected = view_queue_job_of(v, v->selected);

    (void)e;
    if (view_cancel_key(&v->view, key, v->selected, selected && job_ended(selected)))
        return VIEW_STAY;
    switch (key) {
    case 'q':
        return VIEW_QUIT;
    case SCREEN_UP:
    case 'k':
        view_queue_move(v, -1);
        return VIEW_STAY;
    case SCREEN_DOWN:
    case 'j':
        view_queue_move(v, 1);
        return VIEW_STAY;
    case SCREEN_ENTER:
        return v->selected ? view_queue_open_job(v) : VIEW_STAY;
    default:
        return VIEW_STAY;
    }
}

/* ---- the picture */

static void view_queue_draw_title(const struct queue_view *v)
{
    char text[128];
    int used = snprintf(text, sizeof text, "%d running  %d queued", v->running, v->queued);

    if (v->slots > 0)
        snprintf(text + used, sizeof text - (size_t)used, "  %lld of %lld slots", v->slots_used,
                 v->slots);
    int end = screen_columns() - (int)strlen(text) - 1;
    int column = screen_text(0, 1, end - 2, SCREEN_BOLD, NULL, "queue");
    screen_text(0, column + 2, end - column - 4, SCREEN_DIM, NULL, "%s", client.server);
    screen_text_right(0, screen_columns() - 1, SCREEN_PLAIN, text);
}

/* Where the columns of the table begin; a wide terminal has a bar and more room for names. */
struct layout {
    int name, state, bar, done, top1, speed, left, reason; /* speed, reason 0: no room */
};

static struct layout view_queue_layout_of(int columns)
{
    struct layout l = {.name = 6};
    int name = columns >= 120 ? 28 : columns >= 100 ? 20 : 16, bar = columns >= 100 ? 16 : 0;
    bool speed = columns >= COLUMNS_SPEED;

    if (!speed) /* names have what the other columns leave */
        name = columns >= 62 ? 16 : columns >= 54 ? columns - 46 : 8;
    l.state = l.name + name + 1;
    l.bar = l.state + 11;
    l.done = l.bar + bar + (bar > 0);
    l.top1 = l.done + 6;
    l.speed = speed ? l.top1 + 9 : 0;
    l.left = l.top1 + 9 + (speed ? 14 : 0);
    l.reason = columns >= l.left + 14 + REASON_COLUMNS ? l.left + 14 : 0;
    return l;
}

static void view_queue_draw_heading(const struct layout *l, int row)
{
    screen_text_right(row, l->name - 1, SCREEN_DIM, "ID");
    screen_text(row, l->name, -1, SCREEN_DIM, NULL, "NAME");
    screen_text(row, l->state, -1, SCREEN_DIM, NULL, "STATE");
    screen_text_right(row, l->done + 5, SCREEN_DIM, "DONE");
    screen_text_right(row, l->top1 + 8, SCREEN_DIM, "TOP-1");
    if (l->speed)
        screen_text_right(row, l->speed + 13, SCREEN_DIM, "SPEED");
    screen_text_right(row, l->left + 13, SCREEN_DIM, "LEFT");
    if (l->reason)
        screen_text(row, l->reason, -1, SCREEN_DIM, NULL, "REASON");
}

/* Time left of one that runs, until the start of one that waits, since the end of one that has
 * ended. */
static const char *view_queue_format_time(const struct job *job, char text[FORMAT_BYTES + 16])
{
    char part[FORMAT_BYTES];
    double now = clock_now();

    if (job_ended(job))
        return format_ago(text, FORMAT_BYTES, now - job->finished_at);
    if (isnan(job->estimated_start))
        return format_duration(text, FORMAT_BYTES, job_time_left(job, now).value);
    format_duration(part, sizeof part, fmax(0, job->estimated_start - now));
    snprintf(text, FORMAT_BYTES + 16, "in %s", part);
    return text;
}

static void view_queue_draw_job(const struct queue_view *v, const struct layout *l, int row,
                                const struct job *job)
{
    char text[FORMAT_BYTES + 16], bar[PROGRESS_BAR_BYTES(16)];
    bool selected = job->id == v->selected;
    int style = selected ? SCREEN_REVERSE : SCREEN_PLAIN;

    if (selected)
        screen_text(row, 0, -1, style, NULL, "%*s", screen_columns(), "");
    snprintf(text, sizeof text, "%ld", job->id);
    screen_text_right(row, l->name - 1, style, text);
    screen_text(row, l->name, l->state - l->name - 1, style, NULL, "%s",
                *job->name ? job->name : "-");
    screen_text(row, l->state, 10, style, job_state_color(job->state), "%s", job->state);
    if (l->done > l->bar)
        screen_text(row, l->bar, -1, style, NULL, "%s",
                    progress_bar(bar, sizeof bar, job_progress(job), 16, terminal_utf8()));
    snprintf(text, sizeof text, "%.0f %%", floor(100 * job_progress(job)));
    screen_text_right(row, l->done + 5, style, text);
    screen_text_right(row, l->top1 + 8, style, format_percent(text, sizeof text, job->top1));
    if (l->speed)
        screen_text_right(row, l->speed + 13, style,
                          format_rate(text, sizeof text, job->images_per_sec));
    screen_text_right(row, l->left + 13, style, view_queue_format_time(job, text));
    if (l->reason)
        screen_text(row, l->reason, -1, style, NULL, "%s", job->reason);
}

/* What a narrow terminal has no column for: why the chosen job is as it is. */
static void view_queue_draw_reason(const struct queue_view *v, int row)
{
    const struct job *job = &v->jobs[view_queue_find(v, v->selected)];

    if (v->count && *job->reason)
        screen_text(row, 1, -1, SCREEN_PLAIN, NULL, "job %ld: %s", job->id, job->reason);
}

static void view_queue_draw(void *context)
{
    struct queue_view *v = context;
    struct layout l = view_queue_layout_of(screen_columns());
    int rows = screen_rows() - 5, place;

    view_queue_draw_title(v);
    if (!view_queue_job_of(v, v->selected))
        view_queue_move(v, 0);
    place = view_queue_find(v, v->selected);
    if (place < v->top)
        v->top = place;
    if (place >= v->top + rows)
        v->top = place - rows + 1;
    if (v->count == 0)
        screen_text(2, 1, -1, SCREEN_PLAIN, NULL,
                    "No jobs yet. Submit one with: trainctl submit FILE");
    else
        view_queue_draw_heading(&l, 2);
    for (int i = 0; i < rows && v->top + i < v->count; i++)
        view_queue_draw_job(v, &l, 3 + i, &v->jobs[v->top + i]);
    view_queue_draw_reason(v, screen_rows() - 2);
    view_footer(&v->view, "q quit  up/down choose  enter show the job  c cancel it");
}

/* ---- the view */

int view_queue(struct error *e)
{
    struct queue_view *v = calloc(1, sizeof *v);
    long long newest;

    if (!v)
        abort();
    v->view.context = v;
    v->view.draw = view_queue_draw;
    v->view.take = view_queue_handle;
    v->view.key = view_queue_key;
    v->view.read = view_queue_read;
    int end = stream_newest(&newest, e);
    if (end == 0)
        end = view_queue_read(v, e);
    if (end == VIEW_STAY) {
        v->view.stream = stream_create("/v1/events", newest);
        end = view_run(&v->view, e);
        stream_destroy(v->view.stream);
    }
    json_decref(v->live);
    json_decref(v->ended);
    free(v);
    return end;
}
