#include "client/progress.h"

#include <langinfo.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/cmd.h"
#include "client/human.h"
#include "common/clock.h"

#define PLAIN_LINE_SECONDS 10
#define BAR_MAX            30
#define BAR_MIN            8

static bool started(const struct job *job)
{
    return !isnan(job->step) && job->step > 0;
}

/* Appends to a line, cut at its end. */
static void add(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add(char *text, size_t bytes, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + used, bytes - used, format, args);
    va_end(args);
}

/* How much stands right of the bar: a narrow terminal loses the steps first, then the loss. */
enum detail { DETAIL_SHORT, DETAIL_LOSS, DETAIL_ALL };

static void words_of(char *text, size_t bytes, const struct job *job, double seconds_left,
                     enum detail detail)
{
    char part[HUMAN_BYTES];

    *text = '\0';
    if (!started(job)) {
        add(text, bytes, "%s", *job->reason ? job->reason : "no step is done yet");
        return;
    }
    add(text, bytes, "%3.0f %%", floor(100 * job_progress(job)));
    if (detail >= DETAIL_ALL)
        add(text, bytes, "  step %.0f/%.0f", job->step, job->train_steps);
    add(text, bytes, "  %s", human_rate(part, sizeof part, job->images_per_sec));
    if (detail >= DETAIL_LOSS)
        add(text, bytes, "  loss %s", human_number(part, sizeof part, job->loss));
    if (!isnan(job->top1))
        add(text, bytes, "  top-1 %s", human_percent(part, sizeof part, job->top1));
    if (!job_ended(job) && seconds_left > 0)
        add(text, bytes, "  %s left", human_duration(part, sizeof part, seconds_left));
}

static void bar_of(char *text, size_t bytes, double share, int cells, bool utf8)
{
    /* eighths of a cell, so that slow runs are seen to move */
    static const char *const blocks[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
    int eighths = (int)floor(share * cells * 8);

    *text = '\0';
    for (int i = 0; i < cells; i++) {
        int level = eighths - 8 * i;
        level = level < 0 ? 0 : level > 8 ? 8 : level;
        add(text, bytes, "%s", utf8 ? blocks[level] : level == 8 ? "#" : ".");
    }
}

/* Columns of a text in which every character is one wide. */
static int width_of(const char *text)
{
    int width = 0;

    for (; *text; text++)
        width += (*text & 0xc0) != 0x80;
    return width;
}

static void cut(char *text, int columns)
{
    char *end = text;

    while (*end && (columns > 0 || (*end & 0xc0) == 0x80))
        columns -= (*end++ & 0xc0) != 0x80;
    *end = '\0';
}

char *progress_line(char *text, size_t bytes, const struct job *job, double seconds_left,
                    int columns, bool utf8)
{
    char words[512], bar[4 * BAR_MAX + 1];
    int detail = DETAIL_ALL, room;

    snprintf(text, bytes, "job %ld %s  ", job->id, job->state);
    do {
        words_of(words, sizeof words, job, seconds_left, (enum detail)detail);
        room = columns - width_of(text) - width_of(words) - 4;
    } while (room < BAR_MIN && detail-- > DETAIL_SHORT);
    if (room > BAR_MAX)
        room = BAR_MAX;
    if (started(job) && room >= BAR_MIN) {
        bar_of(bar, sizeof bar, job_progress(job), room, utf8);
        add(text, bytes, "%s%s%s ", utf8 ? "▕" : "[", bar, utf8 ? "▏" : "]");
    }
    add(text, bytes, "%s", words);
    cut(text, columns);
    return text;
}

void progress_init(struct progress *progress)
{
    *progress = (struct progress){
        .redraw = isatty(STDOUT_FILENO), .top1 = NAN, .images_per_sec = NAN, .last_step = -1};
}

static int terminal_columns(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col < 20)
        return 80;
    return size.ws_col;
}

/* Single steps are noisy; a running mean over some ten polls gives a time left that does not jump.
 */
static double smoothed_rate(struct progress *progress, const struct job *job)
{
    if (isnan(job->images_per_sec))
        return NAN;
    if (isnan(progress->images_per_sec))
        progress->images_per_sec = job->images_per_sec;
    else if (job->step != progress->last_step)
        progress->images_per_sec += 0.15 * (job->images_per_sec - progress->images_per_sec);
    progress->last_step = job->step;
    return progress->images_per_sec;
}

/* Something happened that deserves a line of its own at once. */
static bool is_news(const struct progress *progress, const struct job *job)
{
    return strcmp(progress->state, job->state) != 0 ||
           (!started(job) && strcmp(progress->reason, job->reason) != 0) ||
           (!isnan(job->top1) && !(fabs(job->top1 - progress->top1) < 1e-9));
}

void progress_show(struct progress *progress, const struct job *job)
{
    char line[768];
    double left = job_seconds_left(job, smoothed_rate(progress, job));
    double now = clock_monotonic();

    if (progress->redraw) {
        bool utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
        progress_line(line, sizeof line, job, left, terminal_columns() - 1, utf8);
        printf("\r%s\033[K", line);
        progress->drawn = true;
    } else if (is_news(progress, job) || now - progress->last_line >= PLAIN_LINE_SECONDS) {
        words_of(line, sizeof line, job, left, DETAIL_ALL);
        printf("job %ld %s  %s\n", job->id, job->state, line);
        progress->last_line = now;
    }
    snprintf(progress->state, sizeof progress->state, "%s", job->state);
    snprintf(progress->reason, sizeof progress->reason, "%s", job->reason);
    progress->top1 = job->top1;
    fflush(stdout);
}

void progress_end(struct progress *progress)
{
    if (progress->drawn)
        putchar('\n');
    progress->drawn = false;
    fflush(stdout);
}
