#include "client/api.h"
#include "client/cmd.h"
#include "client/job.h"
#include "client/views/print.h"

int cmd_cancel(int argc, char **argv)
{
    struct cmd_args args;
    struct error e;
    struct job job;
    json_t *answer;
    char path[64];
    long id;
    int done = cmd_parse(&args, argc, argv);

    if (done >= 0)
        return done;
    if (cmd_job_id(args.operands[0], &id, &e) < 0)
        return cmd_fail(&e);
    snprintf(path, sizeof path, "/v1/jobs/%ld/cancel", id);
    if (api_post(path, NULL, 0, &answer, &e) < 0)
        return cmd_fail(&e);
    job_read(answer, &job);
    if (client.json)
        print_json(answer);
    else if (job_ended(&job))
        printf("job %ld %s\n", id, job.state);
    else
        printf("job %ld is being cancelled; \"trainctl wait %ld\" waits for its end\n", id, id);
    json_decref(answer);
    return 0;
}
