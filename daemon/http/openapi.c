/* The OpenAPI 3.1 document, from the table of routes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job_spec.h"
#include "config.h"
#include "daemon/http/auth.h"
#include "daemon/http/routes.h"

static json_t *path_parameters(const char *pattern)
{
    json_t *list = json_array();

    for (const char *at = strchr(pattern, '{'); at; at = strchr(at + 1, '{')) {
        int length = (int)strcspn(at + 1, "}");
        bool whole = strncmp(at, "{id}", 4) == 0 || strncmp(at, "{step}", 6) == 0;
        json_t *schema = whole ? json_pack("{s:s, s:i}", "type", "integer", "minimum", 0)
                               : json_pack("{s:s}", "type", "string");
        json_array_append_new(list,
                              json_pack("{s:s%, s:s, s:b, s:o}", "name", at + 1, (size_t)length,
                                        "in", "path", "required", 1, "schema", schema));
    }
    return list;
}

static void add_query_parameters(json_t *list, const char *words)
{
    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ') {
        size_t length = strcspn(at, " ");
        bool text = strncmp(at, "state", length) == 0 || strncmp(at, "names", length) == 0 ||
                    strncmp(at, "ids", length) == 0 || strncmp(at, "types", length) == 0 ||
                    strncmp(at, "format", length) == 0;
        json_array_append_new(list,
                              json_pack("{s:s%, s:s, s:{s:s}}", "name", at, length, "in", "query",
                                        "schema", "type", text ? "string" : "integer"));
    }
}

static void add_key_header(json_t *list)
{
    json_array_append_new(list,
                          json_pack("{s:s, s:s, s:{s:s, s:i}}", "name", "Idempotency-Key", "in",
                                    "header", "schema", "type", "string", "maxLength", 200));
}

static json_t *responses(const struct route *route)
{
    char status[8];
    json_t *problem = json_pack("{s:s}", "$ref", "#/components/responses/Problem");
    snprintf(status, sizeof status, "%d", route->handler ? route->success : 501);
    if (!route->handler)
        return json_pack("{s:o}", status, problem);
    return json_pack("{s:{s:s}, s:o}", status, "description", route->summary, "default", problem);
}

static json_t *resume_body(void)
{
    json_t *schema = json_pack("{s:s, s:{s:{s:s}, s:{s:s}, s:{s:s}}, s:b}", "type", "object",
                               "properties", "cluster", "type", "object", "restart", "type",
                               "object", "priority", "type", "integer", "additionalProperties", 0);
    return json_pack("{s:b, s:{s:{s:o}}}", "required", 0, "content", "application/json", "schema",
                     schema);
}

static json_t *operation(const struct route *route)
{
    json_t *parameters = path_parameters(route->pattern);
    bool takes_job =
        strcmp(route->pattern, "/v1/plan") == 0 ||
        (strcmp(route->pattern, "/v1/jobs") == 0 && strcmp(route->method, "POST") == 0);

    add_query_parameters(parameters, route->parameters);
    if (takes_job && route->success == 201)
        add_key_header(parameters);
    json_t *json = json_pack("{s:s, s:o, s:o}", "summary", route->summary, "parameters", parameters,
                             "responses", responses(route));
    json_object_set_new(json, "x-role", json_string(auth_role_name(route->role)));
    if (!route->handler)
        json_object_set_new(json, "description",
                            json_string("Not supported by this version: answers 501."));
    if (strcmp(route->pattern, "/v1/jobs/{id}/resume") == 0)
        json_object_set_new(json, "requestBody", resume_body());
    if (takes_job)
        json_object_set_new(json, "requestBody",
                            json_pack("{s:b, s:{s:{s:{s:s}}}}", "required", 1, "content",
                                      "application/json", "schema", "$ref",
                                      "#/components/schemas/Job"));
    return json;
}

static json_t *paths(void)
{
    json_t *all = json_object();

    for (size_t i = 0; route_at(i); i++) {
        const struct route *route = route_at(i);
        const char *method = strcmp(route->method, "GET") == 0      ? "get"
                             : strcmp(route->method, "DELETE") == 0 ? "delete"
                                                                    : "post";
        json_t *path = json_object_get(all, route->pattern);
        if (!path) {
            path = json_object();
            json_object_set_new(all, route->pattern, path);
        }
        json_object_set_new(path, method, operation(route));
    }
    return all;
}

static json_t *problem_schema(void)
{
    return json_pack("{s:s, s:{s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s, s:{s:s, s:{s:{s:s}, "
                     "s:{s:s}, s:{s:s}}}}}}",
                     "type", "object", "properties", "type", "type", "string", "title", "type",
                     "string", "status", "type", "integer", "detail", "type", "string", "errors",
                     "type", "array", "items", "type", "object", "properties", "pointer", "type",
                     "string", "message", "type", "string", "suggestion", "type", "string");
}

json_t *openapi_document(void)
{
    json_t *schemas =
        json_pack("{s:o, s:o}", "Problem", problem_schema(), "Job", job_spec_schema());
    json_t *problem =
        json_pack("{s:s, s:{s:{s:{s:s}}}}", "description", "What is wrong (RFC 9457)", "content",
                  "application/problem+json", "schema", "$ref", "#/components/schemas/Problem");
    return json_pack("{s:s, s:{s:s, s:s, s:s}, s:o, s:{s:o, s:{s:o}}}", "openapi", "3.1.0", "info",
                     "title", "traind", "version", PACKAGE_VERSION, "description",
                     "Trains ResNets on clusters of CPUs.", "paths", paths(), "components",
                     "schemas", schemas, "responses", "Problem", problem);
}
