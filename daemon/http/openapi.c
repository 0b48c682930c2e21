#include "daemon/http/openapi.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/job_document.h"
#include "common/json.h"
#include "config.h"
#include "daemon/http/access/auth.h"
#include "daemon/http/routes.h"

struct described {
    const struct route *route;
    const json_t *doc, *examples; /* NULL: not described */
};

static json_t *openapi_reference(const char *where, const char *name)
{
    return json_pack("{s:o}", "$ref", json_sprintf("#/components/%s/%s", where, name));
}

static json_t *openapi_schema_of(const json_t *schema)
{
    const char *name = json_string_value(schema);
    return name ? openapi_reference("schemas", name) : json_deep_copy(schema);
}

static void openapi_add_examples(json_t *to, json_t *examples)
{
    if (json_object_size(examples))
        json_object_set(to, "examples", examples);
    json_decref(examples);
}

/* Returns the example values of a parameter (group: "query", ...) or of the body (NULL). */
static json_t *openapi_examples_in(const struct described *d, const char *group, const char *key)
{
    json_t *out = json_object(), *example;
    const char *name;

    json_object_foreach ((json_t *)d->examples, name, example) {
        json_t *value = group ? json_object_get(json_object_get(example, group), key)
                              : json_object_get(example, key);
        if (!value && group && strcmp(key, "id") == 0)
            json_object_set_new(out, name, json_pack("{s:i}", "value", 1));
        else if (value)
            json_object_set_new(out, name, json_pack("{s:O}", "value", value));
    }
    return out;
}

static json_t *openapi_content_of(const struct described *d, int status, const char *type,
                                  json_t *schema)
{
    json_t *media = json_pack("{s:o}", "schema", schema), *answers = json_object(), *example;
    const char *name;

    json_object_foreach ((json_t *)d->examples, name, example) {
        int its_status = (int)json_get_integer(example, "status", d->route->success);
        const char *usual = its_status < 400 ? "application/json" : "application/problem+json";
        if (its_status == status && strcmp(json_get_text(example, "type", usual), type) == 0)
            json_object_set_new(answers, name,
                                json_pack("{s:O}", "value", json_object_get(example, "answer")));
    }
    openapi_add_examples(media, answers);
    return media;
}

static bool openapi_is_tagged(const struct described *d)
{
    return strcmp(d->route->method, "GET") == 0 && !json_is_true(json_object_get(d->doc, "file"));
}

static void openapi_add_parameter(json_t *list, const struct described *d, const char *in,
                                  const char *name, const json_t *about)
{
    bool in_path = strcmp(in, "path") == 0;
    json_t *schema = about ? json_deep_copy(about) : json_pack("{s:s}", "type", "string");
    json_t *parameter = json_pack("{s:s, s:s}", "name", name, "in", in);
    const char *group = strcmp(in, "header") == 0 ? "headers" : in;
    const json_t *words = json_object_get(schema, "description");

    if (words)
        json_object_set(parameter, "description", (json_t *)words);
    json_object_del(schema, "description");
    if (in_path || json_is_true(json_object_get(schema, "required")))
        json_object_set_new(parameter, "required", json_true());
    json_object_del(schema, "required");
    json_object_set_new(parameter, "schema", schema);
    openapi_add_examples(parameter, openapi_examples_in(d, group, name));
    json_array_append_new(list, parameter);
}

static json_t *openapi_parameters_of(const struct described *d)
{
    const json_t *known = json_object_get(d->doc, "parameters");
    json_t *list = json_array(), *about,
           *number = json_pack("{s:s, s:i}", "type", "integer", "minimum", 1);
    const char *name;
    char word[64];

    for (const char *at = strchr(d->route->pattern, '{'); at; at = strchr(at + 1, '{')) {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at + 1, "}"), at + 1);
        about = json_object_get(known, word);
        openapi_add_parameter(list, d, "path", word,
                              about || strcmp(word, "id") != 0 ? about : number);
    }
    for (const char *at = d->route->parameters; *at; at += strcspn(at, " "), at += *at == ' ') {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, " "), at);
        openapi_add_parameter(list, d, "query", word, json_object_get(known, word));
    }
    json_object_foreach (json_object_get(d->doc, "headers"), name, about)
        openapi_add_parameter(list, d, "header", name, about);
    if (openapi_is_tagged(d))
        json_array_append_new(list, openapi_reference("parameters", "IfNoneMatch"));
    json_decref(number);
    return list;
}

static void openapi_add_header(json_t *answer, const char *name, const char *words)
{
    char pointer[64];

    snprintf(pointer, sizeof pointer, "/headers/%s", name);
    json_set_at(answer, pointer,
                json_pack("{s:s, s:{s:s}}", "description", words, "schema", "type", "string"));
}

static void openapi_add_problem(json_t *responses, const struct described *d, int status)
{
    char code[8];
    json_t *media = openapi_content_of(d, status, "application/problem+json",
                                       openapi_reference("schemas", "Problem"));

    snprintf(code, sizeof code, "%d", status);
    if (json_object_get(media, "examples"))
        json_object_set_new(responses, code,
                            json_pack("{s:s, s:{s:O}}", "description", "Problem (RFC 9457)",
                                      "content", "application/problem+json", media));
    else
        json_object_set_new(responses, code, openapi_reference("responses", "Problem"));
    json_decref(media);
}

static void openapi_add_problems(json_t *responses, const struct described *d)
{
    const json_t *code;
    size_t i;

    /* Every route first checks the token, Host and the size of the body. */
    openapi_add_problem(responses, d, 400);
    openapi_add_problem(responses, d, 401);
    openapi_add_problem(responses, d, 403);
    openapi_add_problem(responses, d, 413);
    if (json_object_get(d->doc, "body"))
        openapi_add_problem(responses, d, 415);
    json_object_set_new(responses, "429", openapi_reference("responses", "TooMany"));
    if (strchr(d->route->pattern, '{'))
        openapi_add_problem(responses, d, 404);
    if (strcmp(d->route->method, "GET") != 0 && d->route->role != ROLE_READ)
        openapi_add_problem(responses, d, 507); /* because it writes to the disk */
    json_array_foreach (json_object_get(d->doc, "problems"), i, code)
        openapi_add_problem(responses, d, (int)json_integer_value(code));
    json_object_set_new(responses, "default", openapi_reference("responses", "Problem"));
}

static json_t *openapi_good_answer(const struct described *d, const char *code, const json_t *types)
{
    json_t *content = json_object(), *schema, *words;
    json_t *answer = json_pack("{s:s}", "description", d->route->summary);
    const char *name;
    int status = atoi(code);

    json_object_foreach ((json_t *)types, name, schema)
        json_object_set_new(content, name,
                            openapi_content_of(d, status, name, openapi_schema_of(schema)));
    json_object_set_new(answer, "content", content);
    json_object_foreach (json_object_get(d->doc, "answer_headers"), name, words)
        openapi_add_header(answer, name, json_string_value(words));
    if (openapi_is_tagged(d))
        openapi_add_header(answer, "ETag", "entity tag of the answer, for If-None-Match");
    return answer;
}

static json_t *openapi_responses_of(const struct described *d)
{
    json_t *responses = json_object(), *types;
    const char *code;

    json_object_foreach (json_object_get(d->doc, "answers"), code, types)
        json_object_set_new(responses, code, openapi_good_answer(d, code, types));
    if (openapi_is_tagged(d))
        json_object_set_new(responses, "304", openapi_reference("responses", "NotModified"));
    if (!d->route->handler)
        openapi_add_problem(responses, d, 501);
    openapi_add_problems(responses, d);
    return responses;
}

static json_t *openapi_body_of(const struct described *d)
{
    const json_t *body = json_object_get(d->doc, "body");
    if (!body)
        return NULL;
    json_t *media = json_pack("{s:o}", "schema", openapi_schema_of(body));
    openapi_add_examples(media, openapi_examples_in(d, NULL, "body"));
    return json_pack("{s:b, s:{s:o}}", "required",
                     !json_is_true(json_object_get(d->doc, "body_optional")), "content",
                     "application/json", media);
}

static json_t *openapi_operation(const struct described *d, const char *tag)
{
    const struct route *route = d->route;
    json_t *json = json_pack("{s:O, s:s, s:[s], s:s, s:o, s:o}", "operationId",
                             json_object_get(d->doc, "operation"), "summary", route->summary,
                             "tags", tag, "x-role", role_at(route->role)->name, "parameters",
                             openapi_parameters_of(d), "responses", openapi_responses_of(d));
    json_t *body = openapi_body_of(d);

    if (body)
        json_object_set_new(json, "requestBody", body);
    json_object_set_new(json, "security",
                        route->role == ROLE_ANYONE ? json_array()
                                                   : json_pack("[{s:[]}, {}]", "token"));
    if (!route->handler)
        json_object_set_new(json, "description",
                            json_string("Not supported by this version: answers 501."));
    return json;
}

static void openapi_describe(json_t *const docs[], struct described *d, const char **tag)
{
    char title[128];

    *tag = "other";
    snprintf(title, sizeof title, "%s %s", d->route->method, d->route->pattern);
    for (size_t i = 0; api_docs[i].name; i++) {
        d->doc = json_object_get(json_object_get(docs[i], "routes"), title);
        if (!d->doc)
            continue;
        d->examples = json_object_get(d->doc, "examples");
        *tag = api_docs[i].name;
        return;
    }
}

static json_t *openapi_paths(json_t *const docs[])
{
    json_t *all = json_object();

    for (size_t i = 0; route_at(i); i++) {
        struct described d = {.route = route_at(i)};
        const char *tag;
        char method[8] = "";
        for (size_t k = 0; d.route->method[k]; k++)
            method[k] = (char)tolower(d.route->method[k]);
        json_t *path = json_object_get(all, d.route->pattern);
        openapi_describe(docs, &d, &tag);
        if (!path) {
            path = json_object();
            json_object_set_new(all, d.route->pattern, path);
        }
        json_object_set_new(path, method, openapi_operation(&d, tag));
    }
    return all;
}

/* Moves the defaults of requests to the description, because code generators treat a key with a
 * default as always present. */
static void openapi_tell_defaults(json_t *schema)
{
    json_t *property, *fallback;
    const char *key;

    json_object_foreach (json_object_get(schema, "properties"), key, property) {
        openapi_tell_defaults(property);
        if (!(fallback = json_object_get(property, "default")))
            continue;
        char *text = json_dumps(fallback, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(10));
        const char *words = json_string_value(json_object_get(property, "description"));
        json_object_set_new(property, "description",
                            json_sprintf("%s%sDefault: %s.", words ? words : "", words ? " " : "",
                                         text ? text : "null"));
        json_object_del(property, "default");
        free(text);
    }
}

static json_t *openapi_job_schema(bool request)
{
    json_t *schema = job_spec_schema();

    json_object_del(schema, "$schema"); /* the whole document's applies */
    if (request) {
        openapi_tell_defaults(schema);
        json_object_set_new(schema, "description",
                            json_string("A job as submitted: only data.train is required. "
                                        "man train-job describes each key."));
    } else {
        json_object_del(schema, "required");
        json_object_set_new(schema, "description",
                            json_string("A job's document with all defaults filled in. A job of "
                                        "an older version lacks keys added later."));
    }
    return schema;
}

static json_t *openapi_components_of(json_t *const docs[])
{
    json_t *schemas = json_pack("{s:o, s:o}", "JobDocument", openapi_job_schema(true), "JobSpec",
                                openapi_job_schema(false));
    json_t *problem =
        json_pack("{s:s, s:{s:{s:o}}}", "description", "Problem (RFC 9457)", "content",
                  "application/problem+json", "schema", openapi_reference("schemas", "Problem"));
    json_t *too_many = json_deep_copy(problem);
    json_t *unchanged = json_pack("{s:s}", "description",
                                  "Not modified: the entity tag is one of those in If-None-Match");

    for (size_t i = 0; api_docs[i].name; i++)
        json_object_update(schemas, json_object_get(docs[i], "schemas"));
    openapi_add_header(too_many, "Retry-After", "seconds");
    json_t *tag = json_pack(
        "{s:s, s:s, s:s, s:{s:s}}", "name", "If-None-Match", "in", "header", "description",
        "entity tags of answers the client has cached; 304 if one of them is current", "schema",
        "type", "string");
    return json_pack("{s:o, s:{s:o}, s:{s:o, s:o, s:o}, s:{s:{s:s, s:s, s:s}}}", "schemas", schemas,
                     "parameters", "IfNoneMatch", tag, "responses", "Problem", problem, "TooMany",
                     too_many, "NotModified", unchanged, "securitySchemes", "token", "type", "http",
                     "scheme", "bearer", "description",
                     "from trainctl token; not needed on the unix socket");
}

static json_t *openapi_roles_of(void)
{
    json_t *all = json_array();

    for (int i = 0; i < ROLES; i++) {
        const struct role_info *role = role_at((enum role)i);
        json_t *includes = json_array();
        for (int k = 0; k < ROLES; k++)
            if (k != i && role->rights & RIGHT(k))
                json_array_append_new(includes, json_string(role_at((enum role)k)->name));
        json_array_append_new(all, json_pack("{s:s, s:o, s:s?}", "name", role->name, "includes",
                                             includes, "may", role->may));
    }
    return all;
}

#define DOCS_MAX 32

static const char about[] = "traind trains image classifiers on CPU clusters. Every GET route also "
                            "answers HEAD. Answers are compressed for clients that send "
                            "Accept-Encoding: gzip; request bodies must not be encoded (415 for a "
                            "Content-Encoding). Errors are application/problem+json (RFC "
                            "9457). Lists have a field next: pass it as after (or from) to get the "
                            "next page; it is null on the last page.";

json_t *openapi_document(void)
{
    json_t *docs[DOCS_MAX] = {0};

    for (size_t i = 0; i < DOCS_MAX && api_docs[i].name; i++)
        docs[i] = json_loads(api_docs[i].text, JSON_REJECT_DUPLICATES, NULL);
    json_t *document = json_pack(
        "{s:s, s:{s:s, s:s, s:s, s:{s:s, s:s}}, s:[{s:s, s:s}], s:o, s:o, s:o}", "openapi", "3.1.0",
        "info", "title", "traind", "version", PACKAGE_VERSION, "description", about, "license",
        "name", "Apache-2.0", "identifier", "Apache-2.0", "servers", "url", "/", "description",
        "the daemon that served this document", "x-roles", openapi_roles_of(), "paths",
        openapi_paths(docs), "components", openapi_components_of(docs));
    for (size_t i = 0; i < DOCS_MAX; i++)
        json_decref(docs[i]);
    return document;
}
