#include "client/print.h"

#include <stdio.h>
#include <stdlib.h>

/* The fewest digits that give every number back as it is: 0.1 stays 0.1, a date keeps its
 * microseconds. */
static char *dump(const json_t *value)
{
    for (size_t digits = 15;; digits++) {
        char *text =
            json_dumps(value, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
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
    char *text = dump(value);

    if (text)
        puts(text);
    free(text);
}
