#include "client/views/print.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/views/terminal.h"
#include "common/text/printable.h"

/* The fewest digits that give every number back as it is: 0.1 stays 0.1, a date keeps its
 * microseconds. */
static char *print_dump(const json_t *value, size_t flags)
{
    for (size_t digits = 15;; digits++) {
        char *text = json_dumps(value, flags | JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
        json_t *again = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
        int same = json_equal(again, value);

        json_decref(again);
        if (!text || same || digits == 17)
            return text;
        free(text);
    }
}

void print_json(const json_t *value)
{
    char *text = print_dump(value, JSON_INDENT(2));
    char *safe = text ? printable_copy(text, "\n") : NULL; /* the same JSON */

    if (safe)
        puts(safe);
    free(safe);
    free(text);
}

char *print_value(const json_t *value)
{
    if (json_is_string(value))
        return printable_copy(json_string_value(value), "");
    return print_dump(value, 0);
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
