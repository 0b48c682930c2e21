/* Plots curves as text: a line of blocks (sparkline), or a grid of braille characters of 2 x 4
 * dots; ASCII without UTF-8. Pure functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* x must not decrease; y NAN is a gap. */
struct plot_points {
    const double *x, *y;
    size_t count;
};

#define PLOT_SPARK_BYTES(columns) (3 * (columns) + 1)

/* Shows the mean of the points in each column; an empty one repeats the previous one. Returns
 * text. */
char *plot_spark(char *text, size_t bytes, const struct plot_points *points, int columns,
                 bool utf8);

struct plot_series {
    struct plot_points points;
    char mark; /* letter drawn at each point, or '\0' */
};

enum plot_axes {
    PLOT_LINEAR = 0,
    PLOT_LOG_X = 1,
    PLOT_LOG_Y = 2
}; /* log axes need values above 0 */

struct plot;

/* columns, rows: total size, including labels on the left and, from 5 rows on, two lines of axis at
 * the bottom. Returns NULL if that is too small or there are no points. */
struct plot *plot_create(const struct plot_points *points, int columns, int rows, bool utf8);

/* Plots several curves on common axes; axes: bits of enum plot_axes. */
struct plot *plot_create_series(const struct plot_series *series, size_t count, int axes,
                                int columns, int rows, bool utf8);
void plot_destroy(struct plot *plot); /* NULL-safe */

/* Returns line i from the top, NULL past the last. Valid until the next call. */
const char *plot_line(struct plot *plot, int i);
