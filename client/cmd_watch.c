#include "client/cmd.h"
#include "client/follow.h"
#include "client/print.h"
#include "client/progress.h"
#include "client/watch.h"

static void show(void *context, const struct job *job)
{
    progress_show(context, job);
}

int watch_until_end(long id, bool progress)
{
    struct progress shown = {0};
    struct follow follow = {.id = id, .context = &shown};
    struct error e;
    struct job job;
    json_t *json = NULL;

    if (progress && !client.json)
        follow.observe = show;
    follow_on_interrupt();
    int outcome = follow_job(&follow, &json, &e);
    if (outcome < 0)
        return cmd_fail(&e);
    job_read(json, &job);
    if (client.json)
        print_json(json);
    else
        job_print_outcome(&job);
    json_decref(json);
    return outcome;
}

static int watch(int argc, char **argv, bool progress)
{
    struct cmd_args args;
    struct error e;
    long id;
    int done = cmd_parse(&args, argc, argv);

    if (done >= 0)
        return done;
    if (cmd_job_id(args.operands[0], &id, &e) < 0)
        return cmd_fail(&e);
    return watch_until_end(id, progress);
}

int cmd_watch(int argc, char **argv)
{
    return watch(argc, argv, true);
}

int cmd_wait(int argc, char **argv)
{
    return watch(argc, argv, false);
}
