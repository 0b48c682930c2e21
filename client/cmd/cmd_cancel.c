#include "client/api.h"
#include "client/cmd.h"
#include "client/job.h"

static int cancel_job(long id, struct error *e)
{
    struct job job;
    json_t *answer;
    char path[64];

    snprintf(path, sizeof path, "/v1/jobs/%ld/cancel", id);
    if (api_post(path, NULL, 0, &answer, e) < 0)
        return -(int)e->code;
    job_read(answer, &job);
    if (job_ended(&job))
        return cmd_tell(answer, "job %ld %s\n", id, job.state);
    return cmd_tell(answer, "job %ld is being cancelled; \"trainctl wait %ld\" waits for its end\n",
                    id, id);
}

const struct cmd cmd_cancel_entry = {
    .name = "cancel",
    .synopsis = "ID...",
    .help = "cancel jobs",
    .run = cmd_each_job,
    .one = cancel_job,
    .min_operands = 1,
    .max_operands = CMD_OPERANDS_MAX,
    .completion = "job",
};
