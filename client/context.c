#include "client/context.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/context.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "common/system/file.h"
#include "common/system/host.h"
#include "common/text.h"

struct client_settings client = {.server = "http://127.0.0.1:7077"};
static struct error chosen;

bool server_is_socket(const char *server)
{
    return strncmp(server, "unix:", 5) == 0;
}

int server_address(const char *text, char address[SERVER_BYTES], struct error *e)
{
    char folder[PATH_MAX] = "";
    const char *before = "", *rest = text, *port = strrchr(text, ':');
    bool socket = server_is_socket(text) && text[5];
    CURLU *url = curl_url();

    if (socket && text[5] != '/' && getcwd(folder, sizeof folder))
        before = "unix:", rest = text + 5;
    else if (port && port[1] && !port[1 + strspn(port + 1, "0123456789")] && !strstr(text, "//"))
        before = *text == ':'             ? "http://127.0.0.1"
                 : host_is_loopback(text) ? "http://"
                                          : "https://";
    int length =
        snprintf(address, SERVER_BYTES, "%s%s%s%s", before, folder, *folder ? "/" : "", rest);
    /* Whether a path can be appended to it. */
    bool is_base = (strncmp(address, "http://", 7) == 0 || strncmp(address, "https://", 8) == 0) &&
                   !strpbrk(address, "?#") && url && !curl_url_set(url, CURLUPART_URL, address, 0);
    curl_url_cleanup(url);
    if (length >= SERVER_BYTES || !(socket || is_base))
        return error_set(e, ERR_USAGE,
                         "\"%s\" is not a server's address, such as http://HOST:PORT, "
                         "https://HOST:PORT, HOST:PORT or unix:/path/to/traind.sock",
                         text);
    while (!socket && address[length - 1] == '/')
        address[--length] = '\0';
    return 0;
}

static const char *context_find_socket(const char *folder, const char *below)
{
    static char server[sizeof "unix:" + PATH_MAX];
    struct stat st;

    if (!folder || !*folder ||
        (size_t)snprintf(server, sizeof server, "unix:%s%s/traind.sock", folder, below) >=
            sizeof server)
        return NULL;
    const char *path = server + strlen("unix:");
    return stat(path, &st) == 0 && S_ISSOCK(st.st_mode) && access(path, R_OK | W_OK) == 0 ? server
                                                                                          : NULL;
}

const char *server_find_socket(bool below)
{
    char folder[PATH_MAX];
    const char *found = context_find_socket(getenv("TRAIND_STATE"), "");

    if (!found && geteuid() != 0)
        found = context_find_socket(getenv("HOME"), "/.local/state/traind");
    if (!found)
        found = context_find_socket("/var/lib/traind", "");
    if (!found && below && getcwd(folder, sizeof folder))
        found = context_find_socket(folder, "/_state");
    return found;
}

bool config_path(char path[PATH_MAX], const char *name)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    if (config && *config)
        return file_path(path, NULL, "%s/traind/%s", config, name) == 0;
    return home && *home && file_path(path, NULL, "%s/.config/traind/%s", home, name) == 0;
}

json_t *contexts_read(struct error *e)
{
    char path[PATH_MAX];

    if (!config_path(path, "contexts.json") || access(path, F_OK))
        return must_alloc(json_pack("{s:{}}", "contexts"));
    json_t *all = json_document_load(path, e);
    if (all && json_is_object(json_object_get(all, "contexts")))
        return all;
    if (all)
        error_set(e, ERR_INVALID, "%s: it has no object \"contexts\"", path);
    json_decref(all);
    error_append(e, "\n  Correct that file, or move it away and run trainctl login again");
    return NULL;
}

int contexts_write(const json_t *all, struct error *e)
{
    char path[PATH_MAX];

    if (!config_path(path, "tokens"))
        return error_set(e, ERR_NOT_FOUND, "neither XDG_CONFIG_HOME nor HOME is set");
    int status = file_make_dirs(path, e);
    char *text = must_alloc(json_dumps(all, JSON_INDENT(2)));
    if (!status && config_path(path, "contexts.json"))
        status = file_write_secret(path, text, strlen(text), e);
    free(text);
    return status;
}

const json_t *context_find(const json_t *all, const char *name, struct error *e)
{
    json_t *contexts = json_object_get(all, "contexts"), *context = json_object_get(contexts, name);
    struct suggest near = {.word = name};
    const char *other;

    if (json_get_text(context, "server", NULL))
        return context;
    json_object_foreach (contexts, other, context)
        text_suggest(&near, other);
    bool found = near.best && strcmp(near.best, name) != 0;
    error_set(e, ERR_NOT_FOUND, "there is no context \"%s\" with a server%s%s%s", name,
              found ? "; did you mean \"" : ": create one with trainctl login",
              found ? near.best : "", found ? "\"?" : "");
    return NULL;
}

/* name NULL: the current context, if any. client borrows from the file's JSON, which is kept. */
static int context_choose(const char *name, struct error *e)
{
    static json_t *all;

    all = contexts_read(e);
    if (!all)
        return -(int)e->code;
    name = name ? name : json_get_text(all, "current", NULL);
    const json_t *context = name ? context_find(all, name, e) : NULL;
    if (name && !context)
        return -(int)e->code;
    client.context = name;
    client.server = json_get_text(context, "server", NULL);
    client.token_file = json_get_text(context, "token_file", NULL);
    return 0;
}

void server_choose(void)
{
    static char address[SERVER_BYTES];
    const char *server = client.server, *context = client.context;

    chosen.code = ERR_NONE;
    if (server && context)
        error_set(&chosen, ERR_USAGE, "--server and --context exclude each other");
    if (!server && !context && (server = getenv("TRAINCTL_SERVER")) && !*server)
        server = NULL;
    if (!server && !context && (context = getenv("TRAINCTL_CONTEXT")) && !*context)
        context = NULL;
    client.server = server;
    client.context = NULL;
    if (!server)
        context_choose(context, &chosen);
    else if (server_address(server, address, &chosen) == 0)
        client.server = address;
    const char *socket = client.server ? NULL : server_find_socket(false);
    if (socket) /* it points to a static buffer of a function that is called again */
        client.server = strcpy(address, socket);
    if (!client.server)
        client.server = "http://127.0.0.1:7077";
}

int server_check(struct error *e)
{
    return chosen.code ? error_set(e, chosen.code, "%s", chosen.text) : 0;
}
