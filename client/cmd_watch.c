#include <signal.h>

#include "client/cmd.h"
#include "client/follow.h"
#include "client/print.h"
#include "client/progress.h"
#include "client/screen.h"
#include "client/terminal.h"
#include "client/view.h"
#include "client/watch.h"

/* ---- in lines */

static void show(void *context, const struct job *job)
{
    progress_show(context, job);
}

static int follow_to_end(long id, bool progress)
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

/* ---- on a terminal */

/* Ctrl-C and q; other signals end us as they end others: the shell is to know which. */
static int interrupted(int end, long id)
{
    if (end == VIEW_SIGNALLED && screen_signal() != SIGINT) {
        signal(screen_signal(), SIG_DFL);
        raise(screen_signal());
    }
    if (id)
        fputs(follow_interrupted, stderr);
    return id || end == VIEW_SIGNALLED ? error_type(ERR_INTERRUPTED)->exit_code : 0;
}

/* The exit code, or -1: the view is done and the rest is to be told in lines. */
static int view(long id)
{
    struct error e;

    if (screen_open(&e))
        return -1; /* lines are better than nothing */
    int end = id ? view_job(id, false, &e) : view_queue(&e);
    screen_close();
    if (end < 0)
        return cmd_fail(&e);
    return end == VIEW_DONE ? -1 : interrupted(end, id);
}

/* ---- the commands */

int watch_until_end(long id, bool progress)
{
    bool full = progress && !client.json && terminal_full();
    int code = full ? view(id) : -1;

    if (code >= 0)
        return code;
    return follow_to_end(id, progress && !full); /* it was seen already */
}

int cmd_watch(int argc, char **argv)
{
    struct cmd_args args;
    struct error e;
    long id = 0;
    int done = cmd_parse(&args, argc, argv);

    if (done >= 0)
        return done;
    if (args.operand_count && cmd_job_id(args.operands[0], &id, &e) < 0)
        return cmd_fail(&e);
    if (id)
        return watch_until_end(id, true);
    done = !client.json && terminal_full() ? view(0) : -1;
    return done >= 0 ? done : watch_queue();
}

int cmd_wait(int argc, char **argv)
{
    struct cmd_args args;
    struct error e;
    long id;
    int done = cmd_parse(&args, argc, argv);

    if (done >= 0)
        return done;
    if (cmd_job_id(args.operands[0], &id, &e) < 0)
        return cmd_fail(&e);
    return watch_until_end(id, false);
}
