/* Administration: the audit log, backups and tokens. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "common/system/file.h"
#include "common/text.h"
#include "daemon/http/access/auth.h"
#include "daemon/http/access/token.h"
#include "daemon/http/json_text.h"
#include "daemon/http/routes.h"
#include "daemon/job/job.h"
#include "daemon/store/audit.h"
#include "daemon/store/store_open.h"

static void admin_audit_line(struct json_text *t, const struct store_audit_line *line)
{
    json_text_open(t, NULL, '{');
    json_text_integer(t, "id", line->id);
    json_text_real(t, "t", line->t);
    json_text_string(t, "by", line->by);
    json_text_string(t, "action", line->action);
    json_text_positive(t, "target", line->target);
    json_text_string(t, "detail", line->detail);
    json_text_close(t, '}');
}

int handle_audit(const struct request *q, struct reply *r, struct error *e)
{
    struct store_audit_filter filter = {.by = request_query(q, "by"),
                                        .action = request_query(q, "action")};
    struct store_audit_lines lines;
    int64_t limit;
    size_t action;

    if (request_query_word(q, "action", store_audit_action, &action, e) ||
        request_query_int(q, "after", 1, INT64_MAX, 0, &filter.after, e) ||
        request_query_int(q, "limit", 1, 1000, 50, &limit, e) ||
        request_query_int(q, "target", 1, INT64_MAX, 0, &filter.target, e))
        return -(int)e->code;
    filter.limit = limit + 1; /* one more, to find out whether there is another page */
    if (store_audit_list(q->app->store, &filter, &lines, e))
        return -(int)e->code;
    bool more = lines.count > (size_t)limit;
    struct json_text text = JSON_TEXT;
    json_text_open(&text, NULL, '{');
    json_text_open(&text, "lines", '[');
    for (size_t i = 0; i < lines.count - more; i++)
        admin_audit_line(&text, &lines.items[i]);
    json_text_close(&text, ']');
    json_text_positive(&text, "next", more ? lines.items[limit - 1].id : 0);
    json_text_close(&text, '}');
    store_audit_lines_clear(&lines);
    return reply_json_text(r, 200, &text, e);
}

/* Sends a complete copy from an unlinked file, so that a slow client does not block the database
 * and nothing is left over. */
int handle_backup(const struct request *q, struct reply *r, struct error *e)
{
    char path[PATH_MAX];
    struct stat st;

    if (file_path(path, e, "%s/backup-XXXXXX", q->config->state))
        return -(int)e->code;
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(e, errno, "cannot create a file for the backup in %s",
                               q->config->state);
    int status = store_backup(q->app->store, path, e);
    unlink(path);
    if (status == 0 && fstat(fd, &st))
        status = error_set_errno(e, errno, "cannot determine the size of the backup");
    if (status) {
        close(fd);
        return status;
    }
    log_info("the database: backup taken by %s", job_requester_name(request_by(q)));
    audit_request(q, STORE_AUDIT_BACKUP, 0, NULL);
    reply_file(r, 200, "application/vnd.sqlite3", fd, 0, (uint64_t)st.st_size);
    reply_header(r, "Content-Disposition", "attachment; filename=\"traind.db\"");
    return 0;
}

/* The file is replaced as a whole at each change, so a copy is consistent. */
int handle_backup_tokens(const struct request *q, struct reply *r, struct error *e)
{
    char path[PATH_MAX];
    struct stat st;

    if (file_path(path, e, "%s/tokens.json", q->config->state))
        return -(int)e->code;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return error_set(e, ERR_NOT_FOUND, "there is no token file: no token has been created yet");
    if (fd < 0)
        return error_set_errno(e, errno, "cannot open %s", path);
    if (fstat(fd, &st) || st.st_size == 0) {
        close(fd);
        return error_set(e, ERR_IO, "cannot read %s", path);
    }
    log_info("the tokens: backup taken by %s", job_requester_name(request_by(q)));
    audit_request(q, STORE_AUDIT_BACKUP, 0, "tokens");
    reply_file(r, 200, "application/json", fd, 0, (uint64_t)st.st_size);
    return 0;
}

#define SECONDS_LIMIT (100.0 * 366 * 86400)

struct wish {
    const char *name;
    int role;
    double seconds; /* 0: never expires */
};

static int admin_read_token_wish(const json_t *body, struct wish *w, struct error *e)
{
    const json_t *seconds = json_object_get(body, "expires_seconds");
    const char *key, *role = json_string_value(json_object_get(body, "role"));
    const json_t *value;

    json_object_foreach ((json_t *)body, key, value)
        if (strcmp(key, "name") != 0 && strcmp(key, "role") != 0 &&
            strcmp(key, "expires_seconds") != 0)
            return error_set(e, ERR_INVALID,
                             "%s: unknown key; the keys are name, role and expires_seconds", key);
    w->name = json_string_value(json_object_get(body, "name"));
    w->role = role_of_token(role);
    w->seconds = json_number_value(seconds);
    if (!w->name || !*w->name || text_length(w->name) > TOKEN_NAME_MAX ||
        !text_is_printable(w->name) /* it appears in the log and on terminals */)
        return error_set(
            e, ERR_INVALID,
            "name: must be a string of 1 to %d characters without control characters: who "
            "will use it",
            TOKEN_NAME_MAX);
    if (w->role < 0) {
        char names[128];
        role_list_of_tokens(names, sizeof names);
        return error_set(e, ERR_INVALID, "role: must be %s", names);
    }
    if (seconds && !json_is_null(seconds) &&
        (!json_is_number(seconds) || !(w->seconds > 0) || w->seconds > SECONDS_LIMIT))
        return error_set(e, ERR_INVALID,
                         "expires_seconds: must be a number above 0, up to 100 years, or null");
    return 0;
}

static int admin_create_token(const struct request *q, const struct wish *w, struct reply *r,
                              struct error *e)
{
    char text[TOKEN_TEXT_BYTES];
    double now = clock_now();
    json_t *shown;

    if (tokens_create(q->app->tokens, w->name, (enum role)w->role,
                      w->seconds > 0 ? now + w->seconds : 0, now, text, &shown, e))
        return -(int)e->code;
    log_info("token %lld (%s, role %s): created by %s", json_get_integer(shown, "id", 0), w->name,
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
    int status = admin_read_token_wish(body, &wish, e);
    if (status == 0)
        status = admin_create_token(q, &wish, r, e);
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
