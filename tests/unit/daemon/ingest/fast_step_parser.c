#include "daemon/ingest/fast_step_parser.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/daemon/ingest/same_step.h"

#define LINE_BYTES 4096

/* A build with sanitizers reads a tenth as fast. */
#ifdef __SANITIZE_ADDRESS__
enum { LINES = 2000 };
#else
enum { LINES = 20000 };
#endif

static uint64_t state = 88172645463325252u; /* xorshift64 */

static unsigned draw_line(unsigned below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 33) % below;
}

/* As worker/train.c writes it. */
static void usual_line(char *line)
{
    double scale = pow(10, (int)draw_line(12) - 6);
    int used = snprintf(line, LINE_BYTES,
                        "{\"seq\": %u, \"t\": %.6f, \"type\": \"step\", \"step\": %u, "
                        "\"epoch\": %.9g, \"loss\": %.9g, \"lr\": %.9g",
                        draw_line(1u << 30), 1.7e9 + draw_line(1u << 30) / 1e6, draw_line(1000000),
                        draw_line(1u << 30) / 1e7, draw_line(1u << 30) * scale,
                        draw_line(1u << 30) * 1e-12);

    for (int i = 2; event_metric_at((size_t)i); i++)
        used += snprintf(line + used, (size_t)(LINE_BYTES - used),
                         draw_line(20) ? ", \"%s\": %.9g" : ", \"%s\": null",
                         event_metric_at((size_t)i)->name, draw_line(1u << 30) * scale);
    snprintf(line + used, (size_t)(LINE_BYTES - used),
             ", \"rank_busy_ms\": [%.6g, %.6g], \"rank_data_ms\": []}", draw_line(1000) / 7.0,
             draw_line(1000) / 3.0);
}

/* What is read is what jansson reads. True: it was read. */
static bool agrees(const char *line)
{
    struct store_event event;
    size_t own;

    if (!fast_step_parse(line, &event, &own))
        return false;
    const char *wrong = same_step_wrong(line, &event, own);
    cr_assert_null(wrong, "%s of %s", wrong, line);
    return true;
}

Test(fast_step_parser, the_workers_lines_are_read)
{
    char line[LINE_BYTES];

    for (int i = 0; i < LINES; i++) {
        usual_line(line);
        cr_assert(agrees(line), "%s", line);
    }
}

static void change_line(char *line)
{
    static const char *const pieces[] = {"0",
                                         "-",
                                         "-0",
                                         "1e5",
                                         "E-7",
                                         "e+300",
                                         "e-400",
                                         "e9999",
                                         ".",
                                         ".5",
                                         "00",
                                         " ",
                                         ",",
                                         ", ",
                                         "\"",
                                         ": ",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         "[]",
                                         "[1, 2]",
                                         "null",
                                         "tr",
                                         "true",
                                         "\\u0041",
                                         "\t",
                                         "loss",
                                         "step",
                                         "seq",
                                         "\r",
                                         "\x80",
                                         "1e",
                                         "\"loss\": 1, ",
                                         "\"t\": 2, ",
                                         "99999999999999999999",
                                         "9007199254740993",
                                         "0.30000000000000004",
                                         "123456789012345678.5",
                                         "9223372036854775807",
                                         "1.7976931348623157e308",
                                         "5e-324",
                                         "NaN",
                                         "Infinity"};
    char text[2 * LINE_BYTES];
    size_t length = strlen(line), at = draw_line((unsigned)length + 1);
    size_t cut = draw_line(4) ? draw_line(4) : draw_line(24);

    if (at + cut > length)
        cut = length - at;
    const char *piece = draw_line(3) ? pieces[draw_line(sizeof pieces / sizeof pieces[0])] : "";
    snprintf(text, sizeof text, "%.*s%s%s", (int)at, line, piece, line + at + cut);
    memcpy(line, text, strlen(text) + 1); /* some thousand bytes have room for two changes */
}

Test(fast_step_parser, changed_lines_are_read_as_by_jansson_or_left_to_it)
{
    char line[LINE_BYTES];
    int read = 0;

    for (int i = 0; i < 5 * LINES; i++) {
        usual_line(line);
        for (unsigned n = 1 + draw_line(2); n; n--)
            change_line(line);
        read += agrees(line);
    }
    cr_assert_gt(read, LINES / 20, "most changes spoil a line, but not all");
}

#define BEGIN "{\"seq\": 1, \"t\": 2, \"type\": \"step\", "

Test(fast_step_parser, unusual_lines_are_left_to_the_library)
{
    static const char *const lines[] = {
        "",
        "{}",
        "{\"seq\": 1, \"t\": 2, \"type\": \"step\"}",
        "{\"seq\": 1, \"t\": 2, \"type\": \"eval\", \"step\": 1}",
        "{\"t\": 2, \"seq\": 1, \"type\": \"step\", \"step\": 1}",
        "{\"seq\": 1.5, \"t\": 2, \"type\": \"step\", \"step\": 1}",
        BEGIN "\"step\": 1",
        BEGIN "\"step\": 1} ",
        BEGIN "\"step\": 1}\r",
        BEGIN "\"step\": 1, }",
        BEGIN "\"step\": 01}",
        BEGIN "\"step\": 1, \"loss\": 1, \"loss\": 1}",
        BEGIN "\"step\": 1, \"other\": 1, \"other\": 1}",
        BEGIN "\"step\": 1, \"t\": 1}",
        BEGIN "\"step\": 1, \"loss\": \"high\"}",
        BEGIN "\"step\": 1, \"loss\": 1e400}",
        BEGIN "\"step\": 1, \"loss\": NaN}",
        BEGIN "\"step\": 1, \"loss\": [1,2]}",
        BEGIN "\"step\": 1, \"loss\": [1, [2]]}",
        BEGIN "\"step\": 9999999999999999999}",
        BEGIN "\"lo\\u0073s\": 1}",
    };
    struct store_event event;
    size_t own;

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        cr_assert_not(fast_step_parse(lines[i], &event, &own), "%s", lines[i]);
    cr_assert(agrees(BEGIN "\"step\": 1}"));
    cr_assert(agrees(BEGIN "\"step\": 1.0, \"loss\": -0, \"lr\": -0.0, \"other\": 5e-324}"));
    cr_assert(agrees(BEGIN "\"loss\": 123456789012345678.5, \"lr\": 0.1234567890123456789}"));
    cr_assert(agrees(BEGIN "\"grad_norm\": null, \"loss\": 9007199254740993.0, \"lr\": 1E+22}"));
}
