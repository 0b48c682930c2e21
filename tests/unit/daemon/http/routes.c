/* Routes and who may call them: matching, ids, methods, hosts and origins. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/file.h"
#include "daemon/http/access/auth.h"
#include "daemon/http/openapi.h"
#include "daemon/http/routes.h"
#include "daemon/store/audit.h"

static struct error e;
static char allow[64];
static int64_t id;

static const char *found(const char *method, const char *path)
{
    const struct route *route = route_find(method, path, &id, allow, sizeof allow, &e);
    return route ? route->pattern : "";
}

static enum error_code refused(const char *method, const char *path)
{
    e.code = ERR_NONE;
    cr_assert_str_eq(found(method, path), "", "%s %s", method, path);
    return e.code;
}

Test(routes, a_path_finds_its_route)
{
    cr_assert_str_eq(found("GET", "/v1"), "/v1");
    cr_assert_str_eq(found("GET", "/v1/jobs"), "/v1/jobs");
    cr_assert_str_eq(found("GET", "/v1/jobs/7"), "/v1/jobs/{id}");
    cr_assert_eq(id, 7);
    cr_assert_str_eq(found("GET", "/v1/"), "/v1", "a slash behind it changes nothing");
    cr_assert_str_eq(found("POST", "/v1/jobs/"), "/v1/jobs");
    cr_assert_str_eq(found("GET", "/v1/jobs/8/"), "/v1/jobs/{id}");
    cr_assert_eq(id, 8);
    cr_assert_eq(refused("GET", "/v1/jobs//"), ERR_NOT_FOUND);
    cr_assert_str_eq(found("GET", "//"), "/{file}");
    cr_assert_str_eq(found("GET", "/v1/jobs/12/checkpoints/520"),
                     "/v1/jobs/{id}/checkpoints/{step}");
    cr_assert_eq(id, 12);
    cr_assert_str_eq(found("POST", "/v1/nodes/n 1.x/report"), "/v1/nodes/{name}/report");
    cr_assert_str_eq(found("GET", "/"), "/");
    cr_assert_str_eq(found("GET", "/app.js"), "/{file}");
}

Test(routes, an_unknown_path_is_404)
{
    cr_assert_eq(refused("GET", "/v1/job"), ERR_NOT_FOUND);
    cr_assert_eq(refused("GET", "/v1/jobs/7/evals//"), ERR_NOT_FOUND);
    cr_assert_eq(refused("GET", "/v1/jobs//evals"), ERR_NOT_FOUND);
    cr_assert_eq(refused("GET", "/v1/nothing"), ERR_NOT_FOUND);
    cr_assert_eq(refused("POST", "/app.js"), ERR_NOT_FOUND);
}

Test(routes, ids_are_whole_numbers_from_1)
{
    cr_assert_eq(refused("GET", "/v1/jobs/abc"), ERR_USAGE);
    cr_assert_eq(refused("GET", "/v1/jobs/-1"), ERR_USAGE);
    cr_assert_eq(refused("GET", "/v1/jobs/1e3/log"), ERR_USAGE);
    cr_assert_eq(refused("GET", "/v1/jobs/0"), ERR_NOT_FOUND);
    cr_assert_eq(refused("GET", "/v1/jobs/1000000000000000000000000000000"), ERR_NOT_FOUND);
    cr_assert_eq(refused("PUT", "/v1/jobs/abc"), ERR_METHOD);
}

Test(routes, a_wrong_method_names_the_right_ones)
{
    cr_assert_eq(refused("DELETE", "/v1/jobs"), ERR_METHOD);
    cr_assert_str_eq(allow, "POST, GET, HEAD");
    cr_assert_eq(refused("GET", "/v1/jobs/1/cancel"), ERR_METHOD);
    cr_assert_str_eq(allow, "POST");
}

Test(routes, every_route_is_complete_and_in_openapi)
{
    json_t *document = openapi_document();
    const json_t *paths = json_object_get(document, "paths");

    cr_assert_not_null(paths);
    for (size_t i = 0; route_at(i); i++) {
        const struct route *r = route_at(i);
        const json_t *operation = json_object_get(json_object_get(paths, r->pattern),
                                                  strcmp(r->method, "GET") == 0      ? "get"
                                                  : strcmp(r->method, "DELETE") == 0 ? "delete"
                                                  : strcmp(r->method, "PATCH") == 0  ? "patch"
                                                                                     : "post");
        cr_assert(*r->summary && r->parameters && r->pattern[0] == '/');
        cr_assert_str_eq(json_string_value(json_object_get(operation, "summary")), r->summary);
    }
    json_decref(document);
}

Test(routes, every_action_of_the_audit_log_is_documented)
{
    const char *top = getenv("top_srcdir");
    char path[4096], quoted[64], *page;
    size_t bytes;
    json_t *document = openapi_document();
    const json_t *components = json_object_get(document, "components");
    const json_t *schemas = json_object_get(components, "schemas");
    char *actions = json_dumps(json_object_get(schemas, "AuditAction"), 0);

    snprintf(path, sizeof path, "%s/man/trainctl.1", top ? top : ".");
    cr_assert_eq(file_read(path, 1 << 20, &page, &bytes, &e), 0, "%s", e.text);
    cr_assert_not_null(actions);
    for (size_t i = 0; store_audit_action(i); i++) {
        snprintf(quoted, sizeof quoted, "\"%s\"", store_audit_action(i));
        cr_expect(strstr(actions, quoted), "schema/api/tokens.json lacks %s", quoted);
        snprintf(quoted, sizeof quoted, " %s ", store_audit_action(i));
        cr_expect(strstr(page, quoted), "man/trainctl.1 lacks%s", quoted);
    }
    free(page);
    free(actions);
    json_decref(document);
}

static int guard(const char *host, const char *origin, const char *site, bool changes)
{
    return csrf_check(false, host, origin, site, changes, &e);
}

Test(csrf, only_names_of_the_loopback_are_hosts)
{
    static const char *const good[] = {"localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:7077",
                                       "127.9.9.9", "[::1]",        "[::1]:7077"};
    static const char *const bad[] = {"evil.example",
                                      "localhost.evil.example",
                                      "128.0.0.1",
                                      "",
                                      "127.0.0.1.evil.example",
                                      "[::2]",
                                      "0.0.0.0",
                                      "::1",
                                      "1.127.0.0"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        cr_assert_eq(guard(good[i], NULL, NULL, false), 0, "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_assert_eq(guard(bad[i], NULL, NULL, false), -ERR_NOT_ALLOWED, "%s", bad[i]);
    cr_assert_eq(guard(NULL, NULL, NULL, true), 0, "HTTP/1.0 has no Host, and browsers send one");
}

Test(csrf, changes_are_accepted_from_own_pages_or_without_a_page)
{
    cr_assert_eq(guard("localhost:7077", NULL, NULL, true), 0);
    cr_assert_eq(guard("localhost:7077", "http://localhost:7077", "same-origin", true), 0);
    cr_assert_eq(guard("localhost:7077", "http://evil.example", NULL, true), -ERR_NOT_ALLOWED);
    cr_assert_eq(guard("localhost:7077", "http://localhost:8000", NULL, true), -ERR_NOT_ALLOWED);
    cr_assert_eq(guard("localhost:7077", "null", NULL, true), -ERR_NOT_ALLOWED);
    cr_assert_eq(guard("localhost:7077", NULL, "cross-site", true), -ERR_NOT_ALLOWED);
    cr_assert_eq(guard("localhost:7077", "http://evil.example", "cross-site", false), 0,
                 "without CORS the other page cannot read the answer");
}
