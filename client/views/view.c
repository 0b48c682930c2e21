#include "client/views/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/follow.h"
#include "client/job.h"
#include "client/local.h"
#include "client/views/format.h"
#include "client/views/plot.h"
#include "client/views/progress.h"
#include "client/views/screen.h"
#include "client/views/print.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/run/attempt.h"
#include "common/xalloc.h"

#define DRAW_SECONDS  0.1
#define TICK_SECONDS  1.0
#define READ_SECONDS  0.3 /* after a change of state, because others may follow */
#define STALE_SECONDS 3.0 /* age at which the time left is read again after a step */

struct view {
    void *context;
    struct stream *stream;
    struct local *local; /* run of trainctl itself; NULL: a job of the daemon */
    void (*draw)(void *context);
    void (*take)(void *context, const struct stream_event *event);
    int (*key)(void *context, int key); /* returns a view_end */
    int (*read)(void *context,
                struct error *e); /* polls the daemon; returns a view_end, or -code */

    bool lost;
    bool stale; /* something happened that the stream does not report */
    bool dirty;
    double read_at, drawn_at;
    long confirm; /* job to cancel if the next key is y; 0: none */
    char message[256];
};

static void view_draw(struct view *v)
{
    screen_clear();
    v->draw(v->context);
    screen_show();
    v->dirty = false;
    v->drawn_at = clock_monotonic();
}

static int view_take_keys(struct view *v)
{
    int key, end = VIEW_STAY;

    while (end == VIEW_STAY && (key = screen_key()) != SCREEN_NO_KEY) {
        v->dirty = true;
        if (key == SCREEN_SIGNAL)
            return VIEW_SIGNALLED;
        if (key != SCREEN_RESIZE) {
            v->message[0] = '\0';
            end = v->key(v->context, key);
        }
    }
    return end;
}

/* Only the stream decides that the daemon is lost, so a failed poll is not an error. */
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

static int view_run(struct view *v, struct error *e)
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
        end = view_take_keys(v);
        double now = clock_monotonic();
        if (end == VIEW_STAY && v->stale && !v->lost && now >= v->read_at + STALE_SECONDS)
            end = view_read_again(v, e);
        if (now >= v->drawn_at + (v->dirty ? DRAW_SECONDS : TICK_SECONDS))
            view_draw(v);
    }
    return end;
}

static bool view_cancel_key(struct view *v, int key, long id, bool ended)
{
    if (v->confirm) {
        struct error e;
        json_t *answer;
        bool yes = key == 'y' || key == 'Y';
        if (yes && v->local) {
            local_stop(v->local);
            snprintf(v->message, sizeof v->message, "stopping after this step");
        } else if (yes && api_call("POST", &answer, &e, "/v1/jobs/%ld/cancel", v->confirm)) {
            snprintf(v->message, sizeof v->message, "%.200s", e.text);
        } else if (yes) {
            json_decref(answer);
            snprintf(v->message, sizeof v->message, "job %ld is being cancelled", v->confirm);
            v->stale = true;
        }
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

static void view_footer(const struct view *v, const char *keys)
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

bool view_event_is_frequent(const char *type)
{
    enum event_type of = event_type_of(type);

    return of == EVENT_STEP || of == EVENT_EVAL_PROGRESS || of == EVENT_CONFUSION;
}

bool view_event_words(const struct stream_event *event, char *text, size_t bytes)
{
    const json_t *body = event->body;
    const char *type = event->type, *words = json_get_text(body, "message", "");
    time_t t = (time_t)json_get_number(body, "t", NAN);
    double step = json_get_number(body, "step", NAN);
    char top1[FORMAT_BYTES], top5[FORMAT_BYTES];
    struct tm local;

    if (view_event_is_frequent(type))
        return false;
    localtime_r(&t, &local);
    size_t used = strftime(text, bytes, "%H:%M:%S  ", &local);
    if (strcmp(type, "state") == 0) {
        const char *by = json_get_text(body, "by", "");
        words = json_get_text(body, "reason", "");
        snprintf(text + used, bytes - used, *by ? "%s (by %s)" : "%s",
                 json_get_text(body, "state", ""), by);
    } else {
        if (strcmp(type, "failed") == 0 || strcmp(type, "run_stop") == 0)
            words = json_get_text(body, "reason", "");
        snprintf(text + used, bytes - used, "%s", type);
        for (char *c = text + used; (c = strchr(c, '_'));)
            *c = ' ';
        used = strlen(text);
        if (step > 0)
            snprintf(text + used, bytes - used, " at step %.0f", step);
    }
    used = strlen(text);
    if (*words)
        snprintf(text + used, bytes - used, ": %s", words);
    else if (strcmp(type, "eval") == 0)
        snprintf(text + used, bytes - used, ": top-1 %s, top-5 %s%s",
                 format_percent(top1, sizeof top1, json_get_number(body, "top1", NAN)),
                 format_percent(top5, sizeof top5, json_get_number(body, "top5", NAN)),
                 json_is_true(json_object_get(body, "best")) ? ", the best so far" : "");
    else if (strcmp(type, "straggler") == 0) /* older workers send no message */
        snprintf(text + used, bytes - used, ": rank %.0f on %s, %.0f ms of %s instead of %.0f",
                 json_get_number(body, "rank", NAN), json_get_text(body, "host", ""),
                 json_get_number(body, "busy_ms", NAN), json_get_text(body, "phase", ""),
                 json_get_number(body, "median_ms", NAN));
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = ' ';
    return true;
}

#define POINTS_MAX   2048 /* per curve; when full, pairs are averaged */
#define POINTS_ASKED 512
#define NEWS_MAX     64
#define NEWS_BACK    2000
#define CURVE_ROWS   3

struct curve {
    double x[POINTS_MAX], y[POINTS_MAX];
    size_t count;
};

struct job_view {
    struct view view;
    long id;
    bool stay; /* remain after the job has ended */
    json_t *json;
    struct job job;
    struct curve loss, rate;
    char news[NEWS_MAX][256];
    size_t news_count;
};

static void view_job_curve_add(struct curve *c, double x, double y)
{
    if (isnan(x) || isnan(y) || (c->count && x <= c->x[c->count - 1]))
        return;
    if (c->count == POINTS_MAX) {
        c->count /= 2;
        for (size_t i = 0; i < c->count; i++) {
            c->x[i] = (c->x[2 * i] + c->x[2 * i + 1]) / 2;
            c->y[i] = (c->y[2 * i] + c->y[2 * i + 1]) / 2;
        }
    }
    c->x[c->count] = x;
    c->y[c->count++] = y;
}

static void view_job_curve_read(struct curve *c, const json_t *answer, const char *name)
{
    const json_t *steps = json_object_get(answer, "step"), *values = json_object_get(answer, name);
    const json_t *step;
    size_t i;

    json_array_foreach (steps, i, step) {
        const json_t *value = json_array_get(values, i);
        if (json_is_number(value))
            view_job_curve_add(c, json_number_value(step), json_number_value(value));
    }
}

static void view_job_read_curves(struct job_view *v)
{
    struct error e;
    json_t *answer;

    if (api_call("GET", &answer, &e, "/v1/jobs/%ld/metrics?names=loss,images_per_sec&points=%d",
                 v->id, POINTS_ASKED))
        return; /* the stream brings newer points */
    view_job_curve_read(&v->loss, answer, "loss");
    view_job_curve_read(&v->rate, answer, "images_per_sec");
    json_decref(answer);
}

static int view_job_read(void *context, struct error *e)
{
    struct job_view *v = context;
    json_t *json;
    struct job job;
    int status = 0;

    if (!v->view.local)
        status = job_fetch(v->id, &json, &job, e);
    else
        job_read(json = json_deep_copy(v->view.local->job), &job);
    if (status)
        return status;
    json_decref(v->json);
    v->json = json;
    v->job = job;
    follow_keep_job(&job);
    return job_ended(&job) && !v->stay ? VIEW_DONE : VIEW_STAY;
}

static void view_job_handle(void *context, const struct stream_event *event)
{
    struct job_view *v = context;

    if (view_event_words(event, v->news[v->news_count % NEWS_MAX], sizeof v->news[0]))
        v->news_count++;
    double step = json_number_value(json_object_get(event->body, "step"));
    if (!(step < v->job.step)) /* events older than the polled state are repeated */
        job_take_event(&v->job, event->type, event->body);
    if (strcmp(event->type, "step") != 0)
        return;
    view_job_curve_add(&v->loss, step, json_number_value(json_object_get(event->body, "loss")));
    view_job_curve_add(&v->rate, step,
                       json_number_value(json_object_get(event->body, "images_per_sec")));
}

static int view_job_key(void *context, int key)
{
    struct job_view *v = context;
    if (v->view.local && key == 'q')
        key = 'c';
    if (view_cancel_key(&v->view, key, v->view.local ? 1 : v->id, job_ended(&v->job)))
        return VIEW_STAY;
    if (key == 'q')
        return v->stay ? VIEW_BACK : VIEW_QUIT;
    if (key == SCREEN_ESCAPE && v->stay)
        return VIEW_BACK;
    return VIEW_STAY;
}

static int view_job_draw_title(const struct job_view *v, int row)
{
    const struct job *job = &v->job;
    int columns = screen_columns();
    int state = columns - (int)strlen(job->state) - 1;
    int column = screen_text(row, 1, state - 2, SCREEN_BOLD, NULL, job->id ? "job %ld" : "training",
                             job->id);

    screen_text(row, column + 2, state - column - 3, SCREEN_PLAIN, NULL, "%s", job->name);
    screen_text(row, state, -1, SCREEN_BOLD, job_state_color(job->state), "%s", job->state);
    return row + 1;
}

static int view_job_draw_progress(const struct job_view *v, int row)
{
    const struct job *job = &v->job;
    char done[JOB_DONE_BYTES], words[JOB_DONE_BYTES + 16], bar[PROGRESS_BAR_BYTES(512)];
    int columns = screen_columns();

    if (!(job->train_steps > 0) && !job_evaluates_only(job))
        return row;
    snprintf(words, sizeof words, "%3.0f %%  %s", floor(100 * job_progress(job)),
             job_done_words(done, sizeof done, job));
    int width = columns - (int)strlen(words) - 4;
    if (width > 512)
        width = 512;
    if (width >= 10) {
        progress_bar(bar, sizeof bar, job_progress(job), width, terminal_utf8());
        screen_text(row, 1, -1, SCREEN_PLAIN, job_state_color(job->state), "%s", bar);
    }
    screen_text_right(row, columns - 1, SCREEN_PLAIN, words);
    return row + 1;
}

struct pairs {
    int row, column;
};

static void view_job_pair(struct pairs *p, const char *name, const char *value)
{
    int width = (int)(strlen(name) + 1 + strlen(value));

    if (!*value || strcmp(value, "-") == 0)
        return;
    if (p->column > 1 && p->column + width > screen_columns() - 1) {
        p->row++;
        p->column = 1;
    }
    p->column = screen_text(p->row, p->column, -1, SCREEN_DIM, NULL, "%s ", name);
    p->column = screen_text(p->row, p->column, -1, SCREEN_BOLD, NULL, "%s", value) + 3;
}

static int view_job_draw_numbers(const struct job_view *v, int row)
{
    const struct job *job = &v->job;
    struct pairs p = {row, 1};
    char text[JOB_LEFT_BYTES];
    double now = clock_now();
    double end = isnan(job->finished_at) ? now : job->finished_at;

    view_job_pair(&p, "time left", job_left_words(text, sizeof text, job_time_left(job, now)));
    if (!isnan(job->estimated_start))
        view_job_pair(&p, "starts in",
                      format_duration(text, sizeof text, fmax(0, job->estimated_start - now)));
    view_job_pair(&p, "running for", format_duration(text, sizeof text, end - job->started_at));
    view_job_pair(&p, "speed", format_rate(text, sizeof text, job->images_per_sec));
    view_job_pair(&p, "loss", format_number(text, sizeof text, job->loss));
    view_job_pair(&p, "epoch", format_number(text, sizeof text, job->epoch));
    view_job_pair(&p, "learning rate", format_number(text, sizeof text, job->lr));
    view_job_pair(&p, "top-1", format_percent(text, sizeof text, job->top1));
    view_job_pair(&p, "top-5", format_percent(text, sizeof text, job->top5));
    view_job_pair(&p, job_time_label(job), format_duration(text, sizeof text, job->ttt_seconds));
    return p.column > 1 ? p.row + 1 : p.row;
}

static int view_job_draw_spark(const char *name, const struct plot_points *points, int row)
{
    char line[PLOT_SPARK_BYTES(1024)];
    int width = screen_columns() - 12 < 1024 ? screen_columns() - 12 : 1024;

    screen_text(row, 1, 10, SCREEN_DIM, NULL, "%s", name);
    if (width > 0)
        screen_text(row, 11, -1, SCREEN_PLAIN, NULL, "%s",
                    plot_spark(line, sizeof line, points, width, terminal_utf8()));
    return row + 1;
}

static int view_job_draw_curve(const char *name, const struct curve *curve, int row, int rows)
{
    struct plot_points points = {curve->x, curve->y, curve->count};
    struct plot *plot = NULL;
    const char *line;

    if (rows > CURVE_ROWS)
        plot = plot_create(&points, screen_columns() - 2, rows - 1, terminal_utf8());
    if (!plot)
        return view_job_draw_spark(name, &points, row);
    screen_text(row++, 1, -1, SCREEN_DIM, NULL, "%s", name);
    for (int i = 0; (line = plot_line(plot, i)); i++)
        screen_text(row++, 1, -1, SCREEN_PLAIN, NULL, "%s", line);
    plot_destroy(plot);
    return row;
}

static void view_job_draw_news(const struct job_view *v, int row, int rows)
{
    size_t have = v->news_count < NEWS_MAX ? v->news_count : NEWS_MAX;
    size_t shown = rows > 0 ? (size_t)rows : 0;

    if (shown > have)
        shown = have;
    for (size_t i = 0; i < shown; i++)
        screen_text(row + (int)i, 1, -1, SCREEN_PLAIN, NULL, "%s",
                    v->news[(v->news_count - shown + i) % NEWS_MAX]);
}

static void view_job_draw(void *context)
{
    const struct job_view *v = context;
    int rows = screen_rows();
    int row = view_job_draw_title(v, 0);

    if (*v->job.reason)
        screen_text(row++, 1, -1, SCREEN_PLAIN, NULL, "%s", v->job.reason);
    row = view_job_draw_progress(v, row);
    row = view_job_draw_numbers(v, row) + 1;
    int left = rows - row - 2;
    if (v->loss.count > 1 && left > 0)
        row = view_job_draw_curve("loss", &v->loss, row, left * 9 / 20);
    if (v->rate.count > 1 && row < rows - 3)
        row = view_job_draw_curve("images/s", &v->rate, row, left * 6 / 20) + 1;
    view_job_draw_news(v, row, rows - 1 - row);
    view_footer(&v->view, v->view.local ? "c stop, to resume later"
                          : v->stay     ? "q back  c cancel the job"
                                        : "q quit  c cancel the job");
}

int view_job(long id, bool stay, struct local *local, struct error *e)
{
    struct job_view *v = xcalloc(1, sizeof *v);
    long long newest = 0;
    char path[64];

    v->id = id;
    v->stay = stay;
    v->view.context = v;
    v->view.draw = view_job_draw;
    v->view.take = view_job_handle;
    v->view.key = view_job_key;
    v->view.read = view_job_read;
    v->view.local = local;
    int end = local ? 0 : stream_newest(&newest, e);
    if (end == 0)
        end = view_job_read(v, e);
    if (end == VIEW_STAY && !local) { /* earlier events are news in this case */
        view_job_read_curves(v);
        snprintf(path, sizeof path, "/v1/jobs/%ld/events", id);
        v->view.stream = stream_create(path, newest > NEWS_BACK ? newest - NEWS_BACK : 0);
    }
    if (end == VIEW_STAY)
        end = view_run(&v->view, e);
    stream_destroy(v->view.stream);
    json_decref(v->json);
    free(v);
    return end;
}

#define REASON_COLUMNS 20
#define COLUMNS_SPEED  76
#define LIMIT          200

struct queue_view {
    struct view view;
    json_t *live, *ended; /* the daemon's answers, from which the jobs borrow */
    struct job jobs[3 * LIMIT];
    int count, running, queued;
    long long slots, slots_used; /* on all nodes; slots 0: unknown */
    long selected;               /* id of the selected job; 0: none yet */
    int top;
};

static int view_queue_group(const struct job *job)
{
    return job_ended(job) ? 2 : strcmp(job->state, "queued") == 0 ? 1 : 0;
}

/* Sorts running, queued, then ended jobs; queued ones by order of start, others newest first. */
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

static int view_queue_read(void *context, struct error *e)
{
    struct queue_view *v = context;
    json_t *live, *ended, *nodes;
    struct error ignored;

    int status = api_call("GET", &live, e,
                          "/v1/jobs?limit=%d&state=queued,starting,running,evaluating", 2 * LIMIT);
    if (status)
        return status;
    status =
        api_call("GET", &ended, e, "/v1/jobs?limit=%d&state=succeeded,failed,cancelled", LIMIT / 4);
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
    if (api_get("/v1/nodes?limit=1", &nodes, &ignored) == 0) {
        v->slots = json_get_integer(nodes, "slots", 0);
        v->slots_used = json_get_integer(nodes, "slots_used", 0);
        json_decref(nodes);
    }
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

static int view_queue_open_job(struct queue_view *v)
{
    struct error e;
    int end = view_job(v->selected, true, NULL, &e);

    if (end < 0)
        snprintf(v->view.message, sizeof v->view.message, "%.200s", e.text);
    v->view.stale = true;
    return end == VIEW_SIGNALLED ? VIEW_SIGNALLED : VIEW_STAY;
}

static int view_queue_key(void *context, int key)
{
    struct queue_view *v = context;
    const struct job *selected = view_queue_job_of(v, v->selected);
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

struct layout {
    int name, state, bar, done, top1, speed, left,
        reason; /* widths of columns; speed, reason 0: no space */
};

static struct layout view_queue_layout_of(int columns)
{
    struct layout l = {.name = 6};
    int name = columns >= 120 ? 28 : columns >= 100 ? 20 : 16, bar = columns >= 100 ? 16 : 0;
    bool speed = columns >= COLUMNS_SPEED;

    if (!speed)
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
    const struct job *chosen = &v->jobs[view_queue_find(v, v->selected)];
    if (v->count && *chosen->reason)
        screen_text(screen_rows() - 2, 1, -1, SCREEN_PLAIN, NULL, "job %ld: %s", chosen->id,
                    chosen->reason);
    view_footer(&v->view, "q quit  up/down choose  enter show the job  c cancel it");
}

int view_queue(struct error *e)
{
    struct queue_view *v = xcalloc(1, sizeof *v);
    long long newest;
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
