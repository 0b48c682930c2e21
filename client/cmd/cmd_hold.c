/* trainctl hold, release, priority: what may be changed about a job that waits. */
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"

/* told: what is printed behind the job's id. */
static int hold_post(long id, const char *route, const char *body, const char *told,
                     struct error *e)
{
    json_t *answer;
    char path[64];

    snprintf(path, sizeof path, "/v1/jobs/%ld/%s", id, route);
    if (api_post(path, body, body ? strlen(body) : 0, &answer, e) < 0)
        return -(int)e->code;
    return cmd_tell(answer, "job %ld %s\n", id, told);
}

static int hold_job(long id, struct error *e)
{
    char told[96];

    snprintf(told, sizeof told, "is held; \"trainctl release %ld\" lets it start", id);
    return hold_post(id, "hold", NULL, told, e);
}

static int release_job(long id, struct error *e)
{
    return hold_post(id, "release", NULL, "is released", e);
}

static int cmd_priority(const struct cmd_args *args)
{
    struct error e;
    long ids[CMD_OPERANDS_MAX], priority;
    char body[64], told[64];
    int code = 0;

    const char *to = cmd_value(args, "to");
    if (!to)
        return cmd_usage(args->cmd, "--to N is missing: the priority, as in \"trainctl priority "
                                    "7 --to 10\"");
    if (cmd_number(to, "to", -1000, 1000, &priority, &e) < 0 || cmd_job_ids(args, ids, &e) < 0)
        return cmd_fail(&e);
    snprintf(body, sizeof body, "{\"priority\": %ld}", priority);
    snprintf(told, sizeof told, "has priority %ld", priority);
    for (int i = 0; i < args->operand_count; i++)
        if (hold_post(ids[i], "priority", body, told, &e) < 0)
            code = cmd_fail(&e);
    return code;
}

/* clang-format off */
const struct cmd cmd_hold_entry = {
    .name = "hold",
    .synopsis = "ID...",
    .help = "hold queued jobs: they do not start until released",
    .run = cmd_each_job,
    .one = hold_job,
    .min_operands = 1,
    .max_operands = CMD_OPERANDS_MAX,
    .completion = "job",
};
const struct cmd cmd_release_entry = {
    .name = "release",
    .synopsis = "ID...",
    .help = "release held jobs",
    .run = cmd_each_job,
    .one = release_job,
    .min_operands = 1,
    .max_operands = CMD_OPERANDS_MAX,
    .completion = "job",
};
const struct cmd cmd_priority_entry = {
    .name = "priority",
    .synopsis = "--to N ID...",
    .help = "change the priority of queued jobs",
    .run = cmd_priority,
    .min_operands = 1,
    .max_operands = CMD_OPERANDS_MAX,
    .completion = "job",
    .options = {
        {"to", 0, "N", "priority from -1000 to 1000; higher starts first", NULL},
    },
};
/* clang-format on */
