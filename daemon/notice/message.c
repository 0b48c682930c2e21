#include "daemon/notice/message.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/text.h"
#include "daemon/notice/text.h"

#define MESSAGE_LIMIT_BYTES ((size_t)256 << 10)
#define MAIL_LINE_BYTES     900 /* RFC 5322 allows 998 */
#define SUBJECT_BYTES       120

/* The page of what it tells of; NULL: there is none. The caller frees it. */
static char *message_link(const struct outbox_notice *n, const struct notice_settings *s)
{
    char *link = NULL;
    int written = -1;

    if (s->config.public_url && n->job_id > 0)
        written = asprintf(&link, "%s/#/jobs/%lld", s->config.public_url, (long long)n->job_id);
    else if (s->config.public_url && n->sweep_id > 0)
        written = asprintf(&link, "%s/#/sweeps/%lld", s->config.public_url, (long long)n->sweep_id);
    else if (s->config.public_url)
        written = asprintf(&link, "%s/", s->config.public_url);
    return written < 0 ? NULL : link;
}

static json_t *message_object(const struct outbox_notice *n, const char *link)
{
    json_t *body = json_loads(n->body ? n->body : "{}", 0, NULL);

    if (!json_is_object(body)) {
        json_decref(body);
        return NULL;
    }
    json_t *head = json_pack("{s:s, s:s, s:s?}", "notice", n->uid, "to", n->target, "url", link);
    json_object_update_missing(head, body);
    json_decref(body);
    return head;
}

static int message_no_memory(struct error *e)
{
    return error_set(e, ERR_NO_MEMORY, "no memory for a notice");
}

int message_json(const struct outbox_notice *n, const struct notice_settings *settings, char **text,
                 struct error *e)
{
    char *link = message_link(n, settings);
    json_t *whole = message_object(n, link), *sent = whole;

    if (n->format == NOTICE_TEXT && whole) {
        char *words = text_of_notice(whole, link), *chat = words ? text_for_chat(words) : NULL;
        sent = chat ? json_pack("{s:s}", "text", chat) : NULL;
        free(chat);
        free(words);
    }
    *text = sent ? json_dumps(sent, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
    if (sent != whole)
        json_decref(sent);
    json_decref(whole);
    free(link);
    return *text ? 0 : message_no_memory(e);
}

/* ---------------------------------------------------------------- mail */

/* The first line of the text; beyond ASCII as RFC 2047 writes it. */
static void message_subject(struct buffer *out, const char *text)
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
    /* A word of it has at most 75 characters: 42 bytes in base64. */
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

/* Lines of a bounded length; a "." alone needs no care: sendmail -i. */
static void message_lines(struct buffer *out, const char *text)
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

int message_mail(const struct outbox_notice *n, const struct notice_settings *settings, char **text,
                 struct error *e)
{
    struct buffer out = BUFFER(MESSAGE_LIMIT_BYTES);
    char *link = message_link(n, settings);
    json_t *whole = message_object(n, link);
    char *words = whole ? text_of_notice(whole, link) : NULL;
    char *shown = words && n->format == NOTICE_JSON
                      ? json_dumps(whole, JSON_INDENT(2) | JSON_REAL_PRECISION(12))
                      : NULL;

    if (words) {
        if (settings->config.notify_from)
            buffer_printf(&out, "From: %s\n", settings->config.notify_from);
        buffer_printf(&out, "To: %s\n", n->target + strlen("mailto:"));
        message_subject(&out, words);
        buffer_printf(
            &out,
            "Auto-Submitted: auto-generated\nTraind-Notice-Id: %s\nMIME-Version: 1.0\n"
            "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n",
            n->uid);
        message_lines(&out, shown ? shown : words);
    }
    free(shown);
    free(words);
    free(link);
    json_decref(whole);
    *text = words ? buffer_take(&out, NULL) : NULL;
    buffer_clear(&out);
    return *text ? 0 : message_no_memory(e);
}
