/* A number as people write it. */
#pragma once

#define DECIMAL_BYTES 32

/* The fewest digits that give x back as it is: 0.07, 2, 1e-5, and not 0.070000000000000007 or
 * 1e-05. Returns text. */
const char *decimal_text(double x, char text[DECIMAL_BYTES]);

/* To 15 significant digits, so that decimals stay decimals when printed: 0.1 x 96 x 0.5 is 4.8. */
double decimal_rounded(double x);

/* The part of a whole in percent, in two digits and without an exponent: "0.012", "4.2", "100".
 * What is not all of it is not 100. Returns text. */
const char *decimal_percent(double part, double whole, char text[DECIMAL_BYTES]);
