#include "daemon/notice/render.h"

#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/json.h"
#include "common/notify/rule.h"
#include "common/text.h"
#include "common/xalloc.h"

#define MESSAGE_LIMIT_BYTES ((size_t)256 << 10)
#define MAIL_LINE_BYTES     900 /* RFC 5322 allows 998 */
#define SUBJECT_BYTES       120
#define TEXT_LIMIT_BYTES    ((size_t)64 << 10)

static void render_name(struct buffer *out, const char *what, const json_t *subject)
{
    const char *name = json_get_text(subject, "name", NULL);

    buffer_printf(out, "%s %lld", what, json_get_integer(subject, "id", 0));
    if (name)
        buffer_printf(out, " (%s)", name);
}

static void render_head(struct buffer *out, enum notice_kind kind, const json_t *body)
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
        render_name(out, "Sweep", sweep);
    else
        render_name(out, "Job", job);
    if (kind == NOTICE_SWEEP_DONE)
        buffer_printf(out, " has ended: %s, %lld of %lld trials succeeded",
                      json_get_text(sweep, "state", "?"), json_get_integer(sweep, "succeeded", 0),
                      json_get_integer(sweep, "trials", 0));
    else if (kind < NOTICE_KINDS && words[kind])
        buffer_printf(out, " %s", words[kind]);
}

static void render_duration(struct buffer *out, double seconds)
{
    long long whole = (long long)seconds;

    if (seconds >= 3600)
        buffer_printf(out, "%lld h %lld min", whole / 3600, whole % 3600 / 60);
    else if (seconds >= 60)
        buffer_printf(out, "%lld min %lld s", whole / 60, whole % 60);
    else
        buffer_printf(out, "%.1f s", seconds);
}

/* Appends a figure such as "top-1 75.90 %", preceded by a comma unless it is the first. */
static void render_figure(struct buffer *out, size_t start, const char *format, double value)
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

static void render_result(struct buffer *out, const json_t *job)
{
    double seconds = json_get_number(job, "ttt_seconds", NAN);

    buffer_printf(out, "\n");
    size_t start = out->bytes;
    render_figure(out, start, "top-1 %.2f %%", 100 * json_get_number(job, "top1", NAN));
    render_figure(out, start, "top-5 %.2f %%", 100 * json_get_number(job, "top5", NAN));
    render_figure(out, start, "loss %.4g", json_get_number(job, "loss", NAN));
    render_figure(out, start, "%.5g images/s", json_get_number(job, "images_per_sec", NAN));
    if (!isnan(seconds)) {
        buffer_printf(out, "%s%s ", out->bytes > start ? ", " : "",
                      json_get_integer(job, "train_steps", 0) > 0 ? "time to train" : "time");
        render_duration(out, seconds);
    }
    if (json_get_integer(job, "train_steps", 0) > 0)
        buffer_printf(out, "%sstep %lld of %lld", out->bytes > start ? ", " : "",
                      json_get_integer(job, "step", 0), json_get_integer(job, "train_steps", 0));
    if (out->bytes == start)
        out->data[--out->bytes] = '\0'; /* no figures: no empty line */
}

static void render_curve(struct buffer *out, const json_t *evals)
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

/* link may be NULL. The caller frees the text; NULL: too large. */
static char *render_text(const json_t *body, const char *link)
{
    enum notice_kind kind = notice_kind_of(json_get_text(body, "kind", NULL));
    const char *reason = json_get_text(body, "reason", NULL);
    const json_t *job = json_object_get(body, "job");
    struct buffer out = BUFFER(TEXT_LIMIT_BYTES);

    render_head(&out, kind, body);
    if (kind == NOTICE_ATTEMPT_FAILED) {
        const json_t *event = json_object_get(body, "event");
        const char *label = json_get_text(event, "label", NULL);
        buffer_printf(&out, ": attempt %lld has failed%s%s%s",
                      json_get_integer(event, "attempt", 0), label ? " (" : "", label ? label : "",
                      label ? ")" : "");
    }
    if (kind == NOTICE_SUCCEEDED)
        reason = NULL;
    if (reason && *reason)
        buffer_printf(&out, ": %s", reason);
    if (json_is_object(job) && kind != NOTICE_NODE_DRAINED) {
        render_result(&out, job);
        render_curve(&out, json_object_get(body, "evals"));
    }
    if (link)
        buffer_printf(&out, "\n%s", link);
    return buffer_take(&out, NULL);
}

/* Prevents the name of a job from acting as a command in a chat service: &, < and > become entities
 * (Slack: <!channel>, <URL
 * words>), and an invisible space (U+200B) follows each @ (Mattermost, Discord) and breaks Markdown
 * links. The caller frees the text; NULL: too large. */
static char *render_chat_text(const char *words)
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

static char *render_link(const struct outbox_notice *n, const struct notice_settings *s)
{
    if (!s->config.public_url)
        return NULL;
    if (n->job_id > 0)
        return xasprintf("%s/#/jobs/%lld", s->config.public_url, (long long)n->job_id);
    if (n->sweep_id > 0)
        return xasprintf("%s/#/sweeps/%lld", s->config.public_url, (long long)n->sweep_id);
    return xasprintf("%s/", s->config.public_url);
}

static json_t *render_object(const struct outbox_notice *n, const char *link)
{
    json_t *body = json_loads(n->body ? n->body : "{}", 0, NULL);
    json_t *head =
        must_alloc(json_pack("{s:s, s:s, s:s?}", "notice", n->uid, "to", n->target, "url", link));

    json_object_update_missing(head, body);
    json_decref(body);
    return head;
}

char *render_json(const struct outbox_notice *n, const struct notice_settings *settings)
{
    char *link = render_link(n, settings);
    json_t *sent = render_object(n, link);

    if (n->format == NOTICE_TEXT) {
        char *text = render_text(sent, link), *chat = text ? render_chat_text(text) : NULL;
        json_decref(sent);
        sent = chat ? json_pack("{s:s}", "text", chat) : NULL;
        free(chat);
        free(text);
    }
    char *text = sent ? json_dumps(sent, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
    json_decref(sent);
    free(link);
    return text;
}

/* Writes the first line of the text, encoded as in RFC 2047 if it is not ASCII. */
static void render_subject(struct buffer *out, const char *text)
{
    char line[SUBJECT_BYTES * TEXT_ESCAPE_GROWTH], coded[2 * SUBJECT_BYTES];
    size_t length = strcspn(text, "\n"), plain = 0;

    if (length > SUBJECT_BYTES)
        length = SUBJECT_BYTES - text_incomplete(text, SUBJECT_BYTES);
    while (plain < length && text[plain] >= ' ' && text[plain] <= '~')
        plain++;
    if (plain == length) {
        buffer_printf(out, "Subject: %.*s\n", (int)length, text);
        return;
    }
    /* An encoded word has at most 75 characters: 42 bytes in base64. */
    buffer_printf(out, "Subject:");
    length = text_escape(line, sizeof line, text, length, "");
    for (size_t at = 0, n; at < length; at += n) {
        n = length - at < 42 ? length - at : 42;
        if (at + n < length)
            n -= text_incomplete(line + at, n);
        sodium_bin2base64(coded, sizeof coded, (const unsigned char *)line + at, n,
                          sodium_base64_VARIANT_ORIGINAL);
        buffer_printf(out, " =?UTF-8?B?%s?=\n", coded);
    }
}

/* Writes lines of bounded length; a single "." is harmless with sendmail -i. */
static void render_lines(struct buffer *out, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        bool ends = n <= MAIL_LINE_BYTES;
        if (!ends)
            n = MAIL_LINE_BYTES - text_incomplete(text, MAIL_LINE_BYTES);
        buffer_append(out, text, n);
        buffer_append(out, "\n", 1);
        text += n;
        text += ends && *text == '\n';
    }
}

char *render_mail(const struct outbox_notice *n, const struct notice_settings *settings)
{
    struct buffer out = BUFFER(MESSAGE_LIMIT_BYTES);
    char *link = render_link(n, settings);
    json_t *whole = render_object(n, link);
    char *text = render_text(whole, link), *json = NULL, *mail = NULL;

    if (!text)
        goto done;
    if (n->format == NOTICE_JSON)
        json = must_alloc(json_dumps(whole, JSON_INDENT(2) | JSON_REAL_PRECISION(12)));
    if (settings->config.notify_from)
        buffer_printf(&out, "From: %s\n", settings->config.notify_from);
    buffer_printf(&out, "To: %s\n", n->target + strlen("mailto:"));
    render_subject(&out, text);
    buffer_printf(&out,
                  "Auto-Submitted: auto-generated\nTraind-Notice-Id: %s\nMIME-Version: 1.0\n"
                  "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n",
                  n->uid);
    render_lines(&out, json ? json : text);
    mail = buffer_take(&out, NULL);
done:
    free(json);
    free(text);
    free(link);
    json_decref(whole);
    return mail;
}
