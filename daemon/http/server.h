/*
 * The HTTP server: one set of routes on a TCP address and on a unix socket, answered by a pool of
 * threads of libmicrohttpd. Requests from other web sites are refused (Host and Origin), bodies are
 * bounded while they arrive.
 */
#pragma once

#include "common/error.h"
#include "daemon/http/routes.h"

struct http_server;

/* Listens: who connects waits for http_server_start. app is used, not copied, until
 * http_server_stop. */
int http_server_listen(const struct http_app *app, struct http_server **out, struct error *e);

/* Answers from now on. */
int http_server_start(struct http_server *s, struct error *e);

/* traind --check-config: whether the address can be listened on under these settings, without
 * listening. */
int http_server_check(const struct config *c, struct error *e);

const char *http_server_url(const struct http_server *s); /* "http://127.0.0.1:7077" */

/* Ends answers under way and closes; NULL is fine. */
void http_server_stop(struct http_server *s);
