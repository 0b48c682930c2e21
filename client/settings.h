/* What holds for all commands, wherever they are in trainctl. */
#pragma once

#include <stdbool.h>

/* What the options of all commands (--server, --context, --json, --no-color) and the environment
 * say. */
struct client_settings {
    const char *server;     /* "http://127.0.0.1:7077", "unix:/path" (server_choose); NULL before */
    const char *context;    /* whose server that is; NULL: of none */
    const char *token_file; /* of that context; NULL: it needs none */
    bool json;              /* print the API's JSON instead of words for a person */
    bool color; /* stdout is a terminal, and neither NO_COLOR nor --no-color was given */
};
extern struct client_settings client;
