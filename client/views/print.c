#include "client/views/print.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/views/terminal.h"
#include "common/json.h"
#include "common/text/printable.h"

static void print_json_as(FILE *out, const json_t *value, size_t flags)
{
    char *text = json_to_text(value, flags | JSON_ENCODE_ANY);
    char *safe = text ? printable_copy(text, "\n") : NULL; /* the same JSON */

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
        return printable_copy(json_string_value(value), "");
    return json_to_text(value, JSON_ENCODE_ANY);
}

void print_wrapped(FILE *out, const char *label, int indent, const char *text)
{
    int columns = terminal_columns() > 100 ? 100 : terminal_columns();
    int column = fprintf(out, "%s", label);

    for (bool first = true; *text; first = false) {
        int length = (int)strcspn(text, " ");
        if (column + 1 + length > columns && !first)
            column = fprintf(out, "\n%*s", indent, "") - 1;
        else if (!first)
            column += fprintf(out, " ");
        column += fprintf(out, "%.*s", length, text);
        text += length + (text[length] == ' ');
    }
    fputc('\n', out);
}

void print_file(const char *file, double bytes)
{
    json_t *json = json_pack("{s:s, s:I}", "file", file, "bytes", (json_int_t)bytes);

    print_json(json);
    json_decref(json);
}
