#include <stdlib.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/follow.h"

#define POLL_SECONDS 0.5

/* Prints what stands in the log behind byte *from, and moves it on. */
static int print_rest(long id, size_t *from, struct error *e)
{
    char path[96], *text;
    size_t bytes = 1;

    while (bytes > 0) {
        snprintf(path, sizeof path, "/v1/jobs/%ld/log?from=%zu", id, *from);
        int code = api_get_text(path, &text, &bytes, e);
        if (code < 0)
            return code;
        fwrite(text, 1, bytes, stdout);
        free(text);
        *from += bytes;
    }
    fflush(stdout);
    return 0;
}

struct log_follower {
    long id;
    size_t from;
};

static void observe(void *context, const struct job *job, const json_t *json)
{
    struct log_follower *f = context;
    struct error e;

    (void)json;
    (void)job;
    /* A failure here comes again, and is told, at the next poll or behind the last one. */
    print_rest(f->id, &f->from, &e);
}

static int follow_log(long id)
{
    struct log_follower follower = {.id = id};
    struct follow follow = {
        .id = id, .interval_seconds = POLL_SECONDS, .observe = observe, .context = &follower};
    struct error e;
    json_t *json = NULL;

    follow_on_interrupt();
    int outcome = follow_job(&follow, &json, &e);
    json_decref(json);
    /* The last lines may have come after the last look. */
    if (outcome < 0 || print_rest(id, &follower.from, &e) < 0)
        return cmd_fail(&e);
    return 0;
}

int cmd_logs(int argc, char **argv)
{
    struct cmd_args args;
    struct error e;
    size_t from = 0;
    long id;
    int done = cmd_parse(&args, argc, argv);

    if (done >= 0)
        return done;
    if (cmd_job_id(args.operands[0], &id, &e) < 0)
        return cmd_fail(&e);
    if (cmd_flag(&args, "follow"))
        return follow_log(id);
    return print_rest(id, &from, &e) < 0 ? cmd_fail(&e) : 0;
}
