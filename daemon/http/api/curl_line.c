#include "daemon/http/api/curl_line.h"

#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/json.h"

#define LINE_LIMIT_BYTES ((size_t)64 << 10)

/* The first example of a good answer, and rather one without headers of its own. */
static const json_t *curl_example(const struct route *route, const json_t *doc)
{
    const json_t *found = NULL;
    json_t *example;
    const char *name;

    json_object_foreach (json_object_get(doc, "examples"), name, example) {
        const json_t *status = json_object_get(example, "status");
        if (status && json_integer_value(status) != route->success)
            continue;
        if (!found || (json_object_get(found, "headers") && !json_object_get(example, "headers")))
            found = example;
    }
    return found;
}

/* Between single quotes, in which a shell takes everything as it is. */
static void curl_quote(struct buffer *out, const char *text)
{
    buffer_printf(out, "'");
    for (; *text; text++)
        buffer_printf(out, *text == '\'' ? "'\\''" : "%c", *text);
    buffer_printf(out, "'");
}

static void curl_escape(struct buffer *out, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~,:";

    for (; *text; text++)
        buffer_printf(out, strchr(plain, *text) ? "%c" : "%%%02X", (unsigned char)*text);
}

static void curl_value(struct buffer *out, const json_t *value)
{
    char *text = json_is_string(value) ? NULL : json_to_text(value, JSON_ENCODE_ANY | JSON_COMPACT);

    curl_escape(out, text ? text : json_string_value(value) ? json_string_value(value) : "");
    free(text);
}

/* "/v1/jobs/1/log?from=0": what the example has for {words}, an id is 1 without it. */
static void curl_path(struct buffer *out, const struct route *route, const json_t *example)
{
    const json_t *path = json_object_get(example, "path");
    const char *name, *at = route->pattern, *sign = "?";
    json_t *value;

    while (*at) {
        size_t length = strcspn(at, "{");
        buffer_printf(out, "%.*s", (int)length, at);
        at += length;
        if (!*at)
            break;
        length = strcspn(at + 1, "}");
        const json_t *given = json_object_getn(path, at + 1, length);
        if (given)
            curl_value(out, given);
        else
            buffer_printf(out, "1");
        at += length + 2;
    }
    json_object_foreach (json_object_get(example, "query"), name, value) {
        buffer_printf(out, "%s%s=", sign, name);
        curl_value(out, value);
        sign = "&";
    }
}

static void curl_body(struct buffer *out, const struct route *route, const json_t *example)
{
    const json_t *body = json_object_get(example, "body");
    char *text = body ? json_to_text(body, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    bool post = strcmp(route->method, "POST") == 0;

    if (strcmp(route->method, "GET") != 0 && !(post && text))
        buffer_printf(out, " -X %s", route->method);
    if (!text)
        return;
    buffer_printf(out, " -H 'Content-Type: application/json' -d ");
    curl_quote(out, text);
    free(text);
}

char *curl_line(const struct route *route, const json_t *doc, const struct curl_server *server)
{
    struct buffer line = BUFFER(LINE_LIMIT_BYTES), url = BUFFER(LINE_LIMIT_BYTES);
    const json_t *example = curl_example(route, doc);

    buffer_printf(&line, "curl");
    if (json_object_get(json_object_get(doc, "answer_headers"), "Content-Disposition"))
        buffer_printf(&line, " -OJ");
    if (server->socket) {
        buffer_printf(&line, " --unix-socket ");
        curl_quote(&line, server->socket);
    } else if (server->token && route->role != ROLE_ANYONE) {
        buffer_printf(&line, " -H \"Authorization: Bearer $TRAINCTL_TOKEN\"");
    }
    curl_body(&line, route, example);
    buffer_printf(&url, "%s://%s", server->scheme, server->host);
    curl_path(&url, route, example);
    char *address = buffer_take(&url, NULL);
    if (address) {
        buffer_printf(&line, " ");
        curl_quote(&line, address);
    }
    free(address);
    return buffer_take(&line, NULL);
}
