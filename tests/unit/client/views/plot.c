/* Curves in text: what stands where, and that it fits. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/views/plot.h"

static const double xs[] = {1, 2, 3, 4}, rising[] = {0, 1, 2, 3}, flat[] = {5, 5, 5, 5};

static int plot_columns(const char *text)
{
    int columns = 0;

    for (; *text; text++)
        columns += (*text & 0xc0) != 0x80;
    return columns;
}

Test(plot, a_sparkline_rises_with_its_values)
{
    struct plot_points up = {xs, rising, 4};
    char text[PLOT_SPARK_BYTES(8)];

    cr_expect_str_eq(plot_spark(text, sizeof text, &up, 4, true), "▁▃▆█");
    cr_expect_str_eq(plot_spark(text, sizeof text, &up, 2, false), "_^");
    cr_expect_str_eq(plot_spark(text, sizeof text, &up, 8, true), "▁▁▃▃▃▆▆█");
}

Test(plot, a_straight_line_is_a_diagonal_of_dots)
{
    struct plot_points up = {xs, rising, 4};
    struct plot *plot = plot_create(&up, 5, 2, true);

    /* 2 columns of cells are 4 of dots, 2 rows are 8 */
    cr_assert_null(plot, "less than 4 columns beside the labels are no plot");
    plot = plot_create(&up, 7, 2, true);
    cr_assert_not_null(plot);
    cr_expect_str_eq(plot_line(plot, 0), "3 ┤  ⡠⠊");
    cr_expect_str_eq(plot_line(plot, 1), "0 ┤⡠⠊");
    cr_expect_null(plot_line(plot, 2));
    plot_destroy(plot);
}

Test(plot, labels_and_axis_show_the_range)
{
    struct plot_points points = {xs, flat, 4};
    struct plot *plot = plot_create(&points, 40, 7, true);

    cr_assert_not_null(plot);
    cr_expect_eq(strncmp(plot_line(plot, 2), "5 ┤", 4), 0);
    cr_expect_str_eq(plot_line(plot, 0), "  │", "one value needs one label");
    cr_expect(strstr(plot_line(plot, 5), "└──"));
    cr_expect(strstr(plot_line(plot, 6), "   1  ") && strstr(plot_line(plot, 6), " 4"));
    cr_expect_null(plot_line(plot, 7));
    plot_destroy(plot);
}

Test(plot, no_line_is_wider_than_asked)
{
    double x[300], y[300];

    for (int i = 0; i < 300; i++) {
        x[i] = i;
        y[i] = i % 7 == 3 ? NAN : sin(i / 20.0) * 1e5;
    }
    struct plot_points points = {x, y, 300};
    for (int columns = 1; columns < 200; columns++)
        for (int rows = 1; rows < 12; rows++) {
            struct plot *plot = plot_create(&points, columns, rows, columns % 2);
            const char *line;
            int lines = 0;
            for (; plot && (line = plot_line(plot, lines)); lines++)
                cr_assert_leq(plot_columns(line), columns, "%s", line);
            cr_assert(!plot || lines == rows);
            plot_destroy(plot);
        }
}

Test(plot, no_plot_is_drawn_without_numbers)
{
    static const double none[] = {NAN, NAN};
    struct plot_points nothing = {xs, none, 2}, empty = {xs, rising, 0};

    cr_expect_null(plot_create(&nothing, 80, 10, true));
    cr_expect_null(plot_create(&empty, 80, 10, true));
}

Test(plot, several_series_share_log_axes_and_carry_their_letters)
{
    static const double x[] = {1, 10, 100}, twice[] = {10, 100, 1000}, ones[] = {1, 1, 1};
    const struct plot_series series[] = {
        {{x, twice, 3}, 'a'},
        {{x, ones, 3},  'b'}
    };
    struct plot *plot = plot_create_series(series, 2, PLOT_LOG_X | PLOT_LOG_Y, 26, 9, false);

    cr_assert_not_null(plot);
    const char *top = plot_line(plot, 0);
    cr_expect_eq(top[strlen(top) - 1], 'a', "the largest is at the top right: %s", top);
    const char *bottom = plot_line(plot, 6), *middle = strchr(bottom, 'b');
    cr_assert_not_null(middle, "%s", bottom);
    middle = strchr(middle + 1, 'b');
    cr_expect_leq(labs((middle - strchr(bottom, 'b')) - (strrchr(bottom, 'b') - middle)), 1,
                  "10 is halfway from 1 to 100: %s", bottom);
    plot_destroy(plot);
}
