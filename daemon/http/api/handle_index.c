/* GET /v1/: the routes with a sentence and an example each, from the table of routes and the
 * examples of schema/api, as JSON or as a page for browsers. */
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "daemon/http/api/curl_line.h"
#include "daemon/http/api_docs.h"
#include "daemon/http/routes.h"

#define DOCS_MAX         32
#define PAGE_LIMIT_BYTES ((size_t)4 << 20)

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

/* ---------------------------------------------------------------- the page */

static void page_text(struct buffer *page, const char *text)
{
    for (; text && *text; text++) {
        const char *escaped = *text == '<'    ? "&lt;"
                              : *text == '>'  ? "&gt;"
                              : *text == '&'  ? "&amp;"
                              : *text == '"'  ? "&quot;"
                              : *text == '\'' ? "&#39;"
                                              : NULL;
        if (escaped)
            buffer_printf(page, "%s", escaped);
        else
            buffer_append(page, text, 1);
    }
}

/* before, the text of a member with what HTML would obey escaped, and behind. */
static void page_member(struct buffer *page, const char *before, const json_t *object,
                        const char *key, const char *behind)
{
    buffer_printf(page, "%s", before);
    page_text(page, json_string_value(json_object_get(object, key)));
    buffer_printf(page, "%s", behind);
}

static void page_route(struct buffer *page, const json_t *route)
{
    const json_t *parameter, *query = json_object_get(route, "query");
    size_t i;

    page_member(page, "<section><h2><span class=\"method\">", route, "method", "</span> ");
    page_member(page, "<code>", route, "path", "</code></h2>\n");
    page_member(page, "<p>", route, "summary", ". ");
    page_member(page, "<span class=\"quiet\">Role: ", route, "role", "</span></p>\n");
    page_member(page, "<pre tabindex=\"0\"><code>", route, "example", "</code></pre>\n");
    if (json_array_size(query))
        buffer_printf(page, "<dl>\n");
    json_array_foreach (query, i, parameter) {
        page_member(page, "<dt>", parameter, "name", "</dt>");
        page_member(page, "<dd>", parameter, "description", "</dd>\n");
    }
    buffer_printf(page, json_array_size(query) ? "</dl></section>\n" : "</section>\n");
}

static const char page_head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n<title>Routes \xe2\x80\x93 "
    "traind</title>\n"
    "<link rel=\"icon\" href=\"/icon.svg\" type=\"image/svg+xml\">\n"
    "<link rel=\"stylesheet\" href=\"/style.css\">\n<link rel=\"stylesheet\" href=\"/docs.css\">\n"
    "</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n"
    "<header class=\"bar\"><a class=\"brand\" href=\"/\">traind</a>"
    "<nav aria-label=\"Pages\"><a href=\"/\">Dashboard</a> <a href=\"/docs\">API</a> "
    "<a href=\"/openapi.json\">openapi.json</a></nav></header>\n"
    "<main id=\"main\" class=\"docs routes\" tabindex=\"-1\">\n<h1>Routes of the API</h1>\n"
    "<p>Each line works when it is pasted into a shell, for things with these ids. ";

static int index_page(struct reply *r, const json_t *routes, bool token, struct error *e)
{
    struct buffer page = BUFFER(PAGE_LIMIT_BYTES);
    const json_t *route;
    size_t i, bytes;

    buffer_printf(&page, "%s%s</p>\n", page_head,
                  token ? "<code>TRAIND_TOKEN</code> is a token from "
                          "<code>trainctl token create</code>."
                        : "");
    json_array_foreach (routes, i, route)
        page_route(&page, route);
    buffer_printf(&page, "</main>\n</body>\n</html>\n");
    char *text = buffer_take(&page, &bytes);
    int status = text ? reply_text(r, 200, "text/html; charset=utf-8", text, bytes, e)
                      : error_set(e, ERR_NO_MEMORY, "no memory for the page of routes");
    free(text);
    return status;
}

int handle_index(const struct request *q, struct reply *r, struct error *e)
{
    struct curl_server server = index_server(q);
    json_t *routes = index_routes(&server);

    reply_header(r, "Vary", "Accept, Host");
    if (!q->accept || !strstr(q->accept, "text/html"))
        return reply_json(r, 200, json_pack("{s:o}", "routes", routes), e);
    int status = index_page(r, routes, server.token && !server.socket, e);
    json_decref(routes);
    return status;
}
