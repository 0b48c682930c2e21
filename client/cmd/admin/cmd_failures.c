/* trainctl failures: the failure rules, and how many failures each has labelled. */
#include "client/cmd.h"
#include "client/views/format.h"
#include "client/views/table.h"
#include "common/json.h"

static const char *failures_restart_words(const json_t *rule)
{
    const json_t *restart = json_object_get(rule, "restart");

    return json_is_true(restart) ? "yes" : json_is_false(restart) ? "no" : "-";
}

static void failures_print(const json_t *answer)
{
    struct libscols_table *table =
        table_create(1, "LABEL,COUNT>,RESTART,DRAIN,NOTIFY,BY,PATTERN~?");
    char text[FORMAT_BYTES];
    const json_t *rule;
    size_t i;

    json_array_foreach (json_object_get(answer, "rules"), i, rule) {
        struct libscols_line *line = table_line(table);
        table_set(line, 0, json_get_text(rule, "label", ""));
        table_set(line, 1, format_count(text, sizeof text, json_get_integer(rule, "count", 0)));
        table_set(line, 2, failures_restart_words(rule));
        table_set(line, 3, json_get_text(rule, "drain", ""));
        table_set(line, 4, json_is_true(json_object_get(rule, "notify")) ? "yes" : "-");
        table_set(line, 5,
                  json_is_true(json_object_get(rule, "shipped")) ? "traind" : "failure_rules");
        table_set(line, 6, json_get_text(rule, "pattern", ""));
    }
    struct libscols_line *line = table_line(table);
    table_set(line, 0, "(none)");
    table_set(line, 1, format_count(text, sizeof text, json_get_integer(answer, "unlabelled", 0)));
    table_finish(table);
}

/* clang-format off */
const struct cmd cmd_failures_entry = {
    .name = "failures", .synopsis = "",
    .help = "list the failure rules, with the failures since the start of the daemon", .example = "trainctl failures",
    .run = cmd_show_document, .document = "/v1/failures", .print = failures_print,
};
/* clang-format on */
