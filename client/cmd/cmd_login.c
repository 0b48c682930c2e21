/* trainctl login, logout and context: the contexts of client/context.h. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/context.h"
#include "client/token.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/json.h"
#include "common/needed.h"
#include "common/system/file.h"

#define NAME_BYTES 128

/* ---------------------------------------------------------------- login */

/* "train:7077" of https://train:7077, "traind" of unix:/var/lib/traind/traind.sock. */
static void default_name(const char *server, char name[NAME_BYTES])
{
    const char *from = server_is_socket(server) ? server + 5 : strstr(server, "//") + 2;
    const char *end = from + strlen(from), *slash = strrchr(from, '/');

    if (server_is_socket(server) && slash > from)
        for (from = end = slash; from > server + 5 && from[-1] != '/';)
            from--;
    snprintf(name, NAME_BYTES, "%.*s", (int)(end - from), from);
    for (char *c = name; (c = strchr(c, '/'));)
        *c = '-';
}

/* It is a file's name too. */
static int check_name(const char *name, struct error *e)
{
    size_t length = strlen(name);
    bool good =
        length > 0 && length < NAME_BYTES && isalnum((unsigned char)(*name == '_' ? 'x' : *name));

    for (const char *c = name; good && *c; c++)
        good = isalnum((unsigned char)*c) || strchr("._-:[]@", *c);
    return good ? 0
                : error_set(e, ERR_USAGE,
                            "\"%s\" cannot be a context's name: letters, digits and . _ - : @ can "
                            "be in it, the first a letter or digit (--name NAME)",
                            name);
}

static int ask_who(const char *token, json_t **who, struct error *e)
{
    token_use(token);
    return api_get("/v1/whoami", who, e);
}

static bool is_anyone(const json_t *who)
{
    return strcmp(json_get_text(who, "role", "anyone"), "anyone") == 0;
}

/* The token that is needed, "" for none, and who one is with it. */
static int find_token(const char *file, char token[TOKEN_BYTES], json_t **who, struct error *e)
{
    char words[SERVER_BYTES + 32];
    int status = file ? token_load(file, token, e) : ask_who("", who, e);

    if (status < 0 || (!file && !is_anyone(*who)))
        return status;
    json_decref(*who);
    *who = NULL;
    if (server_is_socket(client.server))
        return error_set(e, ERR_NOT_ALLOWED,
                         "by this socket you may do nothing: its administrator can put you into "
                         "socket_group (traind.conf) or give you a token for the daemon's TCP "
                         "address");
    snprintf(words, sizeof words, "Token for %s: ", client.server);
    status = file ? 0 : token_ask(words, token, e);
    return status < 0 ? status : ask_who(token, who, e);
}

/* The path of the file that login itself keeps the token of a context in. */
static bool own_file(const char *name, char path[PATH_MAX])
{
    char beside[NAME_BYTES + 8];

    snprintf(beside, sizeof beside, "tokens/%s", name);
    return config_path(path, beside);
}

/* Where the token is kept: "" for none. */
static int keep_token(const char *name, const char *given, const char *token, char path[PATH_MAX],
                      struct error *e)
{
    int status = 0;

    if (!own_file(name, path))
        return error_set(e, ERR_NOT_FOUND, "neither XDG_CONFIG_HOME nor HOME is set");
    if (given || !*token) {
        unlink(path); /* of an earlier login */
        if (given && !realpath(given, path))
            return error_set(e, ERR_NOT_FOUND, "%s is not there any more", given);
        *path = given ? *path : '\0';
        return 0;
    }
    char *end = strrchr(path, '/');
    *end = '\0';
    status = file_make_dirs(path, e);
    *end = '/';
    return status ? status : file_write_secret(path, token, strlen(token), e);
}

static int keep_context(json_t *all, const char *name, const char *given, const char *token,
                        struct error *e)
{
    char path[PATH_MAX];
    int status = keep_token(name, given, token, path, e);

    if (status)
        return status;
    json_object_set_new(
        json_object_get(all, "contexts"), name,
        json_pack("{s:s, s:o}", "server", client.server, "token_file", json_text_or_null(path)));
    json_object_set_new(all, "current", json_string(name));
    return contexts_write(all, e);
}

static int log_in(const struct cmd_args *args, char name[NAME_BYTES], json_t **who, struct error *e)
{
    const char *file = cmd_value(args, "token-file"), *given = cmd_value(args, "name");
    char token[TOKEN_BYTES] = "";
    json_t *all = contexts_read(e);
    int status = all ? 0 : -(int)e->code;

    if (given)
        snprintf(name, NAME_BYTES, "%s", given);
    else
        default_name(client.server, name);
    if (!status)
        status = check_name(name, e);
    if (!status)
        status = find_token(file, token, who, e);
    if (!status && is_anyone(*who))
        status = error_set(e, ERR_NO_TOKEN, "%s does not know this token", client.server);
    if (!status)
        status = keep_context(all, name, file, token, e);
    explicit_bzero(token, sizeof token);
    json_decref(all);
    return status;
}

static int cmd_login(const struct cmd_args *args)
{
    char name[NAME_BYTES];
    json_t *who = NULL;
    struct error e;

    umask(077);
    client.server = args->operands[0];
    client.context = NULL;
    server_choose();
    if (server_check(&e) || log_in(args, name, &who, &e)) {
        json_decref(who);
        return cmd_fail(&e);
    }
    json_object_set_new(who, "context", json_string(name));
    json_object_set_new(who, "server", json_string(client.server));
    if (getenv("TRAINCTL_SERVER"))
        fputs("trainctl: TRAINCTL_SERVER is set, and is used instead of contexts\n", stderr);
    return cmd_tell(who, "%s: you are %s, with the role %s; context \"%s\" is selected\n",
                    client.server, json_get_text(who, "who", "not known by name"),
                    json_get_text(who, "role", ""), name);
}

/* ---------------------------------------------------------------- contexts */

static const char *current_of(const json_t *all)
{
    return json_get_text(all, "current", "");
}

static void print_contexts(const json_t *all)
{
    json_t *contexts = json_object_get(all, "contexts"), *context;
    const char *name;

    if (!json_object_size(contexts)) {
        printf("no contexts yet: trainctl login ADDRESS makes one (without, commands go to %s)\n",
               client.server);
        return;
    }
    struct libscols_table *table = table_create(1);
    table_column(table, "", 0);
    table_column(table, "name", 0);
    table_column(table, "server", TABLE_WRAP);
    table_column(table, "token file", TABLE_WRAP);
    json_object_foreach (contexts, name, context) {
        struct libscols_line *line = table_line(table);
        table_set(line, 0, strcmp(name, current_of(all)) == 0 ? "*" : "");
        table_set(line, 1, name);
        table_set(line, 2, json_get_text(context, "server", ""));
        table_set(line, 3, json_get_text(context, "token_file", "-"));
    }
    table_finish(table);
}

static void remove_context(json_t *all, const char *name)
{
    char path[PATH_MAX];

    if (own_file(name, path))
        unlink(path);
    if (strcmp(name, current_of(all)) == 0)
        json_object_del(all, "current");
    json_object_del(json_object_get(all, "contexts"), name);
}

/* Selects or removes the one of this name. */
static int change_context(const char *name, bool removes)
{
    struct error e;
    json_t *all = contexts_read(&e);
    char *kept = needed(strdup(name ? name : current_of(all))); /* it may be of the file */
    int code = 0;

    if (all && !*kept)
        error_set(&e, ERR_NOT_FOUND, "no context is selected: name the one to log out of");
    if (!all || !*kept || !context_find(all, kept, &e)) {
        code = cmd_fail(&e);
    } else {
        if (removes)
            remove_context(all, kept);
        else
            json_object_set_new(all, "current", json_string(kept));
        umask(077);
        code = contexts_write(all, &e) ? cmd_fail(&e)
                                       : cmd_tell(json_incref(all), "context \"%s\" %s%s\n", kept,
                                                  removes ? "removed" : "selected",
                                                  *current_of(all) ? "" : "; none is selected now");
    }
    free(kept);
    json_decref(all);
    return code;
}

static int cmd_context(const struct cmd_args *args)
{
    const char *removed = cmd_value(args, "remove");
    struct error e;

    if (removed && args->operand_count)
        return cmd_usage(args->cmd, "--remove takes the only name");
    if (removed || args->operand_count)
        return change_context(removed ? removed : args->operands[0], removed);
    json_t *all = contexts_read(&e);
    return all ? cmd_show_answer(all, print_contexts) : cmd_fail(&e);
}

static int cmd_logout(const struct cmd_args *args)
{
    return change_context(args->operand_count ? args->operands[0] : NULL, true);
}

/* clang-format off */
const struct cmd cmd_login_entry = {
    .name = "login",
    .synopsis = "[--name NAME] [--token-file FILE] ADDRESS",
    .help = "keep a daemon's address and a token for it as a context, and select that",
    .run = cmd_login,
    .min_operands = 1,
    .max_operands = 1,
    .completion = "none",
    .options = {
        {"name", 0, "NAME", "the name of the context (default: the host and port)", "none"},
        {"token-file", 0, "FILE", "use the token in this file, now and later, instead of asking for one", "file"},
    },
};

const struct cmd cmd_logout_entry = {
    .name = "logout",
    .synopsis = "[NAME]",
    .help = "forget a context (default: the selected one) and the token that login stored",
    .run = cmd_logout,
    .max_operands = 1,
    .completion = "context",
};

const struct cmd cmd_context_entry = {
    .name = "context",
    .synopsis = "[NAME|--remove NAME]",
    .help = "list the contexts that login made; with NAME, select that one",
    .run = cmd_context,
    .max_operands = 1,
    .completion = "context",
    .options = {
        {"remove", 0, "NAME", "forget this context and the token that login stored", "context"},
    },
};
/* clang-format on */
