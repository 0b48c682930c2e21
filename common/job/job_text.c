#include "common/job/job_text.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/job/job_spec.h"
#include "common/system/host.h"
#include "common/text.h"

#define DIGITS    "0123456789"
#define LETTERS   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define NAME      LETTERS DIGITS "._-"
#define INTERFACE NAME "@"

static bool job_text_right_host(const char *text)
{
    char wrong[HOST_LIST_WRONG_BYTES];
    return host_list_expand(text, JOB_HOSTS_MAX, NULL, wrong) > 0;
}

static bool job_text_right_interface(const char *text)
{
    return !strchr(text, '/') || host_is_subnet(text);
}

static bool job_text_right_networks(const char *text)
{
    char part[64];

    for (const char *at = text; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t length = strcspn(at, ",");
        if (!memchr(at, '/', length))
            continue;
        if (length >= sizeof part)
            return false;
        memcpy(part, at, length);
        part[length] = '\0';
        if (!host_is_subnet(part))
            return false;
    }
    return true;
}

static bool job_text_right_time(const char *text)
{
    return !isnan(time_limit_seconds(text));
}

static bool job_text_right_tiles(const char *text)
{
    int size, in, out, tile[3], length;

    for (; *text; text += length, text += *text == ' ' && text[1]) {
        if (sscanf(text, "%4dx%5d-%5d:%1d/%1d/%1d%n", &size, &in, &out, &tile[0], &tile[1],
                   &tile[2], &length) != 6 ||
            size < 1 || in < 1 || out < 1 || !strchr(" ", text[length]))
            return false;
        for (int i = 0; i < 3; i++)
            if (tile[i] != 0 && tile[i] != 2 && tile[i] != 4)
                return false;
    }
    return true;
}

static bool job_text_right_folder(const char *text)
{
    return !strstr(text, "/../") && !(strlen(text) >= 3 && strcmp(strrchr(text, '/'), "/..") == 0);
}

/* The characters that text_is_printable rejects, for use in a pattern */
#define MARKS "\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069"

/* letters NULL: all but control characters. first: allowed first characters; NULL: letters. */
/* clang-format off */
static const struct {
    const char *first, *letters;
    bool (*right)(const char *text); /* additional check; NULL: none */
    const char *made_of, *expects, *pattern;
} kinds[JOB_TEXT_KINDS] = {
    [JOB_TEXT_TITLE] = {NULL, NULL, NULL, NULL, "text without control characters",
     "^[^\\u0000-\\u001f" MARKS "]*$"},
    [JOB_TEXT_NOTE] = {NULL, NULL, NULL, NULL, "text without control characters except newlines and tabs",
     "^[^\\u0000-\\u0008\\u000b-\\u001f" MARKS "]*$"},
    [JOB_TEXT_TAG] = {LETTERS DIGITS "_", NAME ":/", NULL, "letters, digits and _.-:/", "a word of letters, digits and _.-:/ that begins with a letter, a digit or _",
     "^[A-Za-z0-9_][A-Za-z0-9._:/-]*$"},
    [JOB_TEXT_PATH] = {NULL, NULL, NULL, NULL, "a path without control characters",
     "^[^\\u0000-\\u001f" MARKS "]*$"},
    [JOB_TEXT_FILE] = {LETTERS DIGITS "_", NAME, NULL, "letters, digits, dots, hyphens and underscores", "a name of letters, digits, dots, hyphens and underscores",
     "^[A-Za-z0-9_][A-Za-z0-9._-]*$"},
    [JOB_TEXT_HOST] = {LETTERS DIGITS "._[", NAME ":,[]", job_text_right_host, "letters, digits and _.-:,[]", "a host's name, or name:slots with 1 to 4096 slots: letters, digits, dots, hyphens and underscores, as in \"n1\", \"n1.cluster:16\" or, for many, \"n[01-64,70]\"",
     "^[A-Za-z0-9._\\[][A-Za-z0-9._:,\\[\\]-]*$"},
    [JOB_TEXT_INTERFACE] = {LETTERS DIGITS "_", INTERFACE "/", job_text_right_interface, "letters, digits and _.-@/", "one interface's name or an IPv4 subnet, as in \"eth0\" or \"10.0.0.0/24\"",
     "^[A-Za-z0-9_][A-Za-z0-9._@-]*(/[0-9]+)?$"},
    [JOB_TEXT_NAMES] = {LETTERS DIGITS "_", NAME ",+@:/", NULL, "letters, digits and _.-+@:/,", "one name, or several with commas between them, of letters, digits and _.-+@:/",
     "^[A-Za-z0-9_][A-Za-z0-9._,+@:/-]*$"},
    [JOB_TEXT_FEATURES] = {LETTERS DIGITS "_([", NAME ",+@:/=&|*()[]", NULL, "letters, digits and _.-+@:/=,&|*()[]", "features of letters, digits and _.-+@:/= with Slurm's operators ,&|*()[] between them",
     "^[A-Za-z0-9_(\\[][A-Za-z0-9._,+@:/=&|*()\\[\\]-]*$"},
    [JOB_TEXT_TIME] = {DIGITS, DIGITS ":-", job_text_right_time, "digits, colons and hyphens", "a time above 0 as Slurm writes it: \"90\" (minutes), \"90:00\" (minutes:seconds), \"01:30:00\", \"2-12\" (days-hours) or \"2-12:30:00\"",
     "^[0-9]+(-[0-9]+)?(:[0-9]+){0,2}$"},
    [JOB_TEXT_ARGUMENT] = {NULL, NAME ",:^+=/@% ", NULL, "letters, digits, spaces and _.-,:^+=/@%", "an argument of letters, digits, spaces and _.-,:^+=/@%",
     "^[A-Za-z0-9._,:^+=/@% -]+$"},
    [JOB_TEXT_VARIABLE] = {LETTERS "_", LETTERS DIGITS "_", NULL, "letters, digits and underscores", "a variable's name: letters, digits and underscores, not beginning with a digit",
     "^[A-Za-z_][A-Za-z0-9_]*$"},
    [JOB_TEXT_SETTING] = {NULL, NAME ",:^+=/@% ", NULL, "letters, digits, spaces and _.-,:^+=/@%", "a value of letters, digits, spaces and _.-,:^+=/@%",
     "^[A-Za-z0-9._,:^+=/@% -]+$"},
    [JOB_TEXT_PREFIX] = {"/", NAME "+/", job_text_right_folder, "letters, digits and _.-+/", "an absolute folder without \"..\", of letters, digits and _.-+/",
     "^/[A-Za-z0-9._+/-]*$"},
    [JOB_TEXT_TILES] = {DIGITS, DIGITS "x-:/ ", job_text_right_tiles, "digits, spaces and x-:/", "convolutions with the tiles of their three directions (0, 2 or 4), as in \"56x64-64:4/4/2 28x128-128:0/2/4\"",
     "^[0-9]+x[0-9]+-[0-9]+:[024]/[024]/[024]( [0-9]+x[0-9]+-[0-9]+:[024]/[024]/[024])*$"},
    [JOB_TEXT_WORDS] = {NULL, NAME ",:^+", NULL, "letters, digits and _.-,:^+", "words of letters, digits and _.-,:^+",
     "^[A-Za-z0-9._,:^+-]+$"},
    [JOB_TEXT_NETWORKS] = {NULL, NAME ",:^+/", job_text_right_networks, "letters, digits and _.-,:^+/", "interfaces and IPv4 subnets with commas between them",
     "^[A-Za-z0-9._,:^+/-]+$"},
};
/* clang-format on */

bool job_text_right(enum job_text kind, const char *text)
{
    const char *letters = kinds[kind].letters, *first = kinds[kind].first;
    const char *keep = kind == JOB_TEXT_NOTE ? "\n\t" : "";

    if (kind == JOB_TEXT_NONE || !*text || !text_is_printable_but(text, keep))
        return false; /* a key of strings without a kind accepts nothing */
    if (letters && text[strspn(text, letters)])
        return false;
    if (first && !strchr(first, text[0]))
        return false;
    return !kinds[kind].right || kinds[kind].right(text);
}

const char *job_text_letters(enum job_text kind)
{
    return kinds[kind].made_of;
}

const char *job_text_expects(enum job_text kind)
{
    return kinds[kind].expects;
}

const char *job_text_pattern(enum job_text kind)
{
    return kinds[kind].pattern;
}

#define DIGITS_MAX 7

/* Reads "H:M:S" or part of it. Returns the number of fields, 0 if malformed. */
static int text_time_read_fields(const char *text, double fields[3])
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

static double text_time_or_nan(double seconds)
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
        int count = text_time_read_fields(rest + 1, f);
        if (count == 0)
            return NAN;
        return text_time_or_nan(86400 * days + 3600 * f[0] + (count > 1 ? 60 * f[1] : 0) +
                                (count > 2 ? f[2] : 0));
    }
    switch (text_time_read_fields(text, f)) {
    case 1:
        return text_time_or_nan(60 * f[0]);
    case 2:
        return text_time_or_nan(60 * f[0] + f[1]);
    case 3:
        return text_time_or_nan(3600 * f[0] + 60 * f[1] + f[2]);
    default:
        return NAN;
    }
}
