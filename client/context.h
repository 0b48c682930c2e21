/*
 * The daemon that trainctl talks to, and the contexts kept by `trainctl login`: names for a server
 * and the file with its token, tokens/NAME or one of the user's. They are in contexts.json (mode
 * 0600) in the folder traind below XDG_CONFIG_HOME or ~/.config:
 *
 *     {"current": "lab",
 *      "contexts": {"lab": {"server": "https://train:7077", "token_file": "..."}}}
 */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>

#include "common/error.h"

#define SERVER_BYTES (PATH_MAX + 8)

/* What the options of all commands (--server, --context, --json, --no-color) and the environment
 * say. */
struct client_settings {
    const char *server;     /* "http://127.0.0.1:7077" or "unix:/path"; NULL before server_choose */
    const char *context;    /* that the server is from; NULL: none */
    const char *token_file; /* of that context; NULL: it has none */
    bool json;              /* print the API's JSON */
    bool color; /* standard output is a terminal, and neither NO_COLOR nor --no-color was given */
};
extern struct client_settings client;

/* Sets client.server, .context and .token_file from --server, --context, TRAINCTL_SERVER,
 * TRAINCTL_CONTEXT, the current context or the socket of a daemon on this machine, in this order;
 * else http://127.0.0.1:7077. Many commands need no daemon, so only server_check returns the
 * error. */
void server_choose(void);
int server_check(struct error *e);

/* "unix:PATH" of the first daemon of this machine whose socket this user may open, by TRAIND_STATE,
 * the user's own or the system's; it needs no token. below: also quickstart's in the current
 * folder. Static text; NULL: none. */
const char *server_find_socket(bool below);

/* Completes an address: HOST:PORT gets http on the loopback and https elsewhere, ":7077" is this
 * machine, and the path of a socket becomes absolute. ERR_USAGE. */
int server_address(const char *text, char address[SERVER_BYTES], struct error *e);

bool server_is_socket(const char *server);

/* The path of a file in that folder; false: neither variable is set. */
bool config_path(char path[PATH_MAX], const char *name);

/* Reads and checks contexts.json; without the file there are no contexts. A new reference; NULL: *e
 * names file and line. */
json_t *contexts_read(struct error *e);
int contexts_write(const json_t *all, struct error *e);

/* Borrowed. NULL: ERR_NOT_FOUND with the nearest name. */
const json_t *context_find(const json_t *all, const char *name, struct error *e);
