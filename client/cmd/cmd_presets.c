#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/cmd.h"
#include "client/views/format.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/json.h"
#include "common/job/recipe/preset.h"
#include "common/text.h"

static void presets_table(const json_t *presets)
{
    struct libscols_table *table = table_create(1, "NAME,NETWORK~,BATCH>,EPOCHS>,TOP-1>");
    char text[FORMAT_BYTES];
    const json_t *preset;
    size_t i;

    json_array_foreach (presets, i, preset) {
        const json_t *document = json_object_get(preset, "document");
        const json_t *cluster = json_object_get(document, "cluster");
        long long batch = json_get_integer(document, "batch_per_worker", 0) *
                          json_get_integer(document, "accumulate_steps", 1) *
                          json_get_integer(cluster, "nodes", 1) *
                          json_get_integer(cluster, "workers_per_node", 1);
        struct libscols_line *line = table_line(table);
        table_set(line, 0, json_get_text(preset, "name", ""));
        table_set(line, 1, json_get_text(json_object_get(document, "model"), "arch", "-"));
        table_set(line, 2, format_count(text, sizeof text, batch));
        table_set(line, 3,
                  format_number(text, sizeof text, json_get_number(document, "epochs", NAN)));
        table_set(line, 4, format_percent(text, sizeof text, json_get_number(preset, "top1", NAN)));
    }
    table_finish(table);
}

static void presets_print_curve(const json_t *curve)
{
    char percent[FORMAT_BYTES];
    const json_t *point;
    size_t i;

    json_array_foreach (curve, i, point)
        printf("%s%s after %g", i ? ", " : "Top-1 by epoch: ",
               format_percent(percent, sizeof percent, json_number_value(json_array_get(point, 1))),
               json_number_value(json_array_get(point, 0)));
    if (curve)
        putchar('\n');
}

static int presets_show(const json_t *presets, const char *name)
{
    struct suggest near = {.word = name};
    const json_t *preset;
    struct error e;
    size_t i;

    json_array_foreach (presets, i, preset) {
        text_suggest(&near, json_get_text(preset, "name", ""));
        if (strcmp(json_get_text(preset, "name", ""), name) != 0)
            continue;
        if (client.json) {
            print_json(preset);
            return 0;
        }
        print_wrapped(stdout, "", 0, json_get_text(preset, "description", ""));
        print_wrapped(stdout, "Source: ", 8, json_get_text(preset, "source", ""));
        presets_print_curve(json_object_get(preset, "top1_by_epoch"));
        putchar('\n');
        print_json(json_object_get(preset, "document"));
        return 0;
    }
    error_set(&e, ERR_NOT_FOUND, "there is no preset \"%s\"%s%s%s", name,
              near.best ? "; did you mean \"" : "", near.best ? near.best : "",
              near.best ? "\"?" : "");
    return cmd_fail(&e);
}

static int cmd_presets(const struct cmd_args *args)
{
    json_t *presets = preset_list();
    int code = 0;

    if (args->operand_count)
        code = presets_show(presets, args->operands[0]);
    else if (client.json)
        print_json(presets);
    else if (json_array_size(presets) == 0)
        printf("No presets in %s.\n", preset_folder());
    else
        presets_table(presets);
    json_decref(presets);
    return code;
}

/* clang-format off */
const struct cmd cmd_presets_entry = {
    .name = "presets", .synopsis = "[NAME]",
    .help = "list the presets, or show the values of one", .example = "trainctl presets surfsara-24k",
    .run = cmd_presets, .completion = "preset", .operands = {0, 1},
};
/* clang-format on */
