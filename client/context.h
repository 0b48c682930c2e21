/*
 * The daemon that trainctl speaks to, and the contexts that `trainctl login` keeps: names for a
 * server and the file with its token, which is tokens/NAME or one of the user's. In the folder
 * traind below XDG_CONFIG_HOME or ~/.config, file contexts.json (mode 0600):
 *
 *     {"current": "lab", "contexts": {"lab": {"server": "https://train:7077", "token_file":
 * "..."}}}
 */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>

#include "common/error.h"

#define SERVER_BYTES (PATH_MAX + 8)

/* Sets client.server, .context and .token_file: from --server, --context, TRAINCTL_SERVER,
 * TRAINCTL_CONTEXT, the current context, the socket of a daemon here, else
 * http://127.0.0.1:7077. Many commands need no daemon, so server_check returns the error. */
void server_choose(void);
int server_check(struct error *e);

/* "unix:PATH" of the first daemon of this machine whose socket this user may open (TRAIND_STATE,
 * the user's own, the system's), which needs no token. below: also that of quickstart in the
 * current folder. Static text; NULL: there is none. */
const char *server_find_socket(bool below);

/* An address in full: of HOST:PORT http on the loopback, https elsewhere; ":7077" is this machine,
 * the path of a socket absolute. ERR_USAGE. */
int server_address(const char *text, char address[SERVER_BYTES], struct error *e);

bool server_is_socket(const char *server);

/* A file in that folder; false: it is not known where. */
bool config_path(char path[PATH_MAX], const char *name);

/* The file, checked, or that of no contexts. A new reference; NULL: *e names file and line. */
json_t *contexts_read(struct error *e);
int contexts_write(const json_t *all, struct error *e);

/* One of them, borrowed. NULL: ERR_NOT_FOUND with the nearest name. */
const json_t *context_find(const json_t *all, const char *name, struct error *e);
