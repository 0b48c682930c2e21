#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/views/format.h"
#include "client/views/table.h"
#include "common/clock.h"
#include "common/json.h"

static void token_print_new(const json_t *token)
{
    puts(json_get_text(token, "token", ""));
    fprintf(stderr,
            "This is token %.0f (%s, role %s). It is not shown again: store it with trainctl login "
            "ADDRESS, or put it into TRAINCTL_TOKEN.\n",
            json_get_number(token, "id", 0), json_get_text(token, "name", ""),
            json_get_text(token, "role", ""));
}

static int token_create(const struct cmd_args *args, struct error *e)
{
    const char *expires = cmd_value(args, "expires"), *role = cmd_value(args, "role");
    double seconds = 0;
    json_t *answer;

    if (args->operand_count != 2)
        return error_set(e, ERR_USAGE, "missing NAME. Usage: trainctl token create NAME");
    if (cmd_duration(args, "expires", &seconds, e) ||
        (role && cmd_word(role, "role", cmd_role_at, e)))
        return -(int)e->code;
    json_t *body =
        json_pack("{s:s, s:s, s:o}", "name", args->operands[1], "role", role ? role : "submit",
                  "expires_seconds", expires ? json_number(seconds) : json_null());
    if (!body)
        return error_set(e, ERR_USAGE, "the name must be UTF-8");
    int status = api_send_json("POST", "/v1/tokens", body, &answer, e);
    json_decref(body);
    return status ? status : cmd_show_answer(answer, token_print_new);
}

static void token_add_row(struct libscols_table *table, const json_t *token)
{
    struct libscols_line *line = table_line(table);
    char words[FORMAT_BYTES];
    double now = clock_now(), expires = json_get_number(token, "expires_at", 0),
           used = json_get_number(token, "used_at", 0);

    table_setf(line, 0, "%.0f", json_get_number(token, "id", 0));
    table_set(line, 1, json_get_text(token, "name", ""));
    table_set(line, 2, json_get_text(token, "role", ""));
    table_set(line, 3,
              format_ago(words, sizeof words, now - json_get_number(token, "created_at", 0)));
    if (expires > 0 && expires <= now)
        table_set(line, 4, "expired");
    else
        table_set(line, 4,
                  expires > 0 ? format_duration(words, sizeof words, expires - now) : "never");
    table_set(line, 5, used > 0 ? format_ago(words, sizeof words, now - used) : "-");
}

static void token_print_list(const json_t *answer)
{
    const json_t *tokens = json_object_get(answer, "tokens"), *token;
    size_t i;

    if (json_array_size(tokens) == 0) {
        puts("No tokens yet. Create one with: trainctl token create NAME");
        return;
    }
    struct libscols_table *table = table_create(1, "ID>,NAME~,ROLE,CREATED,EXPIRES IN,USED");
    json_array_foreach (tokens, i, token)
        token_add_row(table, token);
    table_finish(table);
}

static int token_revoke(const struct cmd_args *args, struct error *e)
{
    json_t *answer;
    long id;

    if (args->operand_count != 2)
        return error_set(e, ERR_USAGE,
                         "missing ID. Usage: trainctl token revoke ID (see trainctl token list)");
    if (cmd_id(args->operands[1], "token", "token list", &id, e) < 0)
        return -(int)e->code;
    if (api_call("DELETE", &answer, e, "/v1/tokens/%ld", id))
        return -(int)e->code;
    return cmd_tell(answer, "Token %ld revoked.\n", id);
}

static int cmd_token(const struct cmd_args *args)
{
    struct error e;
    int status;

    if (strcmp(args->operands[0], "create") == 0)
        status = token_create(args, &e);
    else if (strcmp(args->operands[0], "list") == 0)
        status =
            args->operand_count > 1
                ? error_set(&e, ERR_USAGE, "unexpected argument \"%s\". Usage: trainctl token list",
                            args->operands[1])
                : cmd_show_path("/v1/tokens", token_print_list);
    else if (strcmp(args->operands[0], "revoke") == 0)
        status = token_revoke(args, &e);
    else
        return cmd_usage(args->cmd, "unknown command \"%s\": create, list or revoke",
                         args->operands[0]);
    return status < 0 ? cmd_fail(&e) : status;
}

/* clang-format off */
const struct cmd cmd_token_entry = {
    .name = "token", .synopsis = "create [--role R] [--expires T] NAME | list | revoke ID",
    .help = "create, list and revoke access tokens", .example = "trainctl token create --role submit --expires 90d eve",
    .run = cmd_token, .completion = "create|list|revoke:token", .operands = {1, 2},
    .options = {
        OPTION("role", 0, "R", "role: read, submit, operator, node or admin (submit)", "role"),
        OPTION("expires", 0, "T", "lifetime, e.g. 90m, 12h or 30d (unlimited)", NULL),
    },
};
/* clang-format on */
