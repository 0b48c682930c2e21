#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/follow.h"
#include "client/job.h"
#include "client/local.h"
#include "client/views/format.h"
#include "client/views/plot.h"
#include "client/views/progress.h"
#include "client/views/screen.h"
#include "client/views/terminal.h"
#include "client/views/view.h"
#include "common/clock.h"
#include "common/xalloc.h"

#define POINTS_MAX   2048 /* of a curve; when they are full, two become one */
#define POINTS_ASKED 512
#define NEWS_MAX     64
#define NEWS_BACK    2000 /* events of the daemon before now that are looked through for news */
#define CURVE_ROWS   3    /* at least, to be drawn as a curve and not as a line of blocks */

struct curve {
    double x[POINTS_MAX], y[POINTS_MAX];
    size_t count;
};

struct job_view {
    struct view view;
    long id;
    bool stay; /* also when the job has ended */
    json_t *json;
    struct job job;
    struct curve loss, rate;
    char news[NEWS_MAX][256]; /* a ring */
    size_t news_count;        /* ever */
};

/* ---- the curves */

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
    char path[96];

    snprintf(path, sizeof path, "/v1/jobs/%ld/metrics?names=loss,images_per_sec&points=%d", v->id,
             POINTS_ASKED);
    if (api_get(path, &answer, &e))
        return; /* the live stream brings others */
    view_job_curve_read(&v->loss, answer, "loss");
    view_job_curve_read(&v->rate, answer, "images_per_sec");
    json_decref(answer);
}

/* ---- what comes */

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
    if (strcmp(event->type, "step") != 0) {
        if (!(step < v->job.step))
            job_take_event(&v->job, event->type, event->body);
        return;
    }
    if (!(step < v->job.step)) /* events from before we asked come again */
        job_take_event(&v->job, event->type, event->body);
    view_job_curve_add(&v->loss, step, json_number_value(json_object_get(event->body, "loss")));
    view_job_curve_add(&v->rate, step,
                       json_number_value(json_object_get(event->body, "images_per_sec")));
}

static int view_job_key(void *context, int key, struct error *e)
{
    struct job_view *v = context;

    (void)e;
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

/* ---- the picture, from the top */

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

/* "name value" pairs beside each other, on a new row where one is full. */
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

/* A curve in so many rows with its name, or in one as a line of blocks. */
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

/* The newest at the bottom. */
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
    /* what is left: half for the loss, a quarter for the speed, the rest for the news */
    int left = rows - row - 2;
    if (v->loss.count > 1 && left > 0)
        row = view_job_draw_curve("loss", &v->loss, row, left * 9 / 20);
    if (v->rate.count > 1 && row < rows - 3)
        row = view_job_draw_curve("images/s", &v->rate, row, left * 6 / 20) + 1;
    view_job_draw_news(v, row, rows - 1 - row);
    view_footer(&v->view, v->view.local ? "c stop, to go on later"
                          : v->stay     ? "q back  c cancel the job"
                                        : "q quit  c cancel the job");
}

/* ---- the view */

/* Of the daemon: news from a while ago on, and the curves so far. */
static int view_job_connect(struct job_view *v, struct error *e)
{
    long long newest;
    char path[64];
    int end = stream_newest(&newest, e);

    if (end == 0)
        end = view_job_read(v, e);
    if (end != VIEW_STAY)
        return end;
    view_job_read_curves(v);
    snprintf(path, sizeof path, "/v1/jobs/%ld/events", v->id);
    v->view.stream = stream_create(path, newest > NEWS_BACK ? newest - NEWS_BACK : 0);
    return VIEW_STAY;
}

int view_job(long id, bool stay, struct local *local, struct error *e)
{
    struct job_view *v = xcalloc(1, sizeof *v);

    v->id = id;
    v->stay = stay;
    v->view.context = v;
    v->view.draw = view_job_draw;
    v->view.take = view_job_handle;
    v->view.key = view_job_key;
    v->view.read = view_job_read;
    v->view.local = local;
    int end = local ? view_job_read(v, e) : view_job_connect(v, e);
    if (end == VIEW_STAY)
        end = view_run(&v->view, e);
    stream_destroy(v->view.stream);
    json_decref(v->json);
    free(v);
    return end;
}
