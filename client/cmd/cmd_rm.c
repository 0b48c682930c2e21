#include "client/api.h"
#include "client/cmd.h"

static int remove_job(long id, struct error *e)
{
    char path[64];
    json_t *answer;

    snprintf(path, sizeof path, "/v1/jobs/%ld", id);
    if (api_delete(path, &answer, e) < 0)
        return -(int)e->code;
    return cmd_tell(answer, "job %ld is removed\n", id);
}

const struct cmd cmd_rm_entry = {
    .name = "rm",
    .synopsis = "ID...",
    .help = "remove finished jobs and their run directories",
    .run = cmd_each_job,
    .one = remove_job,
    .min_operands = 1,
    .max_operands = CMD_OPERANDS_MAX,
    .completion = "job",
};
