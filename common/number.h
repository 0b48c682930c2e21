/* Numbers as decimal text, and the median. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define NUMBER_BYTES 32

/* Writes the fewest digits that read back as x: 0.07, 2, 1e-5, not 0.070000000000000007. */
const char *number_text(double x, char text[NUMBER_BYTES]);

/* Reads the decimal number at the start of text, which must have no blanks and no sign. *end points
 * after it. Returns false if there is none, or if it is too large or small for a double. */
bool number_read(const char *text, const char **end, double *number);

/* Rounds x to 15 digits, so that products print as decimals: 0.1 x 96 x 0.5 is 4.8. */
double number_rounded(double x);

/* Writes part / whole in percent with two digits and without exponent: "0.012", "4.2". The result
 * is "100" only if part equals whole. Returns text. */
const char *number_percent(double part, double whole, char text[NUMBER_BYTES]);

void number_sort(double *values, size_t count);

/* Median; of an even count, the mean of the middle two. Sorts the values. count >= 1. */
double number_median(double *values, size_t count);
