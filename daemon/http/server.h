/*
 * The HTTP server: the routes on a TCP address and on a unix socket, on libmicrohttpd's threads.
 * Requests of other web sites are refused (Host and Origin), and the size of bodies is limited
 * as they arrive.
 */
#pragma once

#include "common/error.h"
#include "daemon/http/routes.h"

struct http_server;

/* Opens the sockets; connections wait for http_server_start. app is borrowed until
 * http_server_stop. */
int http_server_listen(const struct http_app *app, struct http_server **out, struct error *e);

/* Starts to answer. */
int http_server_start(struct http_server *s, struct error *e);

int http_server_check(const struct config *c, struct error *e);

const char *http_server_url(const struct http_server *s); /* "http://127.0.0.1:7077" */

/* Finishes the answers in progress and closes; NULL is fine. */
void http_server_stop(struct http_server *s);
