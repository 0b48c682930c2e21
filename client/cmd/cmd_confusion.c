#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/views/format.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/json.h"

/* "3", or "3 shirt" where the names are known */
static const char *confusion_class(const json_t *answer, const json_t *row, const char *key,
                                   char text[256])
{
    long long label = json_get_integer(row, key, 0);
    const char *name =
        json_string_value(json_array_get(json_object_get(answer, "names"), (size_t)label));

    snprintf(text, 256, name ? "%lld %s" : "%lld", label, name);
    return text;
}

static void confusion_print(const json_t *answer)
{
    double images = json_get_number(answer, "images", 0),
           right = json_get_number(answer, "right", 0);
    double gap = json_get_number(answer, "calibration_error", NAN);
    char text[256];
    const json_t *row;
    size_t i;

    printf("step %lld: %.0f of %.0f images right (%.2f %%)", json_get_integer(answer, "step", 0),
           right, images, 100 * right / images);
    printf(isnan(gap) ? "\n\n" : ", calibration error %.2f %%\n\n", 100 * gap);
    struct libscols_table *table = table_create(1, "WORST CLASSES~,IMAGES>,TOP-1>");
    json_array_foreach (json_object_get(answer, "classes"), i, row) {
        struct libscols_line *line = table_line(table);
        double of = json_get_number(row, "images", 1);
        table_set(line, 0, confusion_class(answer, row, "label", text));
        table_setf(line, 1, "%.0f", of);
        table_setf(line, 2, "%.1f %%", 100 * json_get_number(row, "right", 0) / of);
    }
    table_finish(table);
    putchar('\n');
    table = table_create(1, "CLASS~,TAKEN FOR~,IMAGES>");
    json_array_foreach (json_object_get(answer, "mistakes"), i, row) {
        struct libscols_line *line = table_line(table);
        table_set(line, 0, confusion_class(answer, row, "label", text));
        table_set(line, 1, confusion_class(answer, row, "predicted", text));
        table_setf(line, 2, "%lld", json_get_integer(row, "images", 0));
    }
    table_finish(table);
}

static int cmd_confusion(const struct cmd_args *args)
{
    static const char *const options[] = {"step", "limit"};
    char base[96];
    struct error e;
    long id;

    if (cmd_job_id(args->operands[0], &id, &e) < 0)
        return cmd_fail(&e);
    snprintf(base, sizeof base, "/v1/jobs/%ld/confusion%s", id,
             cmd_flag(args, "csv") ? "?format=csv" : "");
    char *path = cmd_query(args, base, options, 2);
    int code = !cmd_flag(args, "csv") ? cmd_show_path(path, confusion_print)
               : api_get_file(path, "text/csv; charset=utf-8", stdout, &e) < 0 ? cmd_fail(&e)
                                                                               : 0;
    free(path);
    return code;
}

/* clang-format off */
const struct cmd cmd_confusion_entry = {
    .name = "confusion", .synopsis = "[--step STEP] [--limit N] [--csv] ID",
    .help = "show the worst classes and the most frequent mistakes", .example = "trainctl confusion latest",
    .run = cmd_confusion, .completion = "job", .operands = {1, 1},
    .options = {
        OPTION("step", 0, "STEP", "the evaluation after this step (default: the newest)", NULL),
        OPTION("limit", 0, "N", "at most N classes and N mistakes (20)", NULL),
        OPTION("csv", 0, NULL, "print the whole confusion matrix as comma-separated values", NULL),
    },
};
/* clang-format on */
