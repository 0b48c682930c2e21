/* The daemon that trainctl uses, and the contexts stored by `trainctl login`. A context is a name
 * for a server and for the file with its token, either tokens/NAME or a file of the user's. They
 * are stored in contexts.json (mode 0600) in the folder traind below XDG_CONFIG_HOME or ~/.config:
 *
 * {"current": "lab", "contexts": {"lab": {"server": "https://train:7077", "token_file": "..."}}} */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>

#include "common/error.h"

#define SERVER_BYTES (PATH_MAX + 8)

/* Settings from the options of all commands (--server, --context, --json, --no-color) and from the
 * environment. */
struct client_settings {
    const char *server;     /* "http://127.0.0.1:7077" or "unix:/path"; NULL before server_choose */
    const char *context;    /* context that defines the server; NULL: none */
    const char *token_file; /* token file of that context; NULL: none */
    bool json;              /* print the API's JSON */
    bool color; /* standard output is a terminal, and neither NO_COLOR nor --no-color was given */
};
extern struct client_settings client;

/* Sets client.server, .context and .token_file from --server, --context, TRAINCTL_SERVER,
 * TRAINCTL_CONTEXT, the current context or the socket of a daemon on this machine, in this order;
 * otherwise http://127.0.0.1:7077. Only server_check returns the error, because many commands need
 * no daemon. */
void server_choose(void);
int server_check(struct error *e);

/* Returns "unix:PATH" for the first daemon on this machine whose socket this user may open (by
 * TRAIND_STATE, the user's own, or the system's); it needs no token. below: also look for
 * quickstart's in the current folder. Static buffer; NULL: none. */
const char *server_find_socket(bool below);

/* Completes an address: HOST:PORT uses http on the loopback and https elsewhere, ":7077" is this
 * machine, and the path of a socket is made absolute. ERR_USAGE. */
int server_address(const char *text, char address[SERVER_BYTES], struct error *e);

bool server_is_socket(const char *server);

/* Gets the path of a file in that folder. Returns false if neither variable is set. */
bool config_path(char path[PATH_MAX], const char *name);

/* Reads and validates contexts.json; without the file there are no contexts. Returns a new
 * reference, or NULL with *e, which names file and line. */
json_t *contexts_read(struct error *e);
int contexts_write(const json_t *all, struct error *e);

/* Borrowed. Returns NULL with ERR_NOT_FOUND and the most similar name. */
const json_t *context_find(const json_t *all, const char *name, struct error *e);
