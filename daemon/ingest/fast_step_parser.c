#include "daemon/ingest/fast_step_parser.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEYS_MAX   32
#define DIGITS_MAX 18 /* any such number fits in 64 bits */

struct number {
    double value;
    bool whole; /* without a decimal point or an exponent */
    int64_t integer;
};

static bool fast_step_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool fast_step_accept(const char **at, const char *text, size_t bytes)
{
    if (strncmp(*at, text, bytes) != 0)
        return false;
    *at += bytes;
    return true;
}
#define TAKE(at, text) fast_step_accept(at, text, sizeof text - 1)

static int fast_step_take_digits(const char **at, int64_t *digits)
{
    const char *begin = *at;

    for (; fast_step_is_digit(**at); (*at)++)
        if (*at - begin < DIGITS_MAX)
            *digits = 10 * *digits + (**at - '0');
    return (int)(*at - begin);
}

/* Returns digits x 10^exponent. If both are exact as doubles, a single operation rounds like strtod
 * (Clinger, How to Read Floating Point Numbers Accurately, 1990). */
static double fast_step_value(int64_t digits, int exponent, const char *text)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

    if (digits >= (int64_t)1 << 53 || exponent < -22 || exponent > 22)
        return fabs(strtod(text, NULL));
    return exponent < 0 ? (double)digits / tens[-exponent] : (double)digits * tens[exponent];
}

static bool fast_step_take_number(const char **at, struct number *n)
{
    const char *begin = *at;
    int64_t digits = 0, power = 0;
    bool negative = TAKE(at, "-"), down;
    const char *first = *at;
    int whole = fast_step_take_digits(at, &digits), behind = 0;

    if (whole == 0 || whole > DIGITS_MAX || (whole > 1 && *first == '0'))
        return false;
    n->whole = **at != '.' && **at != 'e' && **at != 'E';
    n->integer = negative ? -digits : digits;
    n->value = (double)n->integer;
    if (n->whole)
        return true;
    if (TAKE(at, ".")) {
        for (behind = 0; fast_step_is_digit(**at); (*at)++, behind++)
            if (whole + behind < DIGITS_MAX)
                digits = 10 * digits + (**at - '0');
        if (behind == 0)
            return false;
    }
    if (TAKE(at, "e") || TAKE(at, "E")) {
        down = TAKE(at, "-");
        if (!down)
            (void)TAKE(at, "+");
        int length = fast_step_take_digits(at, &power);
        if (length == 0 || length > 3)
            return false;
        power = down ? -power : power;
    }
    n->value = whole + behind > DIGITS_MAX ? fabs(strtod(begin, NULL))
                                           : fast_step_value(digits, (int)power - behind, begin);
    n->value = negative ? -n->value : n->value;
    return isfinite(n->value);
}

static bool fast_step_take_list(const char **at)
{
    struct number unused;

    if (!TAKE(at, "["))
        return false;
    if (TAKE(at, "]"))
        return true;
    do
        if (!fast_step_take_number(at, &unused))
            return false;
    while (TAKE(at, ", "));
    return TAKE(at, "]");
}

struct keys {
    struct {
        const char *text;
        size_t bytes;
    } seen[KEYS_MAX];
    size_t count;
};

static size_t fast_step_take_key(const char **at, struct keys *keys)
{
    const char *begin = *at;

    while (fast_step_is_digit(**at) || **at == '_' || (**at >= 'a' && **at <= 'z'))
        (*at)++;
    size_t bytes = (size_t)(*at - begin);
    if (bytes == 0 || keys->count == KEYS_MAX)
        return 0;
    for (size_t i = 0; i < keys->count; i++)
        if (keys->seen[i].bytes == bytes && memcmp(keys->seen[i].text, begin, bytes) == 0)
            return 0;
    keys->seen[keys->count].text = begin;
    keys->seen[keys->count++].bytes = bytes;
    return bytes;
}

static bool fast_step_is_key(const char *key, size_t bytes, const char *name)
{
    return strncmp(key, name, bytes) == 0 && name[bytes] == '\0';
}

/* Tries *next first, because the worker writes the metrics in table order. */
static int fast_step_metric(const char *key, size_t bytes, int *next)
{
    const struct event_metric *metric = event_metric_at((size_t)*next);

    if (metric && fast_step_is_key(key, bytes, metric->name))
        return (*next)++;
    for (int i = 0; (metric = event_metric_at((size_t)i)); i++)
        if (fast_step_is_key(key, bytes, metric->name))
            return i;
    return -1;
}

static void fast_step_note(struct store_step *step, const char *key, size_t bytes,
                           const struct number *n, int *next)
{
    int metric = fast_step_metric(key, bytes, next);

    if (metric >= 0)
        step->metrics[metric] = n->value;
    else if (fast_step_is_key(key, bytes, "step"))
        step->step = n->whole ? n->integer : -1;
    else if (fast_step_is_key(key, bytes, "epoch"))
        step->epoch = n->value;
}

static bool fast_step_field(const char **at, struct keys *keys, struct store_step *step, int *next)
{
    struct number n;

    if (!TAKE(at, "\""))
        return false;
    const char *key = *at;
    size_t bytes = fast_step_take_key(at, keys);
    if (!bytes || fast_step_is_key(key, bytes, "seq") || fast_step_is_key(key, bytes, "t") ||
        fast_step_is_key(key, bytes, "type") || !TAKE(at, "\": "))
        return false;
    if (**at == '[')
        return fast_step_take_list(at);
    if (**at == 'n')
        return TAKE(at, "null");
    if (!fast_step_take_number(at, &n))
        return false;
    fast_step_note(step, key, bytes, &n, next);
    return true;
}

bool fast_step_parse(const char *line, struct store_event *event, size_t *own)
{
    struct keys keys = {.count = 0};
    struct number seq, t;
    const char *at = line;
    int next = 0;

    if (!TAKE(&at, "{\"seq\": ") || !fast_step_take_number(&at, &seq) || !seq.whole ||
        !TAKE(&at, ", \"t\": ") || !fast_step_take_number(&at, &t) ||
        !TAKE(&at, ", \"type\": \"step\", "))
        return false;
    *own = (size_t)(at - line);
    *event = (struct store_event){.seq = seq.integer, .t = t.value, .type = EVENT_STEP};
    store_step_clear(&event->step);
    do
        if (!fast_step_field(&at, &keys, &event->step, &next))
            return false;
    while (TAKE(&at, ", "));
    return TAKE(&at, "}") && *at == '\0';
}
