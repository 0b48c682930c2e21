/* Tokens over HTTP: for administrators only. */
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/text.h"
#include "daemon/http/access/auth.h"
#include "daemon/http/access/token.h"
#include "daemon/http/routes.h"

#define SECONDS_LIMIT (100.0 * 366 * 86400)

struct wish {
    const char *name;
    int role;
    double seconds; /* 0: does not expire */
};

static int handle_tokens_bad_key(const char *key, struct error *e)
{
    return error_set(e, ERR_INVALID,
                     "%s: unknown key; a token is asked for with name, role and expires_seconds",
                     key);
}

static int handle_tokens_bad_role(struct error *e)
{
    char names[128];

    role_list_of_tokens(names, sizeof names);
    return error_set(e, ERR_INVALID, "role: must be %s", names);
}

static int handle_tokens_read_wish(const json_t *body, struct wish *w, struct error *e)
{
    const json_t *seconds = json_object_get(body, "expires_seconds");
    const char *key, *role = json_string_value(json_object_get(body, "role"));
    const json_t *value;

    json_object_foreach ((json_t *)body, key, value)
        if (strcmp(key, "name") != 0 && strcmp(key, "role") != 0 &&
            strcmp(key, "expires_seconds") != 0)
            return handle_tokens_bad_key(key, e);
    w->name = json_string_value(json_object_get(body, "name"));
    w->role = role_of_token(role);
    w->seconds = json_number_value(seconds);
    if (!w->name || !*w->name || text_length(w->name) > TOKEN_NAME_MAX ||
        !text_is_printable(w->name) /* it stands in the log and on terminals */)
        return error_set(
            e, ERR_INVALID,
            "name: must be a text of 1 to %d characters without control characters: who "
            "will use it",
            TOKEN_NAME_MAX);
    if (w->role < 0)
        return handle_tokens_bad_role(e);
    if (seconds && !json_is_null(seconds) &&
        (!json_is_number(seconds) || !(w->seconds > 0) || w->seconds > SECONDS_LIMIT))
        return error_set(e, ERR_INVALID,
                         "expires_seconds: must be a number above 0, up to 100 years, or null");
    return 0;
}

static int tokens_handle_create(const struct request *q, const struct wish *w, struct reply *r,
                                struct error *e)
{
    char text[TOKEN_TEXT_BYTES];
    double now = clock_now();
    json_t *shown;

    if (tokens_create(q->app->tokens, w->name, (enum role)w->role,
                      w->seconds > 0 ? now + w->seconds : 0, now, text, &shown, e))
        return -(int)e->code;
    log_info("token %lld (%s, role %s): made by %s", json_get_integer(shown, "id", 0), w->name,
             role_at((enum role)w->role)->name, job_requester_name(request_by(q)));
    audit_request(q, STORE_AUDIT_TOKEN_CREATE, json_get_integer(shown, "id", 0), w->name);
    json_object_set_new(shown, "token", json_string(text));
    explicit_bzero(text, sizeof text);
    return reply_json(r, 201, shown, e);
}

int handle_token_create(const struct request *q, struct reply *r, struct error *e)
{
    struct wish wish = {0};
    json_t *body = json_document_parse(q->body ? q->body : "", q->body_bytes, e);

    if (!body)
        return -(int)e->code;
    int status = handle_tokens_read_wish(body, &wish, e);
    if (status == 0)
        status = tokens_handle_create(q, &wish, r, e);
    json_decref(body);
    return status;
}

int handle_token_list(const struct request *q, struct reply *r, struct error *e)
{
    return reply_json(r, 200, json_pack("{s:o}", "tokens", tokens_list(q->app->tokens)), e);
}

int handle_token_revoke(const struct request *q, struct reply *r, struct error *e)
{
    int status = tokens_revoke(q->app->tokens, q->id, e);
    if (!status) {
        log_info("token %lld: revoked by %s", (long long)q->id, job_requester_name(request_by(q)));
        audit_request(q, STORE_AUDIT_TOKEN_REVOKE, q->id, NULL);
    }
    return status ? status : reply_json(r, 200, json_pack("{s:I}", "revoked", q->id), e);
}
