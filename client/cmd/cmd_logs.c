#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/follow.h"
#include "client/job.h"
#include "client/views/print.h"
#include "client/views/view.h"
#include "common/buffer.h"
#include "common/json.h"
#include "common/run/attempt.h"
#include "common/text.h"
#include "common/xalloc.h"

#define LOG_TAIL_LIMIT_BYTES ((size_t)64 << 20)
#define LOG_LINE_BYTES       ((size_t)1 << 20) /* with --json, longer lines are split */
#define LOOK_SECONDS         0.2

struct log {
    long id;
    double attempt; /* attempt being printed; NAN: the newest */
    size_t from;
    long tail;          /* in lines; 0: all */
    char rest[4];       /* an incomplete UTF-8 character */
    struct buffer line; /* an incomplete line, for --json */
};

/* Escapes a line that is not valid UTF-8, which JSON cannot contain. */
static void logs_print_line_json(const char *text, size_t bytes)
{
    json_t *words = json_stringn(text, bytes), *line;

    if (!words) {
        size_t capacity = TEXT_ESCAPE_GROWTH * bytes + 1;
        char *safe = xmalloc(capacity);
        words = json_stringn(safe, text_escape(safe, capacity, text, bytes, "\t"));
        free(safe);
    }
    line = json_pack("{s:o}", "line", words);
    print_json_line(stdout, line);
    json_decref(line);
}

static void logs_print_end(struct log *log)
{
    if (log->line.bytes > 0)
        logs_print_line_json(log->line.data, log->line.bytes);
    buffer_clear(&log->line);
}

static void logs_print_lines_json(struct log *log, const char *text, size_t bytes)
{
    size_t length;
    char *end;

    buffer_append(&log->line, text, bytes);
    for (size_t at = 0;; at += length + 1) {
        end = log->line.bytes > at ? memchr(log->line.data + at, '\n', log->line.bytes - at) : NULL;
        if (!end) {
            buffer_drop(&log->line, at);
            break;
        }
        length = (size_t)(end - log->line.data) - at;
        logs_print_line_json(log->line.data + at, length);
    }
    if (log->line.bytes > LOG_LINE_BYTES)
        logs_print_end(log);
}

static void logs_print_text(struct log *log, const char *text, size_t bytes)
{
    size_t held = strlen(log->rest), all = held + bytes, capacity = TEXT_ESCAPE_GROWTH * all + 1;

    if (client.json) {
        logs_print_lines_json(log, text, bytes);
        return;
    }
    char *joined = xmalloc(all + 1), *safe = xmalloc(capacity);

    memcpy(joined, log->rest, held);
    memcpy(joined + held, text, bytes);
    size_t incomplete = bytes ? text_incomplete(joined, all) : 0;
    memcpy(log->rest, joined + all - incomplete, incomplete);
    log->rest[incomplete] = '\0';
    fwrite(safe, 1, text_escape(safe, capacity, joined, all - incomplete, "\n\t"), stdout);
    free(joined);
    free(safe);
}

/* The caller frees *text. *bytes 0: nothing more for now. */
static int logs_get(const struct log *log, char **text, size_t *bytes, struct error *e)
{
    char path[128];
    int used = snprintf(path, sizeof path, "/v1/jobs/%ld/log?from=%zu", log->id, log->from);

    if (log->attempt > 0)
        snprintf(path + used, sizeof path - (size_t)used, "&attempt=%.0f", log->attempt);
    return api_get_text(path, "text/plain", text, bytes, e);
}

static int logs_print_rest(struct log *log, struct error *e)
{
    char *text;
    size_t bytes = 1;

    while (bytes > 0) {
        int code = logs_get(log, &text, &bytes, e);
        if (code < 0)
            return code;
        logs_print_text(log, text, bytes);
        free(text);
        log->from += bytes;
    }
    fflush(stdout);
    return 0;
}

static int logs_print_tail(struct log *log, struct error *e)
{
    struct buffer all = BUFFER(LOG_TAIL_LIMIT_BYTES);
    char *text;
    size_t bytes = 1;

    for (; bytes > 0; log->from += bytes) {
        int code = logs_get(log, &text, &bytes, e);
        if (code < 0) {
            buffer_clear(&all);
            return code;
        }
        buffer_append(&all, text, bytes);
        if (all.bytes > LOG_TAIL_LIMIT_BYTES / 2)
            buffer_drop(&all, LOG_TAIL_LIMIT_BYTES / 4);
        free(text);
    }
    size_t at = all.bytes;
    for (long lines = 0; at > 0; at--)
        if (all.data[at - 1] == '\n' && at < all.bytes && ++lines == log->tail)
            break;
    logs_print_text(log, all.data ? all.data + at : "", all.bytes - at);
    buffer_clear(&all);
    return 0;
}

/* Workers write to the log before they send the event, so an event means there may be more to read;
 * any other output is read at the next heartbeat. Each attempt has its own log. */
static void logs_observe(void *context, const struct job *job)
{
    struct log *log = context;
    struct error e;

    if (!isnan(log->attempt))
        logs_print_rest(log, &e); /* a persistent error is reported after the last event */
    if (job->attempt > 0 && !(job->attempt <= log->attempt)) {
        logs_print_text(log, "", 0);
        logs_print_end(log);
        log->attempt = job->attempt;
        log->from = 0;
        logs_print_rest(log, &e);
    }
}

static int logs_follow(long id)
{
    struct log log = {.id = id, .attempt = NAN, .line = BUFFER(LOG_TAIL_LIMIT_BYTES)};
    struct follow follow = {
        .id = id, .observe = logs_observe, .context = &log, .interval_seconds = LOOK_SECONDS};
    struct error e;
    json_t *json = NULL;

    int outcome = follow_job(&follow, &json, &e);
    json_decref(json);
    /* Output may have been written after the last read. */
    int status = outcome < 0 ? outcome : logs_print_rest(&log, &e);
    logs_print_end(&log);
    return status < 0 ? cmd_fail(&e) : 0;
}

static int logs_explain_silence(long id, struct error *e)
{
    struct job job;
    json_t *json;

    if (job_fetch(id, &json, &job, e) < 0)
        return -(int)e->code;
    if (!(job.attempt > 0) && !job_ended(&job))
        fprintf(stderr, "trainctl: job %ld has not started%s%s\n", id, *job.reason ? ": " : "",
                job.reason);
    json_decref(json);
    return 0;
}

static int cmd_logs(const struct cmd_args *args)
{
    struct error e;
    struct log log = {.attempt = NAN, .line = BUFFER(LOG_TAIL_LIMIT_BYTES)};
    long attempt = 0;

    const char *of = cmd_value(args, "attempt"), *tail = cmd_value(args, "tail");
    if (cmd_job_id(args->operands[0], &log.id, &e) < 0 ||
        (of && cmd_number(of, "attempt", 1, LONG_MAX, &attempt, &e)) ||
        (tail && cmd_number(tail, "tail", 1, 1000000, &log.tail, &e)))
        return cmd_fail(&e);
    if (cmd_flag(args, "follow") && (of || tail))
        return cmd_usage(args->cmd, "--follow prints the newest attempt from its beginning: leave "
                                    "out --attempt and --tail");
    if (cmd_flag(args, "follow"))
        return logs_explain_silence(log.id, &e) ? cmd_fail(&e) : logs_follow(log.id);
    if (of)
        log.attempt = (double)attempt;
    int status = tail ? logs_print_tail(&log, &e) : logs_print_rest(&log, &e);
    logs_print_end(&log);
    if (!status && !log.from)
        status = logs_explain_silence(log.id, &e);
    return status < 0 ? cmd_fail(&e) : 0;
}

#define PAGE_EVENTS 1000

static int logs_fetch_events(long id, const char *types, long long *after, struct error *e)
{
    json_t *answer, *event;
    char words[2048];
    size_t i;

    if (api_call("GET", &answer, e, "/v1/jobs/%ld/events?types=%s&after=%lld&limit=%d", id, types,
                 *after, PAGE_EVENTS))
        return -(int)e->code;
    json_array_foreach (json_object_get(answer, "events"), i, event) {
        struct stream_event shown = {json_get_text(event, "type", ""), event};
        if (client.json || !view_event_words(&shown, words, sizeof words))
            print_json_line(stdout, event);
        else
            puts(words);
    }
    bool more = json_is_integer(json_object_get(answer, "next"));
    *after = json_get_integer(answer, "next", 0);
    json_decref(answer);
    return more;
}

static int cmd_events(const struct cmd_args *args)
{
    struct error e;
    char types[256] = "";
    long long after = 0;
    size_t used = 0;
    long id;
    int more;

    const char *wanted = cmd_value(args, "types");
    if (cmd_job_id(args->operands[0], &id, &e) < 0 ||
        (wanted && cmd_words(wanted, "type of event", event_kind_at, &e)))
        return cmd_fail(&e);
    for (size_t i = 0; event_kind_at(i) && !wanted; i++)
        if (!view_event_is_frequent(event_kind_at(i)))
            used += (size_t)snprintf(types + used, sizeof types - used, "%s%s", used ? "," : "",
                                     event_kind_at(i));
    if (wanted)
        snprintf(types, sizeof types, "%.250s", wanted);
    do
        more = logs_fetch_events(id, types, &after, &e);
    while (more > 0);
    return more < 0 ? cmd_fail(&e) : 0;
}

/* clang-format off */
const struct cmd cmd_logs_entry = {
    .name = "logs", .synopsis = "[-f] [--attempt N] [--tail N] ID", .help = "print a job's log", .example = "trainctl logs --follow latest",
    .run = cmd_logs, .completion = "job", .operands = {1, 1},
    .options = {
        OPTION("follow", 'f', NULL, "follow the log until the job ends", NULL),
        OPTION("attempt", 0, "N", "log of attempt N (the newest)", NULL),
        OPTION("tail", 0, "N", "print only the last N lines", NULL),
    },
};

const struct cmd cmd_events_entry = {
    .name = "events", .synopsis = "[--types A,B] ID", .help = "print a job's events", .example = "trainctl events --types state,eval 7",
    .run = cmd_events, .completion = "job", .operands = {1, 1},
    .options = {
        OPTION("types", 0, "A,B", "event types, e.g. state,eval (all except steps)", "event"),
    },
};
/* clang-format on */
