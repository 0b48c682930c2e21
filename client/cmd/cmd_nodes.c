#include <math.h>
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/views/format.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/clock.h"
#include "common/json.h"

static void nodes_set_verdict(struct libscols_line *line, size_t column, const json_t *item)
{
    const char *verdict = json_get_text(item, "verdict", "");

    table_set(line, column, verdict);
    table_set_color(line, column,
                    strcmp(verdict, "fine") == 0    ? "green"
                    : strcmp(verdict, "slow") == 0  ? "yellow"
                    : strcmp(verdict, "drain") == 0 ? "red"
                                                    : NULL);
}

static char *nodes_format_decimal(char *text, size_t bytes, double value)
{
    snprintf(text, bytes, isnan(value) ? "-" : "%.1f", value);
    return text;
}

static void nodes_print(const json_t *nodes)
{
    struct libscols_table *table =
        table_create(1, "NAME~,VERDICT,GFLOP/S>,GB/S>,SLOTS>,JOBS~,CHECKED>,REASON~?");
    const json_t *node, *id;
    size_t i, k;

    json_array_foreach (nodes, i, node) {
        struct libscols_line *line = table_line(table);
        char text[128];
        size_t used = 0;
        double checked = json_get_number(node, "checked", NAN);
        table_set(line, 0, json_get_text(node, "name", ""));
        nodes_set_verdict(line, 1, node);
        table_set(line, 2,
                  nodes_format_decimal(text, sizeof text, json_get_number(node, "gflops", NAN)));
        table_set(line, 3,
                  nodes_format_decimal(text, sizeof text,
                                       json_get_number(node, "memory_gb_per_sec", NAN)));
        table_setf(line, 4, "%.0f/%.0f", json_get_number(node, "slots_used", NAN),
                   json_get_number(node, "slots", NAN));
        text[0] = '\0';
        json_array_foreach (json_object_get(node, "jobs"), k, id)
            if (used < sizeof text)
                used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", k ? "," : "",
                                         (long long)json_integer_value(id));
        table_set(line, 5, text);
        table_set(line, 6,
                  isnan(checked) ? "never" : format_ago(text, sizeof text, clock_now() - checked));
        table_set(line, 7, json_get_text(node, "reason", ""));
    }
    table_finish(table);
}

static void nodes_print_history(const json_t *history)
{
    struct libscols_table *table =
        table_create(1, "TIME,PHASE,JOB>,GFLOP/S>,GB/S>?,GHZ>?,LOAD>?,VERDICT,REASON|");
    const json_t *check;
    size_t i;

    json_array_foreach (history, i, check) {
        struct libscols_line *line = table_line(table);
        char text[FORMAT_BYTES];
        table_set(line, 0, format_date(text, sizeof text, json_get_number(check, "t", NAN)));
        table_set(line, 1, json_get_text(check, "phase", ""));
        table_set(line, 2, format_number(text, sizeof text, json_get_number(check, "job", NAN)));
        table_set(line, 3,
                  nodes_format_decimal(text, sizeof text, json_get_number(check, "gflops", NAN)));
        table_set(line, 4,
                  nodes_format_decimal(text, sizeof text,
                                       json_get_number(check, "memory_gb_per_sec", NAN)));
        table_set(line, 5,
                  format_number(text, sizeof text, json_get_number(check, "clock_ghz", NAN)));
        table_set(line, 6, format_number(text, sizeof text, json_get_number(check, "load", NAN)));
        nodes_set_verdict(line, 7, check);
        table_set(line, 8, json_get_text(check, "reason", ""));
    }
    table_finish(table);
}

static void cmd_nodes_print(const json_t *node)
{
    const json_t *list = json_pack("[O]", node), *history = json_object_get(node, "history");

    print_prose("%s: %s%s", json_get_text(node, "name", ""), json_get_text(node, "kind", ""),
                json_is_true(json_object_get(node, "local")) ? ", this daemon's own machine" : "");
    putchar('\n');
    nodes_print(list);
    json_decref((json_t *)list);
    if (*json_get_text(node, "reason", "")) {
        putchar('\n');
        print_prose("%s", json_get_text(node, "reason", ""));
    }
    if (json_array_size(history)) {
        putchar('\n');
        nodes_print_history(history);
    }
}

static int cmd_nodes(const struct cmd_args *args)
{
    struct error e;
    char path[256];
    json_t *answer;

    const char *name = args->operand_count ? args->operands[0] : NULL;
    if (name && (strlen(name) > 64 || strpbrk(name, "/?#% ")))
        return cmd_usage(args->cmd, "\"%.64s\" is not a node name", name);
    if (name)
        snprintf(path, sizeof path, "/v1/nodes/%s", name);
    if (name ? api_get(path, &answer, &e)
             : api_get_pages("/v1/nodes?limit=1000", "nodes", &answer, &e))
        return cmd_fail(&e);
    if (client.json)
        print_json(answer);
    else if (name)
        cmd_nodes_print(answer);
    else
        nodes_print(json_object_get(answer, "nodes"));
    json_decref(answer);
    return 0;
}

/* clang-format off */
const struct cmd cmd_nodes_entry = {
    .name = "nodes", .synopsis = "[NAME]", .help = "list the nodes, or show one with its checks", .example = "trainctl nodes",
    .run = cmd_nodes, .completion = "node", .operands = {0, 1},
};
/* clang-format on */
