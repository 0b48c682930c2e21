#include "client/print.h"

#include <stdio.h>

void print_json(const json_t *value)
{
    json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    putchar('\n');
}
