#include "worker/report.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/system/file.h"
#include "common/xalloc.h"

struct report {
    pthread_mutex_t lock; /* from begin to end; the stall watcher writes events too */
    int fd;
    int64_t seq;
    FILE *line;
    char *text;
    size_t bytes;
};

/* A run started by hand may be restarted in the same folder. */
static int64_t report_count_lines(int fd)
{
    char buffer[65536];
    int64_t lines = 0;
    ssize_t n;

    while ((n = read(fd, buffer, sizeof buffer)) > 0)
        for (ssize_t i = 0; i < n; i++)
            lines += buffer[i] == '\n';
    return lines;
}

int report_create(const char *path, struct report **out, struct error *e)
{
    struct report *r = xcalloc(1, sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
    r->fd = -1;
    if (path) {
        r->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0644);
        int status = r->fd < 0 ? error_set_errno(e, errno, "cannot open the event log %s", path)
                               : file_check_regular(r->fd, path, e);
        if (status) {
            report_destroy(r);
            return status;
        }
        r->seq = report_count_lines(r->fd);
    }
    *out = r;
    return 0;
}

void report_destroy(struct report *r)
{
    if (!r)
        return;
    if (r->fd >= 0)
        close(r->fd);
    free(r);
}

static void report_open_line(struct report *r, enum event_type type)
{
    if (r->fd < 0)
        return;
    r->line = must_alloc(open_memstream(&r->text, &r->bytes));
    fprintf(r->line, "{\"seq\": %lld, \"t\": %.6f, \"type\": \"%s\"", (long long)++r->seq,
            clock_now(), event_type_name(type));
}

void report_begin(struct report *r, enum event_type type)
{
    pthread_mutex_lock(&r->lock);
    report_open_line(r, type);
}

bool report_begin_within(struct report *r, enum event_type type, int seconds)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += seconds;
    if (pthread_mutex_clocklock(&r->lock, CLOCK_MONOTONIC, &until))
        return false;
    report_open_line(r, type);
    return true;
}

void report_int(struct report *r, const char *name, int64_t value)
{
    if (r->line)
        fprintf(r->line, ", \"%s\": %lld", name, (long long)value);
}

void report_real(struct report *r, const char *name, double value)
{
    if (!r->line)
        return;
    if (isfinite(value))
        fprintf(r->line, ", \"%s\": %.9g", name, value);
    else
        fprintf(r->line, ", \"%s\": null", name);
}

/* Six times faster than printf's %g: rank 0 prints one number per rank and step. */
static void report_put_thousandths(FILE *out, double value)
{
    char text[32], *at = text + sizeof text;
    int64_t left = value > 0 && value < 1e12 ? llround(1e3 * value) : 0;

    for (int i = 0; i < 4 || left > 0; i++, left /= 10) {
        if (i == 3)
            *--at = '.';
        *--at = (char)('0' + left % 10);
    }
    fwrite(at, 1, (size_t)(text + sizeof text - at), out);
}

void report_durations(struct report *r, const char *name, const double *values, size_t count)
{
    if (!r->line)
        return;
    fprintf(r->line, ", \"%s\": [", name);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            fputs(", ", r->line);
        report_put_thousandths(r->line, values[i]);
    }
    fputc(']', r->line);
}

void report_text(struct report *r, const char *name, const char *value)
{
    if (!r->line)
        return;
    /* jansson refuses bytes that are not UTF-8, which a file name may contain */
    json_t *text = value ? json_string(value) : json_null();
    if (!text)
        text = json_string("(not UTF-8)");
    char *quoted = must_alloc(json_dumps(text, JSON_ENCODE_ANY));
    fprintf(r->line, ", \"%s\": %s", name, quoted);
    free(quoted);
    json_decref(text);
}

void report_json(struct report *r, const char *name, const json_t *value)
{
    if (!r->line)
        return;
    fprintf(r->line, ", \"%s\": ", name);
    if (!value || json_dumpf(value, r->line, 0))
        fputs("null", r->line);
}

void report_flag(struct report *r, const char *name, int value)
{
    if (r->line)
        fprintf(r->line, ", \"%s\": %s", name, value ? "true" : "false");
}

int report_end(struct report *r, struct error *e)
{
    int status = 0;

    if (r->line) {
        fputs("}\n", r->line);
        fclose(r->line);
        r->line = NULL;
        ssize_t written = write(r->fd, r->text, r->bytes);
        if (written != (ssize_t)r->bytes) {
            status = error_set_errno(e, written < 0 ? errno : ENOSPC, "cannot write the event log");
            close(r->fd);
            r->fd = -1;
        }
        free(r->text);
    }
    pthread_mutex_unlock(&r->lock);
    return status;
}
