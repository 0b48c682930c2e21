#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/job.h"
#include "client/views/plot.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/run/attempt.h"
#include "common/xalloc.h"

#define NAMES_DEFAULT "loss,lr,images_per_sec"
#define NAMES_MAX     32
#define POINTS_MAX    20000 /* the API's limit */
#define NAME_CHARS    "abcdefghijklmnopqrstuvwxyz0123456789_"

struct columns {
    char copy[512];
    const char *x;
    const char *names[NAMES_MAX];
    size_t first;
    size_t count;
};

static int metrics_columns_read(struct columns *columns, const char *list, struct error *e)
{
    columns->count = 0;
    columns->names[columns->count++] = "step";
    columns->names[columns->count++] = "epoch";
    if (strcmp(columns->x, "images") == 0)
        columns->names[columns->count++] = "images";
    columns->first = columns->count;
    if (strlen(list) >= sizeof columns->copy || strspn(list, NAME_CHARS ",") != strlen(list))
        return error_set(e, ERR_USAGE,
                         "--names takes metrics separated by commas, e.g. " NAMES_DEFAULT);
    strcpy(columns->copy, list);
    for (char *name = strtok(columns->copy, ","); name; name = strtok(NULL, ",")) {
        if (columns->count == NAMES_MAX)
            return error_set(e, ERR_USAGE, "--names takes at most %d names",
                             (int)(NAMES_MAX - columns->first));
        columns->names[columns->count++] = name;
    }
    if (columns->count == columns->first)
        return error_set(e, ERR_USAGE, "--names is empty; try " NAMES_DEFAULT);
    for (size_t c = columns->first; c < columns->count; c++)
        if (cmd_word(columns->names[c], "metric", cmd_metric_at, e))
            return -(int)e->code;
    return 0;
}

static const char *metrics_format_cell(char *text, size_t bytes, const json_t *answer,
                                       const char *name, size_t i, const char *format)
{
    const json_t *value = json_array_get(json_object_get(answer, name), i);

    if (json_is_integer(value))
        snprintf(text, bytes, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(text, bytes, format, json_real_value(value));
    else
        *text = '\0';
    return text;
}

static size_t metrics_row_count(const json_t *answer)
{
    return json_array_size(json_object_get(answer, "step"));
}

static void metrics_print_csv(const json_t *answer, const struct columns *columns)
{
    char text[40];

    for (size_t c = 0; c < columns->count; c++)
        printf("%s%s", c ? "," : "", columns->names[c]);
    putchar('\n');
    for (size_t i = 0; i < metrics_row_count(answer); i++) {
        for (size_t c = 0; c < columns->count; c++)
            printf("%s%s", c ? "," : "",
                   metrics_format_cell(text, sizeof text, answer, columns->names[c], i, "%.9g"));
        putchar('\n');
    }
}

static void metrics_print_table(const json_t *answer, const struct columns *columns)
{
    struct libscols_table *table = table_create(1, "");
    char text[40];

    for (size_t c = 0; c < columns->count; c++)
        table_column(table, columns->names[c], TABLE_RIGHT);
    for (size_t i = 0; i < metrics_row_count(answer); i++) {
        struct libscols_line *line = table_line(table);
        for (size_t c = 0; c < columns->count; c++)
            table_set(line, c,
                      metrics_format_cell(text, sizeof text, answer, columns->names[c], i, "%.4g"));
    }
    table_finish(table);
}

#define PLOT_ROWS_MIN   8
#define PLOT_ROWS_MAX   18
#define PLOT_COLUMNS    400
#define DOTS_PER_COLUMN 2

static double *metrics_numbers(const json_t *values, size_t count)
{
    double *numbers = xcalloc(count + 1, sizeof *numbers);

    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(values, i);
        numbers[i] = json_is_number(value) ? json_number_value(value) : NAN;
    }
    return numbers;
}

static void metrics_print_plot(const char *name, const char *x, const struct plot_points *points,
                               int rows)
{
    int columns = terminal_columns() < PLOT_COLUMNS ? terminal_columns() : PLOT_COLUMNS;
    struct plot *plot = plot_create(points, columns, rows, terminal_utf8());
    const char *unit = "", *line, *bold = client.color ? "\033[1m" : "";

    for (size_t i = 0; event_metric_at(i); i++)
        if (strcmp(event_metric_at(i)->name, name) == 0)
            unit = event_metric_at(i)->unit;
    printf("%s%s%s%s%s by %s\n", bold, name, *bold ? "\033[0m" : "", *unit ? ", " : "",
           strcmp(name, unit) == 0 ? "" : unit, x);
    if (!plot)
        puts("  no numbers");
    for (int i = 0; plot && (line = plot_line(plot, i)); i++)
        puts(line);
    plot_destroy(plot);
}

static void metrics_print_plots(const json_t *answer, const struct columns *columns)
{
    size_t count = metrics_row_count(answer);
    double *x = metrics_numbers(json_object_get(answer, columns->x), count);
    int rows = (terminal_rows() - 1) / (int)(columns->count - columns->first) - 2;

    rows = rows < PLOT_ROWS_MIN ? PLOT_ROWS_MIN : rows > PLOT_ROWS_MAX ? PLOT_ROWS_MAX : rows;
    for (size_t c = columns->first; c < columns->count; c++) {
        double *y = metrics_numbers(json_object_get(answer, columns->names[c]), count);
        if (c > columns->first)
            putchar('\n');
        metrics_print_plot(columns->names[c], columns->x, &(struct plot_points){x, y, count}, rows);
        free(y);
    }
    free(x);
}

static const char *metrics_axis_at(size_t i)
{
    static const char *const axes[] = {"step", "images", "epoch"};

    return i < sizeof axes / sizeof axes[0] ? axes[i] : NULL;
}

static int metrics_fetch(const struct cmd_args *args, struct columns *columns, json_t **answer,
                         struct error *e)
{
    const char *names = cmd_value(args, "names"), *points = cmd_value(args, "points");
    char path[1024];
    long id, count;

    columns->x = cmd_value(args, "x") ? cmd_value(args, "x") : "step";
    if (cmd_word(columns->x, "x axis", metrics_axis_at, e))
        return -(int)e->code;
    if (cmd_job_id(args->operands[0], &id, e) < 0 ||
        metrics_columns_read(columns, names ? names : NAMES_DEFAULT, e) < 0)
        return -(int)e->code;
    int used = snprintf(path, sizeof path, "/v1/jobs/%ld/metrics?names=%s", id,
                        names ? names : NAMES_DEFAULT);
    if (!points && cmd_flag(args, "plot"))
        snprintf(path + used, sizeof path - (size_t)used, "&points=%d",
                 DOTS_PER_COLUMN * terminal_columns());
    if (points) {
        if (cmd_number(points, "points", 2, POINTS_MAX, &count, e) < 0)
            return -(int)e->code;
        snprintf(path + used, sizeof path - (size_t)used, "&points=%ld", count);
    }
    return api_get(path, answer, e);
}

static int metrics_say_no_steps(const char *id_text, struct error *e)
{
    struct job job;
    json_t *json;
    long id;

    if (cmd_job_id(id_text, &id, e) < 0 || job_fetch(id, &json, &job, e) < 0)
        return -(int)e->code;
    if (job_evaluates_only(&job))
        printf("job %ld is an evaluation and has no steps\n", id);
    else
        printf("job %ld has no steps%s\n", id, job_ended(&job) ? "" : " yet");
    json_decref(json);
    return 0;
}

static int cmd_metrics(const struct cmd_args *args)
{
    struct columns columns;
    struct error e;
    json_t *answer;
    int status = 0;

    if (client.json + cmd_flag(args, "csv") + cmd_flag(args, "plot") > 1)
        return cmd_usage(args->cmd, "--json, --csv and --plot exclude each other");
    if (metrics_fetch(args, &columns, &answer, &e) < 0)
        return cmd_fail(&e);
    if (client.json)
        print_json(answer);
    else if (cmd_flag(args, "csv"))
        metrics_print_csv(answer, &columns);
    else if (metrics_row_count(answer) == 0)
        status = metrics_say_no_steps(args->operands[0], &e);
    else if (cmd_flag(args, "plot"))
        metrics_print_plots(answer, &columns);
    else
        metrics_print_table(answer, &columns);
    json_decref(answer);
    return status < 0 ? cmd_fail(&e) : 0;
}

/* clang-format off */
const struct cmd cmd_metrics_entry = {
    .name = "metrics", .synopsis = "[--names A,B] [--points N] [--x AXIS] [--csv|--plot] ID",
    .help = "print or plot a job's metrics", .example = "trainctl metrics --names loss,top1 --plot latest",
    .run = cmd_metrics, .completion = "job", .operands = {1, 1},
    .options = {
        OPTION("names", 0, "A,B", "metrics to print (loss,lr,images_per_sec)", "metric"),
        OPTION("points", 0, "N", "at most N rows, each the mean of equally many steps, placed at their middle", NULL),
        OPTION("x", 0, "AXIS", "x axis of curves: step, images (seen) or epoch; images adds a column", "step|images|epoch"),
        OPTION("csv", 0, NULL, "print comma-separated values", NULL),
        OPTION("plot", 'p', NULL, "draw curves in the terminal", NULL),
    },
};
/* clang-format on */
