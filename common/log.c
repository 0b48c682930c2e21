#include "common/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static enum log_level limit = LOG_LEVEL_INFO;
static char speaker[64];

void log_set_level(enum log_level most_talkative)
{
    limit = most_talkative;
}

void log_set_name(const char *name)
{
    snprintf(speaker, sizeof speaker, "%s%s", name ? name : "", name ? ": " : "");
}

void log_at(enum log_level level, const char *format, ...)
{
    static const char *const words[] = {"error", "warning", "info", "debug"};
    char line[4096];
    struct timespec now;
    struct tm utc;
    va_list args;

    if (level > limit)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t used = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &utc);
    used += (size_t)snprintf(line + used, sizeof line - used, ".%03ldZ %s: %s",
                             now.tv_nsec / 1000000, words[level], speaker);
    va_start(args, format);
    int more = vsnprintf(line + used, sizeof line - used - 1, format, args);
    va_end(args);
    if (more > 0)
        used += (size_t)more;
    if (used > sizeof line - 2)
        used = sizeof line - 2;
    line[used++] = '\n';
    if (write(STDERR_FILENO, line, used) < 0)
        return; /* nowhere left to say so */
}
