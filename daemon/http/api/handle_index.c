/* GET /v1/: the routes with a sentence and an example each, from the table of routes and the
 * examples of schema/api. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/curl_line.h"
#include "daemon/http/api_docs.h"
#include "daemon/http/routes.h"

#define DOCS_MAX 32

/* Who asks by which address; a Host that is none is not repeated. */
static struct curl_server index_server(const struct request *q)
{
    static const char host[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._:[]";
    bool right = q->host && *q->host && !q->host[strspn(q->host, host)];

    return (struct curl_server){
        .socket = q->on_socket ? q->config->socket : NULL,
        .scheme = q->config->tls_certificate && !q->on_socket ? "https" : "http",
        .host = q->on_socket ? "localhost"
                : right      ? q->host
                             : q->config->listen,
        .token = q->config->require_token,
    };
}

static json_t *index_parameters(const struct route *route, const json_t *doc)
{
    const json_t *known = json_object_get(doc, "parameters");
    json_t *list = json_array();

    for (const char *at = route->parameters; *at; at += strcspn(at, " "), at += *at == ' ') {
        json_t *about = json_object_getn(known, at, strcspn(at, " "));
        json_array_append_new(list,
                              json_pack("{s:s%, s:O?}", "name", at, strcspn(at, " "), "description",
                                        json_object_get(about, "description")));
    }
    return list;
}

static json_t *index_route(const struct route *route, json_t *const docs[],
                           const struct curl_server *server)
{
    const json_t *doc = NULL;
    json_t *title = json_sprintf("%s %s", route->method, route->pattern);

    for (size_t i = 0; i < DOCS_MAX && !doc; i++)
        doc = json_object_get(json_object_get(docs[i], "routes"), json_string_value(title));
    json_decref(title);
    char *line = curl_line(route, doc, server);
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:s, s:o, s:s?}", "method", route->method, "path",
                  route->pattern, "summary", route->summary, "role", role_at(route->role)->name,
                  "query", index_parameters(route, doc), "example", line);
    free(line);
    return json;
}

static json_t *index_routes(const struct curl_server *server)
{
    json_t *docs[DOCS_MAX] = {0}, *list = json_array();

    for (size_t i = 0; i < DOCS_MAX && api_docs[i].name; i++)
        docs[i] = json_loads(api_docs[i].text, 0, NULL);
    for (size_t i = 0; route_at(i); i++)
        json_array_append_new(list, index_route(route_at(i), docs, server));
    for (size_t i = 0; i < DOCS_MAX; i++)
        json_decref(docs[i]);
    return list;
}

int handle_index(const struct request *q, struct reply *r, struct error *e)
{
    struct curl_server server = index_server(q);
    json_t *routes = index_routes(&server);

    reply_header(r, "Vary", "Host");
    return reply_json(r, 200, json_pack("{s:o}", "routes", routes), e);
}
