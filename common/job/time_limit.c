#include "common/job/time_limit.h"

#include <math.h>
#include <string.h>

#define DIGITS_MAX 7

/* Reads "H:M:S" and shorter ones into fields; how many there are; 0: it is something else. */
static int time_limit_read_fields(const char *text, double fields[3])
{
    for (int count = 0; count < 3; text++) {
        size_t digits = strspn(text, "0123456789");
        if (digits == 0 || digits > DIGITS_MAX)
            return 0;
        fields[count] = 0;
        for (size_t i = 0; i < digits; i++)
            fields[count] = 10 * fields[count] + (text[i] - '0');
        count++;
        text += digits;
        if (*text == '\0')
            return count;
        if (*text != ':')
            return 0;
    }
    return 0;
}

static double time_limit_or_nan(double seconds)
{
    return seconds > 0 ? seconds : NAN;
}

double time_limit_seconds(const char *text)
{
    double f[3], days = 0;
    const char *rest = text ? strchr(text, '-') : NULL;

    if (!text)
        return NAN;
    if (rest) {
        size_t digits = (size_t)(rest - text);
        if (digits == 0 || digits > DIGITS_MAX || strspn(text, "0123456789") != digits)
            return NAN;
        for (size_t i = 0; i < digits; i++)
            days = 10 * days + (text[i] - '0');
        int count = time_limit_read_fields(rest + 1, f);
        if (count == 0)
            return NAN;
        return time_limit_or_nan(86400 * days + 3600 * f[0] + (count > 1 ? 60 * f[1] : 0) +
                                 (count > 2 ? f[2] : 0));
    }
    switch (time_limit_read_fields(text, f)) {
    case 1:
        return time_limit_or_nan(60 * f[0]);
    case 2:
        return time_limit_or_nan(60 * f[0] + f[1]);
    case 3:
        return time_limit_or_nan(3600 * f[0] + 60 * f[1] + f[2]);
    default:
        return NAN;
    }
}
