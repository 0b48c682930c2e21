#include "worker/report.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/system/file.h"

/* The line that these durations are written in. */
static char *line_of(const double *values, size_t count)
{
    char path[] = "/tmp/traind-test-XXXXXX", *text;
    struct report *r;
    struct error e;
    size_t bytes;

    close(mkstemp(path));
    cr_assert_eq(report_create(path, &r, &e), 0, "%s", e.text);
    report_begin(r, EVENT_STEP);
    report_durations(r, "ms", values, count);
    cr_assert_eq(report_end(r, &e), 0, "%s", e.text);
    report_destroy(r);
    cr_assert_eq(file_read(path, 65536, &text, &bytes, &e), 0, "%s", e.text);
    unlink(path);
    return text;
}

Test(report, durations_are_written_to_thousandths)
{
    const double values[] = {0, 0.0004, 0.0005, 0.999, 0.9996, 12.5, 1234567.891, 999999999999};
    char *text = line_of(values, sizeof values / sizeof values[0]);

    cr_assert_not_null(strstr(text, ", \"ms\": [0.000, 0.000, 0.001, 0.999, 1.000, 12.500, "
                                    "1234567.891, 999999999999.000]}\n"),
                       "%s", text);
    free(text);
}

Test(report, durations_that_are_none_are_0)
{
    const double values[] = {NAN, INFINITY, -INFINITY, -1, 1e12, 1e300};
    char *text = line_of(values, sizeof values / sizeof values[0]);

    cr_assert_not_null(strstr(text, "[0.000, 0.000, 0.000, 0.000, 0.000, 0.000]}\n"), "%s", text);
    free(text);
}

/* As jansson reads them, for numbers of every size. */
Test(report, durations_are_read_back)
{
    double values[3000];
    json_error_t where;
    json_t *number;
    size_t i, count = sizeof values / sizeof values[0];

    for (i = 0; i < count; i++)
        values[i] = pow(10, (double)i / 300 - 3);
    char *text = line_of(values, count);
    json_t *event = json_loads(text, 0, &where);
    cr_assert_not_null(event, "%s", where.text);
    cr_assert_eq(json_array_size(json_object_get(event, "ms")), count);
    json_array_foreach (json_object_get(event, "ms"), i, number)
        cr_assert_float_eq(json_real_value(number), values[i], 0.00051);
    json_decref(event);
    free(text);
}
