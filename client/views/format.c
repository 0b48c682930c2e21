#include "client/views/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static char *format_dash(char *text, size_t bytes)
{
    snprintf(text, bytes, "-");
    return text;
}

char *format_duration(char *text, size_t bytes, double seconds)
{
    if (isnan(seconds) || seconds < 0)
        return format_dash(text, bytes);
    if (seconds >= 1000.0 * 86400) {
        snprintf(text, bytes, "over 1000 d");
        return text;
    }
    long long s = llround(seconds);
    if (seconds < 9.95)
        snprintf(text, bytes, "%.1f s", seconds);
    else if (s < 60)
        snprintf(text, bytes, "%lld s", s);
    else if (s < 3600)
        snprintf(text, bytes, "%lld min %lld s", s / 60, s % 60);
    else if ((s = 60 * llround(seconds / 60)) < 86400)
        snprintf(text, bytes, "%lld h %lld min", s / 3600, s % 3600 / 60);
    else if ((s = 3600 * llround(seconds / 3600)) > 0)
        snprintf(text, bytes, "%lld d %lld h", s / 86400, s % 86400 / 3600);
    return text;
}

/* Formats three significant digits, never with an exponent: 8.35, 64.1, 212. */
static const char *format_digits3(char *text, size_t bytes, double value)
{
    snprintf(text, bytes, "%.*f", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value);
    return text;
}

char *format_rate(char *text, size_t bytes, double images_per_sec)
{
    char number[24];

    if (isnan(images_per_sec) || images_per_sec < 0)
        return format_dash(text, bytes);
    if (images_per_sec < 9999.5)
        snprintf(text, bytes, "%s images/s", format_digits3(number, sizeof number, images_per_sec));
    else
        snprintf(text, bytes, "%sk images/s",
                 format_digits3(number, sizeof number, images_per_sec / 1000));
    return text;
}

char *format_percent(char *text, size_t bytes, double fraction)
{
    if (isnan(fraction))
        return format_dash(text, bytes);
    snprintf(text, bytes, "%.2f %%", 100 * fraction);
    return text;
}

char *format_number(char *text, size_t bytes, double value)
{
    if (isnan(value))
        return format_dash(text, bytes);
    snprintf(text, bytes, "%.4g", value);
    return text;
}

char *format_count(char *text, size_t bytes, long long count)
{
    char plain[24];
    size_t out = 0;

    snprintf(plain, sizeof plain, "%lld", count);
    size_t length = strlen(plain), sign = count < 0;
    for (size_t i = 0; i < length && out + 1 < bytes; i++) {
        if (i > sign && (length - i) % 3 == 0 && out + 2 < bytes)
            text[out++] = ',';
        text[out++] = plain[i];
    }
    text[out] = '\0';
    return text;
}

char *format_size(char *text, size_t bytes, double size_bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    char number[24];
    size_t unit = 0;

    if (isnan(size_bytes) || size_bytes < 0)
        return format_dash(text, bytes);
    if (size_bytes < 1024) {
        snprintf(text, bytes, "%.0f bytes", size_bytes);
        return text;
    }
    for (size_bytes /= 1024; size_bytes >= 1000 && unit < 4; unit++)
        size_bytes /= 1024;
    snprintf(text, bytes, "%s %s", format_digits3(number, sizeof number, size_bytes), units[unit]);
    return text;
}

char *format_date(char *text, size_t bytes, double unix_time)
{
    struct tm local;

    if (isnan(unix_time) || unix_time <= 0)
        return format_dash(text, bytes);
    time_t seconds = (time_t)unix_time;
    localtime_r(&seconds, &local);
    strftime(text, bytes, "%Y-%m-%d %H:%M:%S", &local);
    return text;
}

char *format_ago(char *text, size_t bytes, double seconds)
{
    char duration[FORMAT_BYTES];

    if (isnan(seconds))
        return format_dash(text, bytes);
    if (seconds < 10)
        snprintf(text, bytes, "just now");
    else if (seconds < 60)
        snprintf(text, bytes, "%.0f s ago", seconds);
    else if (seconds < 3600)
        snprintf(text, bytes, "%.0f min ago", floor(seconds / 60));
    else
        snprintf(text, bytes, "%s ago", format_duration(duration, sizeof duration, seconds));
    return text;
}
