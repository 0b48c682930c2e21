/*
 * Curves as text: a line of blocks (sparkline), or a grid of braille characters of 2 x 4 dots;
 * ASCII without UTF-8. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* x does not decrease; y NAN is a gap. */
struct plot_points {
    const double *x, *y;
    size_t count;
};

#define PLOT_SPARK_BYTES(columns) (3 * (columns) + 1)

/* The mean of the points in each column; an empty column repeats the previous one. Returns text. */
char *plot_spark(char *text, size_t bytes, const struct plot_points *points, int columns,
                 bool utf8);

struct plot_series {
    struct plot_points points;
    char mark; /* a letter at each point, or '\0' */
};

enum plot_axes {
    PLOT_LINEAR = 0,
    PLOT_LOG_X = 1,
    PLOT_LOG_Y = 2
}; /* log axes need values above 0 */

struct plot;

/* columns, rows: in all, with labels on the left and, from 5 rows on, two lines of axis below.
 * NULL: too small, or no point. */
struct plot *plot_create(const struct plot_points *points, int columns, int rows, bool utf8);

/* Several curves on common axes; axes: of enum plot_axes, or'ed. */
struct plot *plot_create_series(const struct plot_series *series, size_t count, int axes,
                                int columns, int rows, bool utf8);
void plot_destroy(struct plot *plot); /* NULL is fine */

/* Line i from the top, NULL after the last. Valid until the next call. */
const char *plot_line(struct plot *plot, int i);
