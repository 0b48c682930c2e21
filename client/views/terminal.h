/* The terminal on standard output. */
#pragma once

#include <stdbool.h>

int terminal_columns(void); /* COLUMNS, or 80, where it is none */
int terminal_rows(void);    /* LINES, or 24, likewise */
bool terminal_utf8(void);   /* the locale writes UTF-8 */
bool terminal_full(void);   /* standard input and output are one that can be drawn on */
