#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/context.h"
#include "client/token.h"
#include "client/views/table.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "common/system/file.h"

/* Characters of a context's name, which is also a file name. */
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:[]@"

static void login_own_file(const char *name, char path[PATH_MAX])
{
    char beside[NAME_MAX + 8];

    snprintf(beside, sizeof beside, "tokens/%s", name);
    config_path(path, beside);
}

static int login_ask_who(const char *token, json_t **who, struct error *e)
{
    token_use(token);
    int status = api_get("/v1/whoami", who, e);
    return status ? status : strcmp(json_get_text(*who, "role", "anyone"), "anyone") != 0;
}

/* Gets the token (*token is "" if none is needed) and the identity it gives the caller. */
static int login_find_token(const char *file, char token[TOKEN_BYTES], json_t **who,
                            struct error *e)
{
    char words[SERVER_BYTES + 32];
    int known = file ? 0 : login_ask_who("", who, e);

    if (known == 0 && server_is_socket(client.server))
        return error_set(e, ERR_NOT_ALLOWED,
                         "this user has no rights on this socket: its administrator can add you "
                         "to socket_group (traind.conf), or give you a token for the TCP address");
    snprintf(words, sizeof words, "Token for %s: ", client.server);
    if (known == 0)
        known = file ? token_load(file, token, e) : token_ask(words, token, e);
    if (known > 0 && *token) {
        json_decref(*who);
        known = login_ask_who(token, who, e);
    }
    return known ? known : error_set(e, ERR_NO_TOKEN, "%s does not know this token", client.server);
}

static int login_keep_context(json_t *all, const char *name, const char *file, const char *token,
                              struct error *e)
{
    char path[PATH_MAX];
    int status = 0;

    login_own_file(name, path);
    if (*token && !file)
        status = contexts_write(all, e);
    if (*token && !file && !status)
        status = file_write_secret(path, token, strlen(token), e);
    else if (!status)
        unlink(path); /* from an earlier login */
    if (file && !realpath(file, path))
        status = error_set(e, ERR_NOT_FOUND, "%s no longer exists", file);
    json_object_set_new(json_object_get(all, "contexts"), name,
                        json_pack("{s:s, s:o}", "server", client.server, "token_file",
                                  json_text_or_null(*token ? path : NULL)));
    json_object_set_new(all, "current", json_string(name));
    return status ? status : contexts_write(all, e);
}

static int login_log_in(const struct cmd_args *args, const char *name, json_t **who,
                        struct error *e)
{
    const char *file = cmd_value(args, "token-file");
    char token[TOKEN_BYTES] = "";
    json_t *all = contexts_read(e);
    int status = all ? server_check(e) : -(int)e->code;

    if (!status && (strspn(name, "._-:[]@") > 0 || name[strspn(name, NAME_CHARACTERS)]))
        status = error_set(e, ERR_USAGE,
                           "\"%s\" cannot be a context's name: begin with a letter or a digit, "
                           "without / and blanks (--name NAME)",
                           name);
    if (!status && (status = login_find_token(file, token, who, e)) > 0)
        status = login_keep_context(all, name, file, token, e);
    explicit_bzero(token, sizeof token);
    json_decref(all);
    return status;
}

static int cmd_login(const struct cmd_args *args)
{
    const char *name = cmd_value(args, "name");
    json_t *who = NULL;
    struct error e;

    umask(077);
    client.server = args->operands[0];
    client.context = NULL;
    server_choose();
    if (!name)
        name = strstr(client.server, "//") ? strstr(client.server, "//") + 2 : "local";
    if (login_log_in(args, name, &who, &e)) {
        json_decref(who);
        return cmd_fail(&e);
    }
    json_object_set_new(who, "context", json_string(name));
    if (getenv("TRAINCTL_SERVER"))
        fputs("trainctl: TRAINCTL_SERVER is set and overrides the contexts\n", stderr);
    return cmd_tell(who, "%s: you are %s, with the role %s; context \"%s\" is selected\n",
                    client.server, json_get_text(who, "who", "not known by name"),
                    json_get_text(who, "role", ""), name);
}

static void login_print_contexts(const json_t *all)
{
    struct libscols_table *table = table_create(1, ",name,server|,token file|");
    json_t *context;
    const char *name;

    json_object_foreach (json_object_get(all, "contexts"), name, context) {
        bool current = strcmp(name, json_get_text(all, "current", "")) == 0;
        struct libscols_line *line = table_line(table);
        table_set(line, 0, current ? "*" : "");
        table_set(line, 1, name);
        table_set(line, 2, json_get_text(context, "server", ""));
        table_set(line, 3, json_get_text(context, "token_file", "-"));
    }
    table_finish(table);
    if (!json_object_size(json_object_get(all, "contexts")))
        printf("No contexts yet. Create one with: trainctl login ADDRESS\n");
}

static int cmd_context(const struct cmd_args *args)
{
    const char *removed = cmd_value(args, "remove");
    const char *name = removed ? removed : args->operand_count ? args->operands[0] : NULL;
    char path[PATH_MAX];
    struct error e;

    if (removed && args->operand_count)
        return cmd_usage(args->cmd, "--remove takes the name; give no other");
    json_t *all = contexts_read(&e);
    if (!all || (name && !context_find(all, name, &e))) {
        json_decref(all);
        return cmd_fail(&e);
    }
    if (!name)
        return cmd_show_answer(all, login_print_contexts);
    if (removed) {
        login_own_file(removed, path);
        unlink(path);
        json_object_del(json_object_get(all, "contexts"), removed);
        if (strcmp(removed, json_get_text(all, "current", "")) == 0)
            json_object_del(all, "current");
    } else {
        json_object_set_new(all, "current", json_string(name));
    }
    umask(077);
    return contexts_write(all, &e)
               ? cmd_fail(&e)
               : cmd_tell(all, "context \"%s\" %s\n", name, removed ? "removed" : "selected");
}

/* clang-format off */
const struct cmd cmd_login_entry = {
    .name = "login", .synopsis = "[--name NAME] [--token-file FILE] ADDRESS",
    .help = "store a daemon's address and token as a context, and select it", .example = "trainctl login https://train.example.org:7077",
    .run = cmd_login, .completion = "none", .operands = {1, 1},
    .options = {
        OPTION("name", 0, "NAME", "name of the context (default: host and port; local for a socket)", "none"),
        OPTION("token-file", 0, "FILE", "use the token in this file, now and later, instead of asking for one", "file"),
    },
};
const struct cmd cmd_context_entry = {
    .name = "context", .synopsis = "[NAME|--remove NAME]",
    .help = "list the contexts created by login; with NAME, select that one", .example = "trainctl context train.example.org:7077",
    .run = cmd_context, .completion = "context", .operands = {0, 1},
    .options = {
        OPTION("remove", 0, "NAME", "log out: remove this context and its stored token", "context"),
    },
};
/* clang-format on */
