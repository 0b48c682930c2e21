#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "client/cmd.h"
#include "client/cmd/cmd_watch.h"
#include "client/follow.h"
#include "client/stream.h"
#include "client/views/print.h"
#include "client/views/progress.h"
#include "client/views/screen.h"
#include "client/views/view.h"
#include "common/json.h"

static void watch_show_line(void *context, const struct job *job)
{
    progress_show(context, job);
}

static int watch_follow_to_end(long id, bool progress)
{
    struct progress shown = {0};
    struct follow follow = {.id = id, .context = &shown};
    struct error e;
    struct job job;
    json_t *json = NULL;

    if (progress && !client.json)
        follow.observe = watch_show_line;
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

static int watch_queue(void)
{
    struct stream *stream = stream_create("/v1/events", -1);
    struct stream_event event;
    struct error e;
    char words[512];
    int news = 0;

    follow_on_interrupt();
    while (!ferror(stdout) && (news = stream_next(stream, -1, -1, &event, &e)) >= 0) {
        if (news == STREAM_EVENT && client.json) {
            print_json_line(stdout, event.body);
        } else if (news == STREAM_EVENT && view_event_words(&event, words, sizeof words)) {
            char *rest = strchr(words, ' ');
            printf("%.*s  job %lld %s\n", (int)(rest - words), words,
                   (long long)json_get_integer(event.body, "job", 0), rest + 2);
        }
        fflush(stdout);
        stream_report(news, "");
    }
    stream_destroy(stream);
    return news < 0 ? cmd_fail(&e) : 0; /* main reports a failed write */
}

/* Signals other than SIGINT terminate the process by that signal, so that the shell sees which. */
static int watch_interrupted(int end, long id)
{
    if (end == VIEW_SIGNALLED && screen_signal() != SIGINT) {
        signal(screen_signal(), SIG_DFL);
        raise(screen_signal());
    }
    if (id)
        follow_interrupted();
    return id || end == VIEW_SIGNALLED ? error_type(ERR_INTERRUPTED)->exit_code : 0;
}

#define NO_VIEW  (-1) /* the terminal cannot be used: print lines */
#define JOB_DONE (-2) /* only the outcome remains to be printed */

static int watch_view(long id)
{
    struct error e;

    if (client.json || !terminal_full() || screen_open(&e))
        return NO_VIEW;
    int end = id ? view_job(id, false, NULL, &e) : view_queue(&e);
    screen_close();
    if (end < 0)
        return cmd_fail(&e);
    return end == VIEW_DONE ? JOB_DONE : watch_interrupted(end, id);
}

int watch_until_end(long id, bool progress)
{
    int code = progress ? watch_view(id) : NO_VIEW;

    return code >= 0 ? code : watch_follow_to_end(id, progress && code == NO_VIEW);
}

static int cmd_watch(const struct cmd_args *args)
{
    struct error e;
    long id = 0;

    if (args->operand_count && cmd_job_id(args->operands[0], &id, &e) < 0)
        return cmd_fail(&e);
    if (id)
        return watch_until_end(id, true);
    int done = watch_view(0);
    return done >= 0 ? done : watch_queue();
}

static int cmd_wait(const struct cmd_args *args)
{
    struct error e;
    long ids[CMD_OPERANDS_MAX];
    struct job job;
    json_t *json;
    int code = 0;

    int status = cmd_job_ids(args, ids, &e);
    /* Check all of them at once rather than when the first job has ended. */
    for (int i = 0; i < args->operand_count && args->operand_count > 1 && !status; i++) {
        status = job_fetch(ids[i], &json, &job, &e);
        json_decref(json);
    }
    if (status)
        return cmd_fail(&e);
    for (int i = 0; i < args->operand_count; i++) {
        int outcome = watch_until_end(ids[i], false);
        code = code ? code : outcome;
    }
    return code;
}

/* clang-format off */
const struct cmd cmd_watch_entry = {
    .name = "watch", .synopsis = "[ID]", .help = "watch a job until it ends, or the queue", .example = "trainctl watch latest",
    .run = cmd_watch, .completion = "job", .operands = {0, 1},
};
const struct cmd cmd_wait_entry = {
    .name = "wait", .synopsis = "ID...",
    .help = "wait until jobs end; exit with the outcome of the first that did not succeed", .example = "trainctl wait 7 8",
    .run = cmd_wait, .completion = "job", .operands = {1, CMD_OPERANDS_MAX},
};
/* clang-format on */
