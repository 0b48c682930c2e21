#include <string.h>
#include <unistd.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/cmd/find/list.h"
#include "client/views/format.h"
#include "client/views/print.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/text.h"

static int cmd_rm_remove_job(long id, struct error *e)
{
    char path[64];
    json_t *answer;

    snprintf(path, sizeof path, "/v1/jobs/%ld", id);
    if (api_delete(path, &answer, e) < 0)
        return -(int)e->code;
    return cmd_tell(answer, "Job %ld removed.\n", id);
}

static bool rm_is_old(const json_t *job, double before)
{
    const json_t *tag;
    size_t i;

    json_array_foreach (json_object_get(job, "tags"), i, tag)
        if (strcmp(json_string_value(tag), "starred") == 0)
            return false;
    return json_get_number(job, "finished_at", before) < before;
}

/* Of all ended jobs. */
static int rm_old(const struct cmd_args *args, json_t *jobs, double before)
{
    bool dry = cmd_flag(args, "dry-run"), ask = !dry && !cmd_flag(args, "yes");
    char size[FORMAT_BYTES];
    double bytes = 0;
    struct error e;
    int code = 0;

    for (size_t i = json_array_size(jobs); i-- > 0;)
        if (rm_is_old(json_array_get(jobs, i), before))
            bytes += json_get_number(json_array_get(jobs, i), "disk_bytes", 0);
        else
            json_array_remove(jobs, i);
    size_t count = json_array_size(jobs);
    json_t *list = json_pack("{s:O}", "jobs", jobs);
    if (client.json && dry)
        print_json(list);
    else if (!client.json && count)
        list_print_jobs(list, "id,name,state,finished,disk_bytes", false);
    json_decref(list);
    format_size(size, sizeof size, bytes);
    if (!client.json)
        printf("%zu job%s, %s\n", count, plural((int64_t)count), size);
    if (ask && count && !isatty(STDIN_FILENO))
        return cmd_usage(args->cmd, "not on a terminal: use --yes to remove them");
    if (ask && count && !cmd_agrees("Remove them?")) {
        error_set(&e, ERR_CONFLICT, "nothing was removed");
        return cmd_fail(&e);
    }
    for (size_t i = 0; i < count && !dry; i++)
        if (cmd_rm_remove_job((long)json_get_integer(json_array_get(jobs, i), "id", 0), &e) < 0)
            code = cmd_fail(&e);
    return code;
}

static int cmd_rm(const struct cmd_args *args)
{
    const char *states = cmd_value(args, "state");
    struct error e;
    double age = 0;
    json_t *answer;
    char path[128];

    if (cmd_duration(args, "older-than", &age, &e) ||
        (states && cmd_words(states, "state", cmd_state_at, &e)))
        return cmd_fail(&e);
    if ((age > 0) == (args->operand_count > 0) ||
        (age == 0 && (states || cmd_flag(args, "dry-run"))))
        return cmd_usage(args->cmd, "expected either IDs, or --older-than with its options");
    if (age == 0)
        return cmd_each_job(args);
    snprintf(path, sizeof path, "/v1/jobs?limit=1000&sort=finished_at&state=%s",
             states ? states : "succeeded,failed,cancelled");
    int code = api_get_pages(path, "jobs", &answer, &e) < 0
                   ? cmd_fail(&e)
                   : rm_old(args, json_object_get(answer, "jobs"), clock_now() - age);
    json_decref(answer);
    return code;
}

/* clang-format off */
const struct cmd cmd_rm_entry = {
    .name = "rm", .synopsis = "ID... | --older-than AGE [--state S] [--dry-run] [--yes]", .help = "remove jobs that have ended, with their run directories",
    .example = "trainctl rm --older-than 30d --dry-run",
    .run = cmd_rm, .one = cmd_rm_remove_job, .completion = "job", .operands = {0, CMD_OPERANDS_MAX},
    .options = {
        OPTION("older-than", 0, "AGE", "all jobs that ended longer ago, e.g. 7d or 12h, except starred ones", "none"),
        OPTION("state", 0, "S", "with --older-than: only jobs in these states, e.g. failed,cancelled", "succeeded|failed|cancelled"),
        OPTION("dry-run", 'n', NULL, "list the jobs that would be removed, and remove nothing", NULL),
        OPTION("yes", 'y', NULL, "do not ask before jobs are removed by age", NULL),
    },
};
/* clang-format on */
