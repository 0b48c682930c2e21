#include "client/views/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/views/format.h"
#include "common/xalloc.h"

#define LINE_BYTES 4096
#define AXIS_ROWS  2
#define GRID_MAX   (LINE_BYTES / 3 - FORMAT_BYTES)

struct range {
    double low, high;
    bool log;
};

static struct range plot_range(const double *values, size_t count)
{
    struct range r = {.low = INFINITY, .high = -INFINITY};

    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            r.low = fmin(r.low, values[i]);
            r.high = fmax(r.high, values[i]);
        }
    return r;
}

static double plot_share(const struct range *r, double value)
{
    if (r->log)
        return r->high > r->low ? log(value / r->low) / log(r->high / r->low) : 0.5;
    return r->high > r->low ? (value - r->low) / (r->high - r->low) : 0.5;
}

static void plot_means(const struct plot_points *p, int columns, double *mean)
{
    struct range x = plot_range(p->x, p->count);
    int *count = xcalloc((size_t)columns, sizeof *count);

    for (int c = 0; c < columns; c++)
        mean[c] = 0;
    for (size_t i = 0; i < p->count; i++) {
        int c = (int)fmin(plot_share(&x, p->x[i]) * columns, columns - 1);
        if (!isfinite(p->y[i]))
            continue;
        mean[c] += p->y[i];
        count[c]++;
    }
    for (int c = 0; c < columns; c++)
        mean[c] = count[c] ? mean[c] / count[c] : NAN;
    free(count);
}

char *plot_spark(char *text, size_t bytes, const struct plot_points *points, int columns, bool utf8)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {"_", "_", ".", ".", "-", "-", "^", "^"};
    double *mean = xcalloc((size_t)columns, sizeof *mean);
    size_t used = 0;

    *text = '\0';

    plot_means(points, columns, mean);
    struct range y = plot_range(mean, (size_t)columns);
    for (int c = 0; c < columns && used + 4 <= bytes; c++) {
        if (c > 0 && isnan(mean[c]))
            mean[c] = mean[c - 1];
        int level = isnan(mean[c]) ? 0 : (int)fmin(plot_share(&y, mean[c]) * 8, 7);
        const char *cell = isnan(mean[c]) ? " " : (utf8 ? blocks : plain)[level];
        used += (size_t)snprintf(text + used, bytes - used, "%s", cell);
    }
    free(mean);
    return text;
}

struct plot {
    struct range x, y;
    int columns, rows, gutter; /* size of the grid in cells; width of the labels in columns */
    bool utf8, axis;
    unsigned char *cells; /* (rows, columns): dots in braille numbering */
    char *marks;          /* (rows, columns): letters drawn over them, or '\0' */
    char line[LINE_BYTES];
};

static void plot_dot(struct plot *p, int x, int y)
{
    static const unsigned char bits[4][2] = {
        {1,  8  },
        {2,  16 },
        {4,  32 },
        {64, 128}
    };

    p->cells[y / 4 * p->columns + x / 2] |= bits[y % 4][x % 2];
}

static void plot_stroke(struct plot *p, int x, int y, int to_x, int to_y)
{
    int dx = abs(to_x - x), dy = -abs(to_y - y);
    int step_x = x < to_x ? 1 : -1, step_y = y < to_y ? 1 : -1, error = dx + dy;

    for (;;) {
        int twice = 2 * error;
        plot_dot(p, x, y);
        if (x == to_x && y == to_y)
            return;
        if (twice >= dy) {
            error += dy;
            x += step_x;
        }
        if (twice <= dx) {
            error += dx;
            y += step_y;
        }
    }
}

static void plot_draw(struct plot *p, const struct plot_series *series)
{
    const struct plot_points *points = &series->points;
    int last_x = -1, last_y = 0;

    for (size_t i = 0; i < points->count; i++) {
        if (!isfinite(points->y[i])) {
            last_x = -1;
            continue;
        }
        int x = (int)lround(plot_share(&p->x, points->x[i]) * (2 * p->columns - 1));
        int y = (int)lround((1 - plot_share(&p->y, points->y[i])) * (4 * p->rows - 1));
        plot_stroke(p, last_x < 0 ? x : last_x, last_x < 0 ? y : last_y, x, y);
        if (series->mark)
            p->marks[y / 4 * p->columns + x / 2] = series->mark;
        last_x = x;
        last_y = y;
    }
}

static const char *plot_label(const struct plot *p, int row, char text[FORMAT_BYTES])
{
    bool flat = !(p->y.low < p->y.high);
    double value = row == 0             ? p->y.high
                   : row == p->rows - 1 ? p->y.low
                   : p->y.log           ? sqrt(p->y.low * p->y.high)
                                        : (p->y.low + p->y.high) / 2;

    *text = '\0';
    if (flat
            ? row == p->rows / 2
            : row == 0 || row == p->rows - 1 || (p->rows >= 5 && p->rows % 2 && row == p->rows / 2))
        format_number(text, FORMAT_BYTES, value);
    return text;
}

static void plot_widen(struct range *r, const struct range *other)
{
    r->low = fmin(r->low, other->low);
    r->high = fmax(r->high, other->high);
}

struct plot *plot_create_series(const struct plot_series *series, size_t count, int axes,
                                int columns, int rows, bool utf8)
{
    struct plot *p = xcalloc(1, sizeof *p);
    char text[FORMAT_BYTES];
    p->utf8 = utf8;
    p->axis = rows >= 5;
    p->rows = rows - (p->axis ? AXIS_ROWS : 0);
    p->x = p->y = plot_range(NULL, 0);
    for (size_t i = 0; i < count; i++) {
        struct range x = plot_range(series[i].points.x, series[i].points.count);
        struct range y = plot_range(series[i].points.y, series[i].points.count);
        plot_widen(&p->x, &x);
        plot_widen(&p->y, &y);
    }
    p->x.log = axes & PLOT_LOG_X;
    p->y.log = axes & PLOT_LOG_Y;
    for (int row = 0; row < p->rows; row++) {
        int width = (int)strlen(plot_label(p, row, text));
        p->gutter = width > p->gutter ? width : p->gutter;
    }
    p->columns = columns - p->gutter - 2 < GRID_MAX ? columns - p->gutter - 2 : GRID_MAX;
    if (p->rows < 1 || p->columns < 4 || !(p->y.low <= p->y.high)) {
        plot_destroy(p);
        return NULL;
    }
    p->cells = xcalloc((size_t)(p->rows * p->columns), 1);
    p->marks = xcalloc((size_t)(p->rows * p->columns), 1);
    for (size_t i = 0; i < count; i++)
        plot_draw(p, &series[i]);
    return p;
}

struct plot *plot_create(const struct plot_points *points, int columns, int rows, bool utf8)
{
    return plot_create_series(&(struct plot_series){*points, '\0'}, 1, PLOT_LINEAR, columns, rows,
                              utf8);
}

void plot_destroy(struct plot *plot)
{
    if (plot) {
        free(plot->cells);
        free(plot->marks);
    }
    free(plot);
}

static char *plot_cell(char *at, unsigned char dots, char mark, bool utf8)
{
    if (mark) {
        *at++ = mark;
        return at;
    }
    if (!utf8 || !dots) {
        *at++ = dots ? '*' : ' ';
        return at;
    }
    *at++ = (char)0xe2; /* U+2800 + dots */
    *at++ = (char)(0xa0 + (dots >> 6));
    *at++ = (char)(0x80 + (dots & 0x3f));
    return at;
}

static const char *plot_grid_line(struct plot *p, int row)
{
    char text[FORMAT_BYTES];
    bool labelled = *plot_label(p, row, text);
    char *at = p->line + snprintf(p->line, LINE_BYTES, "%*s %s", p->gutter, text,
                                  !p->utf8   ? "|"
                                  : labelled ? "┤"
                                             : "│");

    for (int c = 0; c < p->columns; c++)
        at = plot_cell(at, p->cells[row * p->columns + c], p->marks[row * p->columns + c], p->utf8);
    while (at[-1] == ' ')
        at--;
    *at = '\0';
    return p->line;
}

const char *plot_line(struct plot *plot, int i)
{
    char first[FORMAT_BYTES], last[FORMAT_BYTES], *line = plot->line;

    if (i < plot->rows)
        return plot_grid_line(plot, i);
    if (!plot->axis || i > plot->rows + 1)
        return NULL;
    if (i == plot->rows) {
        char *at =
            line + snprintf(line, LINE_BYTES, "%*s %s", plot->gutter, "", plot->utf8 ? "└" : "+");
        for (int c = 0; c < plot->columns; c++)
            at = stpcpy(at, plot->utf8 ? "─" : "-");
        return line;
    }
    snprintf(first, sizeof first, "%.10g", plot->x.low);
    snprintf(last, sizeof last, "%.10g", plot->x.high);
    int capacity = plot->columns - (int)strlen(first);
    snprintf(line, LINE_BYTES, "%*s%s%*s", plot->gutter + 2, "", first, capacity > 0 ? capacity : 0,
             last);
    return line;
}
