#include "client/views/progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/views/format.h"
#include "common/clock.h"

#define PLAIN_LINE_SECONDS 10

static bool progress_started(const struct job *job)
{
    return job_evaluates_only(job) ? job->evaluated_images > 0 : !isnan(job->step) && job->step > 0;
}

static void progress_append(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void progress_append(char *text, size_t bytes, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + used, bytes - used, format, args);
    va_end(args);
}

char *progress_words(char *text, size_t bytes, const struct job *job, double now)
{
    char part[2 * FORMAT_BYTES], done[JOB_DONE_BYTES];
    struct job_left left = job_time_left(job, now);

    *text = '\0';
    if (!progress_started(job)) {
        progress_append(text, bytes, "%s", *job->reason ? job->reason : "no step yet");
        return text;
    }
    if (job_evaluates_only(job)) {
        progress_append(text, bytes, "%3.0f %%  %s", floor(100 * job_progress(job)),
                        job_done_words(done, sizeof done, job));
        return text;
    }
    progress_append(text, bytes, "%3.0f %%  step %.0f/%.0f", floor(100 * job_progress(job)),
                    job->step, job->train_steps);
    progress_append(text, bytes, "  %s", format_rate(part, sizeof part, job->images_per_sec));
    progress_append(text, bytes, "  loss %s", format_number(part, sizeof part, job->loss));
    if (!isnan(job->top1))
        progress_append(text, bytes, "  top-1 %s", format_percent(part, sizeof part, job->top1));
    if (left.value > 0)
        progress_append(text, bytes, "  %s left", format_duration(part, sizeof part, left.value));
    return text;
}

char *progress_bar(char *text, size_t bytes, double share, int columns, bool utf8)
{
    static const char *const blocks[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
    int cells = columns - 2, eighths = (int)floor(share * cells * 8);

    snprintf(text, bytes, "%s", utf8 ? "▕" : "[");
    for (int i = 0; i < cells; i++) {
        int level = eighths - 8 * i;
        level = level < 0 ? 0 : level > 8 ? 8 : level;
        progress_append(text, bytes, "%s", utf8 ? blocks[level] : level == 8 ? "#" : ".");
    }
    progress_append(text, bytes, "%s", utf8 ? "▏" : "]");
    return text;
}

/* Ignores text after a semicolon or in parentheses, which is an estimate and changes often. */
static bool progress_same_reason(const char *a, const char *b)
{
    size_t length = strcspn(a, ";(");

    return length == strcspn(b, ";(") && strncmp(a, b, length) == 0;
}

void progress_show(struct progress *progress, const struct job *job)
{
    char line[768];
    double now = clock_monotonic();
    bool soon = !progress_started(job) || now - progress->last_line < PLAIN_LINE_SECONDS;
    bool news = strcmp(progress->state, job->state) != 0 ||
                (!progress_started(job) && !progress_same_reason(progress->reason, job->reason)) ||
                (!isnan(job->top1) && !(fabs(job->top1 - progress->top1) < 1e-9));

    if (!news && (soon || progress->share == job_progress(job)))
        return;
    if (job->id)
        printf("job %ld ", job->id);
    else
        printf("%s ", *job->name ? job->name : "training");
    printf("%s  %s\n", job->state, progress_words(line, sizeof line, job, clock_now()));
    fflush(stdout);
    snprintf(progress->state, sizeof progress->state, "%s", job->state);
    snprintf(progress->reason, sizeof progress->reason, "%s", job->reason);
    progress->top1 = job->top1;
    progress->share = job_progress(job);
    progress->last_line = now;
}
