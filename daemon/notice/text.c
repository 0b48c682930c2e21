#include "daemon/notice/text.h"

#include <math.h>
#include <string.h>

#include "common/buffer.h"
#include "common/json.h"
#include "common/notify/kind.h"

#define TEXT_LIMIT_BYTES ((size_t)64 << 10)

static void text_name(struct buffer *out, const char *what, const json_t *subject)
{
    const char *name = json_get_text(subject, "name", NULL);

    buffer_printf(out, "%s %lld", what, json_get_integer(subject, "id", 0));
    if (name)
        buffer_printf(out, " (%s)", name);
}

/* The first line: who, and what has become of it. */
static void text_head(struct buffer *out, enum notice_kind kind, const json_t *body)
{
    static const char *const words[NOTICE_KINDS] = {
        [NOTICE_SUCCEEDED] = "has succeeded",   [NOTICE_FAILED] = "has failed",
        [NOTICE_CANCELLED] = "was cancelled",   [NOTICE_TARGET_MET] = "has met its target",
        [NOTICE_STRAGGLER] = "has a slow rank", [NOTICE_STALLED] = "makes no progress",
    };
    const json_t *job = json_object_get(body, "job"), *sweep = json_object_get(body, "sweep");

    if (kind == NOTICE_TEST)
        buffer_printf(out, "This is a test of notices, asked for by %s",
                      json_get_text(body, "asked_by", "an unknown user"));
    else if (kind == NOTICE_NODE_DRAINED)
        buffer_printf(out, "Node %s is drained",
                      json_get_text(json_object_get(body, "node"), "name", "?"));
    else if (kind == NOTICE_SWEEP_DONE)
        text_name(out, "Sweep", sweep);
    else
        text_name(out, "Job", job);
    if (kind == NOTICE_SWEEP_DONE)
        buffer_printf(out, " has ended: %s, %lld of %lld trials succeeded",
                      json_get_text(sweep, "state", "?"), json_get_integer(sweep, "succeeded", 0),
                      json_get_integer(sweep, "trials", 0));
    else if (kind < NOTICE_KINDS && words[kind])
        buffer_printf(out, " %s", words[kind]);
}

static void text_failure(struct buffer *out, const json_t *event)
{
    const char *label = json_get_text(event, "label", NULL);

    buffer_printf(out, ": attempt %lld has failed", json_get_integer(event, "attempt", 0));
    if (label)
        buffer_printf(out, " (%s)", label);
}

/* "1 h 12 min", "3 min 5 s", "12.5 s" */
static void text_duration(struct buffer *out, double seconds)
{
    long long whole = (long long)seconds;

    if (seconds >= 3600)
        buffer_printf(out, "%lld h %lld min", whole / 3600, whole % 3600 / 60);
    else if (seconds >= 60)
        buffer_printf(out, "%lld min %lld s", whole / 60, whole % 60);
    else
        buffer_printf(out, "%.1f s", seconds);
}

/* A number of the job, "top-1 75.90 %", behind a comma where something stands before it. */
static void text_figure(struct buffer *out, size_t start, const char *format, double value)
{
    if (isnan(value))
        return;
    if (out->bytes > start)
        buffer_printf(out, ", ");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    buffer_printf(out, format, value);
#pragma GCC diagnostic pop
}

static void text_result(struct buffer *out, const json_t *job)
{
    double seconds = json_get_number(job, "ttt_seconds", NAN);

    buffer_printf(out, "\n");
    size_t start = out->bytes;
    text_figure(out, start, "top-1 %.2f %%", 100 * json_get_number(job, "top1", NAN));
    text_figure(out, start, "top-5 %.2f %%", 100 * json_get_number(job, "top5", NAN));
    text_figure(out, start, "loss %.4g", json_get_number(job, "loss", NAN));
    text_figure(out, start, "%.5g images/s", json_get_number(job, "images_per_sec", NAN));
    if (!isnan(seconds)) {
        buffer_printf(out, "%s%s ", out->bytes > start ? ", " : "",
                      json_get_integer(job, "train_steps", 0) > 0 ? "time to train" : "time");
        text_duration(out, seconds);
    }
    if (json_get_integer(job, "train_steps", 0) > 0)
        buffer_printf(out, "%sstep %lld of %lld", out->bytes > start ? ", " : "",
                      json_get_integer(job, "step", 0), json_get_integer(job, "train_steps", 0));
    if (out->bytes == start)
        out->data[--out->bytes] = '\0'; /* nothing is known: no empty line */
}

static void text_curve(struct buffer *out, const json_t *evals)
{
    const json_t *one;
    size_t i;

    if (json_array_size(evals) < 2)
        return;
    buffer_printf(out, "\nlast evaluations:");
    json_array_foreach (evals, i, one) {
        double epoch = json_get_number(one, "epoch", NAN), top1 = json_get_number(one, "top1", NAN);
        buffer_printf(out, "%s top-1 %.2f %%", i ? "," : "", 100 * top1);
        if (!isnan(epoch))
            buffer_printf(out, " (epoch %.4g)", epoch);
    }
}

char *text_of_notice(const json_t *body, const char *link)
{
    enum notice_kind kind = notice_kind_of(json_get_text(body, "kind", NULL));
    const char *reason = json_get_text(body, "reason", NULL);
    const json_t *job = json_object_get(body, "job");
    struct buffer out = BUFFER(TEXT_LIMIT_BYTES);

    text_head(&out, kind, body);
    if (kind == NOTICE_ATTEMPT_FAILED)
        text_failure(&out, json_object_get(body, "event"));
    if (kind == NOTICE_SUCCEEDED)
        reason = NULL;
    if (reason && *reason)
        buffer_printf(&out, ": %s", reason);
    if (json_is_object(job) && kind != NOTICE_NODE_DRAINED) {
        text_result(&out, job);
        text_curve(&out, json_object_get(body, "evals"));
    }
    if (link)
        buffer_printf(&out, "\n%s", link);
    return buffer_take(&out, NULL);
}

char *text_for_chat(const char *words)
{
    static const struct {
        char c;
        const char *text;
    } entities[] = {
        {'&', "&amp;"},
        {'<', "&lt;" },
        {'>', "&gt;" },
    };
    struct buffer out = BUFFER(8 * TEXT_LIMIT_BYTES);

    for (const char *c = words; *c; c++) {
        const char *entity = NULL;
        for (size_t i = 0; i < sizeof entities / sizeof entities[0]; i++)
            if (*c == entities[i].c)
                entity = entities[i].text;
        buffer_printf(&out, "%s", entity ? entity : (char[]){*c, '\0'});
        if (*c == '@' || (*c == ']' && c[1] && strchr("([:", c[1])))
            buffer_printf(&out, "\u200b");
    }
    return buffer_take(&out, NULL);
}
