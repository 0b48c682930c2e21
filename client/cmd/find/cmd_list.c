#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/cmd/find/list.h"
#include "client/views/print.h"

#define LIMIT_DEFAULT 20

/* Options that are parameters of GET /v1/jobs: first those that narrow the list down. */
static const char *const list_parameters[] = {"user", "name",  "tag",   "where", "label",
                                              "find", "state", "group", "sort",  "after"};
#define LIST_FILTERS    6
#define LIST_PARAMETERS (sizeof list_parameters / sizeof list_parameters[0])

static void cmd_list_print_none(const struct cmd_args *args)
{
    const char *state = cmd_value(args, "state");
    bool filtered = cmd_value(args, "sweep");

    for (size_t i = 0; i < LIST_FILTERS; i++)
        filtered = filtered || cmd_value(args, list_parameters[i]);
    if (filtered)
        puts("No jobs match.");
    else if (state)
        printf("No jobs in state %s.\n", state);
    else
        puts("No jobs yet. Submit one with: trainctl submit FILE");
}

static void list_print(const struct cmd_args *args, const json_t *answer)
{
    const char *group = cmd_value(args, "group");
    const char *list = group ? "groups" : "jobs";

    if (client.json)
        print_json(answer);
    else if (json_array_size(json_object_get(answer, list)) == 0)
        cmd_list_print_none(args);
    else if (group)
        list_print_groups(answer, group);
    else
        list_print_jobs(answer, cmd_value(args, "columns"), cmd_value(args, "output") != NULL);
}

static int cmd_list(const struct cmd_args *args)
{
    struct error e;
    json_t *answer;
    long limit = LIMIT_DEFAULT, sweep = 0;
    char path[96];

    const char *count = cmd_value(args, "limit"), *state = cmd_value(args, "state");
    const char *output = cmd_value(args, "output"), *columns = cmd_value(args, "columns");
    const char *of = cmd_value(args, "sweep");
    if ((count && cmd_number(count, "limit", 1, 1000, &limit, &e) < 0) ||
        (of && cmd_sweep_id(of, &sweep, &e)) ||
        (state && cmd_words(state, "state", cmd_state_at, &e)) ||
        (columns && cmd_words(columns, "column", list_column_at, &e)))
        return cmd_fail(&e);
    bool json = output && strcmp(output, "json") == 0;
    if (output && !json && strcmp(output, "wide") != 0)
        return cmd_usage(args->cmd, "--output takes wide or json, not \"%s\"", output);
    client.json = client.json || json;
    if (columns && cmd_value(args, "group"))
        return cmd_usage(args->cmd, "--columns and --group exclude each other");
    int used = snprintf(path, sizeof path, "/v1/jobs?limit=%ld", limit);
    if (sweep)
        snprintf(path + used, sizeof path - (size_t)used, "&sweep=%ld", sweep);
    char *query = cmd_query(args, path, list_parameters, LIST_PARAMETERS);
    int code = api_get(query, &answer, &e);
    free(query);
    if (code < 0)
        return cmd_fail(&e);
    list_print(args, answer);
    json_decref(answer);
    return 0;
}

/* clang-format off */
const struct cmd cmd_list_entry = {
    .name = "list", .synopsis = "[--state S] [--tag T] [-q WORDS] [--user U] [--name N] [--sweep ID] [--label L] [--where KEY=VALUE] [--sort KEY] [--columns C | -o wide | --group KEY] [--limit N] [--after NEXT]",
    .help = "list jobs, newest first", .example = "trainctl list --state running,queued",
    .run = cmd_list,
    .options = {
        OPTION("state", 0, "S", "only jobs in these states, e.g. running,queued", "state"),
        OPTION("tag", 0, "T", "only jobs with this tag, or with all of several, e.g. baseline,paper", "tag"),
        OPTION("find", 'q', "WORDS", "only jobs with these words in their id, name, tags, note, reason, user, network or data", NULL),
        OPTION("user", 0, "U", "only jobs of this user or token", NULL),
        OPTION("name", 0, "N", "only jobs whose name contains N", NULL),
        OPTION("sweep", 0, "ID", "only jobs of this sweep", "sweep"),
        OPTION("label", 0, "L", "only jobs with this failure label, e.g. out-of-memory", "none"),
        OPTION("where", 0, "KEY=VALUE", "only jobs with this value in their document, e.g. optimizer.name=lars", "key"),
        OPTION("sort", 0, "KEY", "newest, name, priority, top1, loss, images_per_sec, ttt_seconds, finished_at, best_top1 or disk_bytes", "newest|name|priority|top1|loss|images_per_sec|ttt_seconds|finished_at|best_top1|disk_bytes"),
        OPTION("columns", 0, "C,C", "these columns in this order: id, name, state, done, top1, best_top1, best_at, loss, images_per_sec, ttt_seconds, left, user, priority, tags, submitted, finished, disk_bytes, reason, note", "id|name|state|done|top1|best_top1|best_at|loss|images_per_sec|ttt_seconds|left|user|priority|tags|submitted|finished|disk_bytes|reason|note"),
        OPTION("output", 'o', "wide", "show more columns and do not truncate; json: the same as --json", "wide|json"),
        OPTION("group", 0, "KEY", "groups instead of jobs: by tag, or by a key, e.g. optimizer.name", "tag|optimizer.name|model.arch|batch_per_worker|lr.base|precision"),
        OPTION("limit", 0, "N", "at most N jobs or groups (20)", NULL),
        OPTION("after", 0, "NEXT", "start after this page; the previous page printed its value", NULL),
    },
};
/* clang-format on */
