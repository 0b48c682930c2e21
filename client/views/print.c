#include "client/views/print.h"

#include <langinfo.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/json.h"
#include "common/text.h"

static void print_json_as(FILE *out, const json_t *value, size_t flags)
{
    char *text = json_to_text(value, flags | JSON_ENCODE_ANY);
    char *safe = text ? text_escape_copy(text, "\n") : NULL;

    if (safe)
        fprintf(out, "%s\n", safe);
    free(safe);
    free(text);
}

void print_json(const json_t *value)
{
    print_json_as(stdout, value, JSON_INDENT(2));
}

void print_json_line(FILE *out, const json_t *value)
{
    print_json_as(out, value, JSON_COMPACT);
}

char *print_value(const json_t *value)
{
    if (json_is_string(value))
        return text_escape_copy(json_string_value(value), "");
    return json_to_text(value, JSON_ENCODE_ANY);
}

int print_columns(void)
{
    int columns = terminal_columns();

    return columns > 100 ? 100 : columns;
}

void print_wrapped(FILE *out, const char *label, int indent, const char *text)
{
    text_wrap(out, print_columns(), label, indent, text);
}

void print_prose(const char *format, ...)
{
    char *text;
    va_list args;

    va_start(args, format);
    int bytes = vasprintf(&text, format, args);
    va_end(args);
    if (bytes < 0)
        return;
    text_wrap(stdout, isatty(STDOUT_FILENO) ? terminal_columns() : INT_MAX, "", 0, text);
    free(text);
}

void print_file(const char *file, double bytes)
{
    json_t *json = json_pack("{s:s, s:I}", "file", file, "bytes", (json_int_t)bytes);

    print_json(json);
    json_decref(json);
}

static int print_stated_size(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    long value = text ? strtol(text, NULL, 10) : 0;

    return value >= 20 && value <= 1000 ? (int)value : otherwise;
}

int terminal_columns(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
        return size.ws_col;
    return print_stated_size("COLUMNS", 80);
}

int terminal_rows(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0)
        return size.ws_row;
    return print_stated_size("LINES", 24);
}

bool terminal_utf8(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

bool terminal_full(void)
{
    const char *term = getenv("TERM");

    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term &&
           strcmp(term, "dumb") != 0;
}
