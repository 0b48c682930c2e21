/* What holds for all commands, wherever they are in trainctl. */
#pragma once

#include <stdbool.h>

/* What the options of all commands (--server, --json, --no-color) and the environment say. */
struct client_settings {
    const char *server; /* "http://127.0.0.1:7077", "unix:/path" (api_find_server) */
    bool json;          /* print the API's JSON instead of words for a person */
    bool color;         /* stdout is a terminal, and neither NO_COLOR nor --no-color was given */
};
extern struct client_settings client;
