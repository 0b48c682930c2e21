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
        return cmd_tell(answer, "Job %ld %s.\n", id, job.state);
    return cmd_tell(
        answer, "Job %ld is being cancelled. Wait for its end with: trainctl wait %ld\n", id, id);
}

/* clang-format off */
const struct cmd cmd_cancel_entry = {
    .name = "cancel", .synopsis = "ID...", .help = "cancel jobs", .example = "trainctl cancel 7 8",
    .run = cmd_each_job, .one = cancel_job, .completion = "job", .operands = {1, CMD_OPERANDS_MAX},
};
/* clang-format on */
