/* A number as people write it. */
#ifndef TRAIND_COMMON_TEXT_DECIMAL_H
#define TRAIND_COMMON_TEXT_DECIMAL_H

#define DECIMAL_BYTES 32

/* The fewest digits that give x back as it is: 0.07, 2, 1e-5, and not 0.070000000000000007 or
 * 1e-05. Returns text. */
const char *decimal_text(double x, char text[DECIMAL_BYTES]);

#endif
