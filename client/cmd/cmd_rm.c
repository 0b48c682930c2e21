#include "client/api.h"
#include "client/cmd.h"

static int remove_job(long id, struct error *e)
{
    char path[64];
    json_t *answer;

    snprintf(path, sizeof path, "/v1/jobs/%ld", id);
    if (api_delete(path, &answer, e) < 0)
        return -(int)e->code;
    return cmd_tell(answer, "Job %ld removed.\n", id);
}

/* clang-format off */
const struct cmd cmd_rm_entry = {
    .name = "rm", .synopsis = "ID...", .help = "remove jobs that have ended, with their run directories", .example = "trainctl rm 3 4",
    .run = cmd_each_job, .one = remove_job, .completion = "job", .operands = {1, CMD_OPERANDS_MAX},
};
/* clang-format on */
