#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/json.h"
#include "daemon/http/openapi.h"
#include "daemon/http/routes.h"

#define LINE_LIMIT_BYTES ((size_t)64 << 10)

struct curl_server {
    const char *socket; /* path of the unix socket; NULL: TCP */
    const char *scheme, *host;
    bool token; /* requests need a token: $TRAINCTL_TOKEN */
};

static const json_t *index_example(const struct route *route, const json_t *doc)
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

static void index_quote(struct buffer *out, const char *text)
{
    buffer_printf(out, "'");
    for (; *text; text++)
        buffer_printf(out, *text == '\'' ? "'\\''" : "%c", *text);
    buffer_printf(out, "'");
}

static void index_escape(struct buffer *out, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~,:";

    for (; *text; text++)
        buffer_printf(out, strchr(plain, *text) ? "%c" : "%%%02X", (unsigned char)*text);
}

static void index_put_value(struct buffer *out, const json_t *value)
{
    char *text = json_is_string(value) ? NULL : json_to_text(value, JSON_ENCODE_ANY | JSON_COMPACT);

    index_escape(out, text ? text : json_string_value(value) ? json_string_value(value) : "");
    free(text);
}

static void index_put_path(struct buffer *out, const struct route *route, const json_t *example)
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
            index_put_value(out, given);
        else
            buffer_printf(out, "1");
        at += length + 2;
    }
    json_object_foreach (json_object_get(example, "query"), name, value) {
        buffer_printf(out, "%s%s=", sign, name);
        index_put_value(out, value);
        sign = "&";
    }
}

/* doc: the route's description in schema/api, or NULL. The caller frees the result; NULL: out of
 * memory. */
static char *index_curl_line(const struct route *route, const json_t *doc,
                             const struct curl_server *server)
{
    struct buffer line = BUFFER(LINE_LIMIT_BYTES), url = BUFFER(LINE_LIMIT_BYTES);
    const json_t *example = index_example(route, doc), *body = json_object_get(example, "body");
    char *text = body ? json_to_text(body, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    bool plain = strcmp(route->method, "GET") == 0 || (strcmp(route->method, "POST") == 0 && text);

    buffer_printf(&line, "curl");
    if (json_object_get(json_object_get(doc, "answer_headers"), "Content-Disposition"))
        buffer_printf(&line, " -OJ");
    if (server->socket) {
        buffer_printf(&line, " --unix-socket ");
        index_quote(&line, server->socket);
    } else if (server->token && route->role != ROLE_ANYONE) {
        buffer_printf(&line, " -H \"Authorization: Bearer $TRAINCTL_TOKEN\"");
    }
    if (!plain)
        buffer_printf(&line, " -X %s", route->method);
    if (text) {
        buffer_printf(&line, " -H 'Content-Type: application/json' -d ");
        index_quote(&line, text);
    }
    free(text);
    buffer_printf(&url, "%s://%s", server->scheme, server->host);
    index_put_path(&url, route, example);
    char *address = buffer_take(&url, NULL);
    if (address) {
        buffer_printf(&line, " ");
        index_quote(&line, address);
    }
    free(address);
    return buffer_take(&line, NULL);
}

#define DOCS_MAX 32

static json_t *index_route(const struct route *route, json_t *const docs[],
                           const struct curl_server *server)
{
    const json_t *doc = NULL, *known;
    json_t *title = json_sprintf("%s %s", route->method, route->pattern), *query = json_array();

    for (size_t i = 0; i < DOCS_MAX && !doc; i++)
        doc = json_object_get(json_object_get(docs[i], "routes"), json_string_value(title));
    json_decref(title);
    known = json_object_get(doc, "parameters");
    for (const char *at = route->parameters; *at; at += strcspn(at, " "), at += *at == ' ') {
        json_t *about = json_object_getn(known, at, strcspn(at, " "));
        json_array_append_new(query,
                              json_pack("{s:s%, s:O?}", "name", at, strcspn(at, " "), "description",
                                        json_object_get(about, "description")));
    }
    char *line = index_curl_line(route, doc, server);
    json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:o, s:s?}", "method", route->method, "path",
                             route->pattern, "summary", route->summary, "role",
                             role_at(route->role)->name, "query", query, "example", line);
    free(line);
    return json;
}

int handle_index(const struct request *q, struct reply *r, struct error *e)
{
    static const char host[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._:[]";
    bool right = q->host && *q->host && !q->host[strspn(q->host, host)];
    struct curl_server server = {
        .socket = q->on_socket ? q->config->socket : NULL,
        .scheme = q->config->tls_certificate && !q->on_socket ? "https" : "http",
        .host = q->on_socket ? "localhost"
                : right      ? q->host
                             : q->config->listen, /* do not repeat an invalid Host */
        .token = q->config->require_token,
    };
    json_t *docs[DOCS_MAX] = {0}, *list = json_array();

    for (size_t i = 0; i < DOCS_MAX && api_docs[i].name; i++)
        docs[i] = json_loads(api_docs[i].text, 0, NULL);
    for (size_t i = 0; route_at(i); i++)
        json_array_append_new(list, index_route(route_at(i), docs, &server));
    for (size_t i = 0; i < DOCS_MAX; i++)
        json_decref(docs[i]);
    reply_header(r, "Vary", "Host");
    return reply_json(r, 200, json_pack("{s:o}", "routes", list), e);
}
