#include <stdlib.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/job.h"
#include "client/print.h"
#include "client/watch.h"
#include "common/file.h"
#include "common/json.h"

/* The document goes to the daemon as it is, so that lines and columns in its answer are the file's.
 */
static int submit(const char *file, json_t **answer, struct error *e)
{
    char *text;
    size_t bytes;
    int code = file_read(file, JSON_DOCUMENT_LIMIT_BYTES, &text, &bytes, e);

    if (code < 0)
        return code;
    code = api_post("/v1/jobs", text, bytes, answer, e);
    free(text);
    return code;
}

int cmd_submit(int argc, char **argv)
{
    struct cmd_args args;
    struct error e;
    struct job job;
    json_t *answer;
    int done = cmd_parse(&args, argc, argv);

    if (done >= 0)
        return done;
    bool wait = cmd_flag(&args, "wait"), watch = cmd_flag(&args, "watch");
    if (wait && watch)
        return cmd_usage(args.cmd, "--wait and --watch exclude each other");
    if (submit(args.operands[0], &answer, &e) < 0)
        return cmd_fail(&e);
    job_read(answer, &job);
    long id = job.id;
    if (client.json && !wait && !watch)
        print_json(answer);
    else if (!client.json)
        printf("job %ld %s%s%s\n", id, job.state, *job.reason ? ": " : "", job.reason);
    json_decref(answer);
    fflush(stdout);
    return wait || watch ? watch_until_end(id, watch) : 0;
}
