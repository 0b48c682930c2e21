/*
 * Curves in text: one line of blocks (a sparkline), or a grid of braille characters with 2 x 4 dots
 * a cell; without UTF-8 plain characters. Pure.
 */
#ifndef TRAIND_CLIENT_PLOT_H
#define TRAIND_CLIENT_PLOT_H

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

struct plot;

/* columns and rows are those of the whole: with the labels on the left, and two lines of axis below
 * where rows is 5 or more. NULL: not enough room, or no point. */
struct plot *plot_create(const struct plot_points *points, int columns, int rows, bool utf8);
void plot_destroy(struct plot *plot); /* NULL is fine */

/* Line i from the top, without a newline; NULL behind the last. Valid until the next call. */
const char *plot_line(struct plot *plot, int i);

#endif
