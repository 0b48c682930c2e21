#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/cmd/find/list.h"
#include "client/views/print.h"
#include "common/buffer.h"

#define LIMIT_DEFAULT 20

/* Options that are parameters of GET /v1/jobs; those that narrow the list down say so. */
static const struct {
    const char *option, *parameter;
    bool filters;
} list_parameters[] = {
    {"state", "state", false}, /* has words of its own where nothing fits */
    {"user",  "user",  true },
    {"name",  "name",  true },
    {"sweep", "sweep", true },
    {"tag",   "tag",   true },
    {"where", "where", true },
    {"label", "label", true },
    {"find",  "q",     true },
    {"group", "group", false},
    {"sort",  "sort",  false},
    {"after", "after", false},
};
#define LIST_PARAMETERS (sizeof list_parameters / sizeof list_parameters[0])

/* "/v1/jobs?limit=20&user=eve": the caller frees it. */
static char *list_path(const struct cmd_args *args, long limit)
{
    struct buffer path = BUFFER((size_t)64 << 10);

    buffer_printf(&path, "/v1/jobs?limit=%ld", limit);
    for (size_t i = 0; i < LIST_PARAMETERS; i++) {
        const char *value = cmd_value(args, list_parameters[i].option);
        char *escaped = value ? curl_easy_escape(NULL, value, 0) : NULL;
        if (escaped)
            buffer_printf(&path, "&%s=%s", list_parameters[i].parameter, escaped);
        curl_free(escaped);
    }
    return buffer_take(&path, NULL);
}

static void print_none(const struct cmd_args *args)
{
    const char *state = cmd_value(args, "state");
    bool filtered = false;

    for (size_t i = 0; i < LIST_PARAMETERS; i++)
        filtered =
            filtered || (list_parameters[i].filters && cmd_value(args, list_parameters[i].option));
    if (filtered)
        puts("no job fits");
    else if (state)
        printf("there is no job in state %s\n", state);
    else
        puts("no jobs yet: submit one with \"trainctl submit FILE\"");
}

static void list_print(const struct cmd_args *args, const json_t *answer)
{
    const char *group = cmd_value(args, "group");
    const char *list = group ? "groups" : "jobs";

    if (client.json)
        print_json(answer);
    else if (json_array_size(json_object_get(answer, list)) == 0)
        print_none(args);
    else if (group)
        list_print_groups(answer, group);
    else
        list_print_jobs(answer, cmd_value(args, "columns"), cmd_value(args, "output") != NULL);
}

static int cmd_list(const struct cmd_args *args)
{
    struct error e;
    json_t *answer;
    long limit = LIMIT_DEFAULT;

    const char *count = cmd_value(args, "limit"), *state = cmd_value(args, "state");
    const char *output = cmd_value(args, "output"), *columns = cmd_value(args, "columns");
    if ((count && cmd_number(count, "limit", 1, 1000, &limit, &e) < 0) ||
        (state && cmd_words(state, "state", cmd_state_at, &e)) ||
        (columns && cmd_words(columns, "column", list_column_at, &e)))
        return cmd_fail(&e);
    if (output && strcmp(output, "wide") != 0)
        return cmd_usage(args->cmd, "--output takes \"wide\", not \"%s\"; --json gives JSON",
                         output);
    if (columns && cmd_value(args, "group"))
        return cmd_usage(args->cmd, "--columns are those of jobs, and --group lists none");
    char *path = list_path(args, limit);
    int code = path ? api_get(path, &answer, &e)
                    : error_set(&e, ERR_USAGE, "the words to find are too long");
    free(path);
    if (code < 0)
        return cmd_fail(&e);
    list_print(args, answer);
    json_decref(answer);
    return 0;
}

/* clang-format off */
const struct cmd cmd_list_entry = {
    .name = "list",
    .synopsis = "[--state S] [--tag T] [-q WORDS] [--user U] [--name N] [--sweep ID] [--label L] [--where KEY=VALUE] [--sort KEY] "
                "[--columns C | -o wide | --group KEY] [--limit N] [--after NEXT]",
    .help = "list jobs, newest first",
    .run = cmd_list,
    .completion = "none",
    .options = {
        {"state", 0, "S", "only jobs in these states, as in running,queued", "state"},
        {"tag", 0, "T", "only jobs with this tag, or with all of several, as in baseline,paper", "tag"},
        {"find", 'q', "WORDS", "only jobs with these words in their id, name, tags, note, reason, user, network or data", NULL},
        {"user", 0, "U", "only jobs of this user or token", NULL},
        {"name", 0, "N", "only jobs whose name contains N", NULL},
        {"sweep", 0, "ID", "only jobs of this sweep", "sweep"},
        {"label", 0, "L", "only jobs with this failure label, as out-of-memory", "none"},
        {"where", 0, "KEY=VALUE", "only jobs with this value in their document, as in optimizer.name=lars", "key"},
        {"sort", 0, "KEY", "newest, name, priority, top1, best_top1, loss, images_per_sec, ttt_seconds or finished_at", "newest|name|priority|top1|best_top1|loss|images_per_sec|ttt_seconds|finished_at"},
        {"columns", 0, "C,C", "these columns in this order: id, name, state, done, top1, best_top1, best_at, loss, images_per_sec, ttt_seconds, left, user, priority, tags, submitted, reason, note", "id|name|state|done|top1|best_top1|best_at|loss|images_per_sec|ttt_seconds|left|user|priority|tags|submitted|reason|note"},
        {"output", 'o', "wide", "show more columns and do not truncate", "wide|"},
        {"group", 0, "KEY", "groups instead of jobs: by tag, or by a key, as in optimizer.name", "tag|optimizer.name|model.arch|batch_per_worker|lr.base|precision"},
        {"limit", 0, "N", "at most N jobs or groups (20)", NULL},
        {"after", 0, "NEXT", "start after this page; the previous page printed its value", NULL},
    },
};
/* clang-format on */
