/* trainctl hold, release, priority: what may be changed about a job that waits. */
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"

/* said: the format of what is printed, with its id. */
static int hold_post(long id, const char *route, const char *body, const char *said,
                     struct error *e)
{
    json_t *answer;
    char path[64];

    snprintf(path, sizeof path, "/v1/jobs/%ld/%s", id, route);
    if (api_post(path, body, body ? strlen(body) : 0, &answer, e) < 0)
        return -(int)e->code;
    return cmd_tell(answer, said, id, id);
}

static int hold_job(long id, struct error *e)
{
    return hold_post(id, "hold", NULL, "Job %ld held. Release it with: trainctl release %ld\n", e);
}

static int cmd_hold_release_job(long id, struct error *e)
{
    return hold_post(id, "release", NULL, "Job %ld released.\n", e);
}

static int cmd_priority(const struct cmd_args *args)
{
    struct error e;
    long ids[CMD_OPERANDS_MAX], priority;
    char body[64], words[64];
    int code = 0;

    const char *to = cmd_value(args, "to");
    if (!to)
        return cmd_usage(args->cmd, "missing --to N. Usage: trainctl priority --to N ID...");
    if (cmd_number(to, "to", -1000, 1000, &priority, &e) < 0 || cmd_job_ids(args, ids, &e) < 0)
        return cmd_fail(&e);
    snprintf(body, sizeof body, "{\"priority\": %ld}", priority);
    snprintf(words, sizeof words, "Job %%ld now has priority %ld.\n", priority);
    for (int i = 0; i < args->operand_count; i++)
        if (hold_post(ids[i], "priority", body, words, &e) < 0)
            code = cmd_fail(&e);
    return code;
}

/* clang-format off */
const struct cmd cmd_hold_entry = {
    .name = "hold", .synopsis = "ID...", .help = "hold queued jobs: they do not start until released", .example = "trainctl hold 7",
    .run = cmd_each_job, .one = hold_job, .completion = "job", .operands = {1, CMD_OPERANDS_MAX},
};
const struct cmd cmd_release_entry = {
    .name = "release", .synopsis = "ID...", .help = "release held jobs", .example = "trainctl release 7",
    .run = cmd_each_job, .one = cmd_hold_release_job, .completion = "job", .operands = {1, CMD_OPERANDS_MAX},
};
const struct cmd cmd_priority_entry = {
    .name = "priority", .synopsis = "--to N ID...", .help = "change the priority of queued jobs", .example = "trainctl priority --to 10 7",
    .run = cmd_priority, .completion = "job", .operands = {1, CMD_OPERANDS_MAX},
    .options = {
        OPTION("to", 0, "N", "priority from -1000 to 1000; higher starts first", NULL),
    },
};
/* clang-format on */
