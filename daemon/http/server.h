/* The HTTP server: serves the routes on a TCP address and a unix socket with libmicrohttpd's
 * threads. Rejects requests made by other web sites (Host and Origin), and limits the size of
 * bodies while they arrive. */
#pragma once

#include "common/error.h"
#include "daemon/http/routes.h"

struct http_server;

/* Opens the sockets; connections are queued until http_server_start. Borrows app until
 * http_server_stop. */
int http_server_listen(const struct http_app *app, struct http_server **out, struct error *e);

/* Starts serving requests. */
int http_server_start(struct http_server *s, struct error *e);

int http_server_check(const struct config *c, struct error *e);

const char *http_server_url(const struct http_server *s); /* "http://127.0.0.1:7077" */

/* Finishes the responses in progress and closes the sockets. NULL-safe. */
void http_server_stop(struct http_server *s);
