#include "common/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/text.h"

static _Atomic(enum log_level) limit = LOG_LEVEL_INFO;
static _Atomic(enum log_format) shape = LOG_TEXT;
static char speaker[64];

void log_set_format(enum log_format format)
{
    shape = format;
}

void log_set_level(enum log_level max)
{
    limit = max;
}

void log_set_name(const char *name)
{
    snprintf(speaker, sizeof speaker, "%s%s", name ? name : "", name ? ": " : "");
}

static size_t log_quote(char *out, size_t capacity, const char *words)
{
    size_t used = 0;

    for (; *words && used + 2 < capacity; words++) {
        if (*words == '"' || *words == '\\')
            out[used++] = '\\';
        out[used++] = *words;
    }
    return used;
}

static void log_write_line(char *line, size_t used)
{
    line[used++] = '\n';
    if (write(STDERR_FILENO, line, used) < 0)
        return;
}

static void log_format_line(enum log_level level, const char *format, va_list args)
{
    static const char *const words[] = {"error", "warning", "info", "debug"};
    char line[TEXT_ESCAPE_GROWTH * 4096], message[4096 - 64], quoted[2 * 4096], date[40];
    struct timespec now;
    struct tm utc;
    size_t used;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    used = strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(date + used, sizeof date - used, ".%03ldZ", now.tv_nsec / 1000000);
    used = (size_t)snprintf(message, sizeof message, "%s", speaker);
    vsnprintf(message + used, sizeof message - used, format, args);
    if (shape == LOG_JSON) {
        size_t bytes = log_quote(quoted, sizeof quoted, message);
        used = (size_t)snprintf(line, sizeof line,
                                "{\"t\": \"%s\", \"level\": \"%s\", \"message\": \"", date,
                                words[level]);
        used += text_escape(line + used, sizeof line - used - 3, quoted, bytes, "");
        line[used++] = '"';
        line[used++] = '}';
    } else {
        used = (size_t)snprintf(line, sizeof line, "%s %s: ", date, words[level]);
        used += text_escape(line + used, sizeof line - used - 1, message, strlen(message), "");
    }
    log_write_line(line, used);
}

/* Calls another function for the buffers, because in a function with buffers and a va_list clang 14
 * with -fstack-clash-protection loses double arguments. */
void log_at(enum log_level level, const char *format, ...)
{
    va_list args;

    if (level > limit)
        return;
    va_start(args, format);
    log_format_line(level, format, args);
    va_end(args);
}
