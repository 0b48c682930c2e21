#include <unistd.h>

#include "client/cmd.h"
#include "client/follow.h"
#include "client/print.h"
#include "client/progress.h"
#include "client/watch.h"

#define REDRAW_SECONDS 0.5
#define POLL_SECONDS   1.0

static void show(void *context, const struct job *job, const json_t *json)
{
    (void)json;
    progress_show(context, job);
}

static void lost(void *context)
{
    progress_end(context);
}

int watch_until_end(long id, bool bar)
{
    struct progress progress;
    struct follow follow = {.id = id, .interval_seconds = POLL_SECONDS, .context = &progress};
    struct error e;
    struct job job;
    json_t *json = NULL;

    progress_init(&progress);
    if (bar && !client.json) {
        follow.observe = show;
        follow.lost = lost;
        follow.interval_seconds = progress.redraw ? REDRAW_SECONDS : POLL_SECONDS;
    }
    follow_on_interrupt();
    int outcome = follow_job(&follow, &json, &e);
    progress_end(&progress);
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

static int watch(int argc, char **argv, bool bar)
{
    struct cmd_args args;
    struct error e;
    long id;
    int done = cmd_parse(&args, argc, argv);

    if (done >= 0)
        return done;
    if (cmd_job_id(args.operands[0], &id, &e) < 0)
        return cmd_fail(&e);
    return watch_until_end(id, bar);
}

int cmd_watch(int argc, char **argv)
{
    return watch(argc, argv, true);
}

int cmd_wait(int argc, char **argv)
{
    return watch(argc, argv, false);
}
