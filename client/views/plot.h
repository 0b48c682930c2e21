/*
 * Curves in text: one line of blocks (a sparkline), or a grid of braille characters with 2 x 4 dots
 * a cell; without UTF-8 plain characters. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* x must not fall; a y that is NAN is a gap. */
struct plot_points {
    const double *x, *y;
    size_t count;
};

#define PLOT_SPARK_BYTES(columns) (3 * (columns) + 1)

/* Means of the points that fall into each column, by x; a column without one repeats the one
 * before. Returns text. */
char *plot_spark(char *text, size_t bytes, const struct plot_points *points, int columns,
                 bool utf8);

/* One of several curves in a plot. */
struct plot_series {
    struct plot_points points;
    char mark; /* a letter at each point; '\0': the line alone */
};

enum plot_axes { PLOT_LINEAR = 0, PLOT_LOG_X = 1, PLOT_LOG_Y = 2 }; /* log: values above 0 */

struct plot;

/* columns and rows are those of the whole: with the labels on the left, and two lines of axis below
 * where rows is 5 or more. NULL: not enough room, or no point. */
struct plot *plot_create(const struct plot_points *points, int columns, int rows, bool utf8);

/* Several curves on common axes; axes is a sum of enum plot_axes. */
struct plot *plot_create_series(const struct plot_series *series, size_t count, int axes,
                                int columns, int rows, bool utf8);
void plot_destroy(struct plot *plot); /* NULL is fine */

/* Line i from the top, without a newline; NULL behind the last. Valid until the next call. */
const char *plot_line(struct plot *plot, int i);
