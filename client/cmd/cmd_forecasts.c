/* trainctl forecasts: how good the estimates of time were. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/cmd.h"
#include "client/views/format.h"
#include "client/views/table.h"
#include "common/json.h"

static const char *forecasts_of_words(const char *of)
{
    return strcmp(of, "time_left") == 0 ? "time left"
           : strcmp(of, "target") == 0  ? "until the target"
                                        : "time to train";
}

static char *forecasts_percent(char text[FORMAT_BYTES], const json_t *score, const char *key,
                               const char *format)
{
    double share = json_get_number(score, key, NAN);

    if (isnan(share))
        return strcpy(text, "-");
    snprintf(text, FORMAT_BYTES, format, 100 * share);
    return text;
}

static void forecasts_print(const json_t *answer)
{
    struct libscols_table *table = table_create(1, "ESTIMATE|,AT>,JOBS>,ERROR>,BIAS>,IN RANGE>");
    char text[FORMAT_BYTES];
    const json_t *score;
    size_t i;

    json_array_foreach (json_object_get(answer, "scores"), i, score) {
        struct libscols_line *line = table_line(table);
        table_set(line, 0, forecasts_of_words(json_get_text(score, "of", "")));
        table_set(line, 1,
                  isnan(json_get_number(score, "share", NAN))
                      ? "start"
                      : forecasts_percent(text, score, "share", "%.0f %%"));
        table_set(line, 2, format_count(text, sizeof text, json_get_integer(score, "jobs", 0)));
        table_set(line, 3, forecasts_percent(text, score, "median_error", "%.0f %%"));
        table_set(line, 4, forecasts_percent(text, score, "median_bias", "%+.0f %%"));
        table_set(line, 5, forecasts_percent(text, score, "inside", "%.0f %%"));
    }
    table_finish(table);
    if (json_get_integer(answer, "jobs", 0) == 0)
        puts("No job has succeeded yet, so no estimate can be judged.");
}

/* clang-format off */
const struct cmd cmd_forecasts_entry = {
    .name = "forecasts", .synopsis = "", .help = "show how accurate time estimates were", .example = "trainctl forecasts",
    .run = cmd_show_document, .document = "/v1/forecasts", .print = forecasts_print,
};
/* clang-format on */
