#include "daemon/http/server.h"

#include <ctype.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/assert_always.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/system/file.h"
#include "common/text.h"
#include "daemon/http/access/auth.h"
#include "daemon/http/access/token.h"
#include "daemon/http/listen.h"
#include "daemon/http/stats.h"
#include "daemon/http/stream/stream.h"
#include "daemon/http/thread_pool.h"

#define IDLE_SECONDS  60u
#define WRITE_THREADS 32u
#define READ_THREADS  16u /* separate from the writers, so that large reads do not delay writes */
#define DRAIN_FACTOR                                                                               \
    8 /* a body is read up to this multiple of its limit, so that the client can read the 413 */

struct endpoint {
    const struct http_app *app;
    struct thread_pool *writers, *readers; /* shared with other endpoints */
    struct MHD_Daemon *daemon;
    bool guarded; /* TCP: check for requests made by web sites */
};

#define HTTP_SERVER_MAGIC 0x477b5e6eu

struct http_server {
    unsigned magic;
    const struct config *config; /* as of the start */
    struct endpoint tcp, local;
    struct thread_pool *writers, *readers;
    struct listen_inherited fds; /* listening sockets until the endpoint owns them; -1: none */
    char url[128];
    char *socket;            /* path to remove at the end */
    char *certificate, *key; /* PEM; NULL: no TLS */
};

/* ---------------------------------------------------------------- one request */

/* A request, from its first byte to its completion. */
struct http_request {
    struct buffer body; /* at most max_body_bytes */
    uint64_t received;
    bool too_large;
    const char *malformed; /* error in the headers; NULL: none */
    const char *encoding;  /* unsupported Content-Encoding of the body; NULL: none */
    bool refused;          /* not authorised: discard the body */

    bool answered;
    struct reply reply;
    struct pool_task task;
    const struct endpoint *at;
    const struct config *config; /* a reference, released with the response */
    struct MHD_Connection *connection;
    const char *url, *method;
    const struct route *route; /* NULL: none */
    struct http_request *
        *current; /* slot of the connection (server_on_connection); NULL if out of memory */
};

static const char *server_header(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static enum MHD_Result server_take_parameter(void *context, enum MHD_ValueKind kind,
                                             const char *name, const char *value)
{
    struct request *q = context;

    (void)kind;
    if (q->query_count == QUERY_MAX)
        return MHD_NO;
    q->query[q->query_count].name = name;
    q->query[q->query_count++].value = value;
    return MHD_YES;
}

static bool server_is_gettable(const char *method)
{
    return strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
}

static int server_check_request(const struct endpoint *at, struct MHD_Connection *c,
                                const struct http_request *x, struct request *q, struct error *e)
{
    if (at->guarded &&
        csrf_check(x->config->require_token, server_header(c, "Host"), server_header(c, "Origin"),
                   server_header(c, "Sec-Fetch-Site"), strcmp(q->method, "GET") != 0, e))
        return -(int)e->code;
    if (x->malformed)
        return error_set(e, ERR_USAGE, "%s", x->malformed);
    if (x->encoding && x->received) {
        char shown[TEXT_ESCAPE_GROWTH * 32];
        text_escape(shown, sizeof shown, x->encoding, strlen(x->encoding), "");
        return error_set(e, ERR_ENCODING,
                         "Content-Encoding \"%s\" is not supported: send the body unencoded",
                         shown);
    }
    if (x->too_large)
        return error_set(e, ERR_TOO_LARGE, "the body is larger than the limit of %llu bytes",
                         (unsigned long long)x->body.limit);
    return 0;
}

static int server_find_caller(const struct http_request *x, bool counts, struct caller *caller,
                              struct error *e)
{
    struct MHD_Connection *c = x->connection;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    int socket = x->at->guarded || !info ? -1 : info->connect_fd;

    return auth_caller(x->at->app, x->config, socket, server_header(c, "Authorization"), counts,
                       caller, e);
}

static void server_add_retry_headers(struct reply *r, const struct error *e)
{
    if (e->code == ERR_NO_TOKEN)
        reply_header(r, "WWW-Authenticate", "Bearer realm=\"traind\"");
    if (e->code == ERR_TOO_MANY || e->code == ERR_BUSY)
        reply_header(r, "Retry-After", "1");
    if (e->code == ERR_ENCODING) /* as RFC 9110, 15.5.16 requires */
        reply_header(r, "Accept-Encoding", "identity");
}

static int server_route_request(const struct http_request *x, struct request *q, struct reply *r,
                                struct error *e)
{
    char allow[64];
    struct caller caller;

    if (server_find_caller(x, true, &caller, e))
        return -(int)e->code;
    q->rights = caller.rights;
    q->token = r->token = caller.token;
    memcpy(q->who, caller.who, sizeof q->who);
    if (caller.token) /* counts by token, not by address */
        snprintf(q->client, sizeof q->client, "token %lld", (long long)caller.token);
    q->route = route_find(q->method, q->path, &q->id, allow, sizeof allow, e);
    if (!q->route && *allow)
        reply_header(r, "Allow", "%s", allow);
    if (!q->route || auth_check(q->route, q->rights, e))
        return -(int)e->code;
    if (!q->route->handler) {
        error_set(e, ERR_UNSUPPORTED, "%s %s is not supported by this version", q->method, q->path);
        reply_problem(r, 501, e, NULL);
        return 0;
    }
    MHD_get_connection_values(x->connection, MHD_GET_ARGUMENT_KIND, server_take_parameter, q);
    if (q->query_count == QUERY_MAX)
        return error_set(e, ERR_USAGE, "more than %d query parameters", QUERY_MAX - 1);
    int status = route_check_query(q, e);
    return status ? status : q->route->handler(q, r, e);
}

static void server_name_client(struct MHD_Connection *c, char *name, size_t bytes)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info ? info->client_addr : NULL;
    socklen_t length = !address                         ? 0
                       : address->sa_family == AF_INET6 ? (socklen_t)sizeof(struct sockaddr_in6)
                                                        : (socklen_t)sizeof(struct sockaddr_in);

    if (!address || address->sa_family == AF_UNIX ||
        getnameinfo(address, length, name, (socklen_t)bytes, NULL, 0, NI_NUMERICHOST))
        snprintf(name, bytes, "unix");
}

static void server_answer(struct http_request *x)
{
    const struct endpoint *at = x->at;
    struct MHD_Connection *c = x->connection;
    const char *method = x->method;
    struct reply *r = &x->reply;
    struct error e = {0};
    struct request q = {
        .app = at->app,
        .config = x->config,
        .method = server_is_gettable(method) ? "GET" : method,
        .path = x->url,
        .on_socket = !at->guarded,
        .host = server_header(c, "Host"),
        .body = x->body.data,
        .body_bytes = x->body.bytes,
        .accept = server_header(c, "Accept"),
        .idempotency_key = server_header(c, "Idempotency-Key"),
        .if_none_match = server_header(c, "If-None-Match"),
        .last_event_id = server_header(c, "Last-Event-ID"),
        .prefer = server_header(c, "Prefer"),
        .range = server_header(c, "Range"),
        .if_range = server_header(c, "If-Range"),
    };
    double began = clock_monotonic();

    server_name_client(c, q.client, sizeof q.client);

    if (server_check_request(at, c, x, &q, &e) || server_route_request(x, &q, r, &e)) {
        server_add_retry_headers(r, &e);
        if (x->malformed)
            reply_header(r, "Connection", "close"); /* the end of the request is unknown */
        if (e.code == ERR_INTERNAL)
            log_error("%s %s: %s", method, q.path, e.text);
        reply_problem(r, 0, &e, NULL);
    }
    stats_count(q.route, r->status, clock_monotonic() - began);
    if (r->body && r->status == 200 && strcmp(q.method, "GET") == 0)
        reply_add_etag(r, q.if_none_match);
    if (r->body)
        reply_compress(r, server_header(c, "Accept-Encoding"));
    log_debug("%s %s: %d", method, q.path, r->status);
    settings_release(x->config); /* sending a stream may take days */
    x->config = NULL;
    x->answered = true;
}

/* ---------------------------------------------------------------- sending */

static const struct {
    const char *name, *value;
} always[] = {
    {"X-Content-Type-Options",       "nosniff"    },
    {"X-Frame-Options",              "DENY"       },
    {"Referrer-Policy",              "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy",   "same-origin"},
    {"Content-Security-Policy",
     "default-src 'self'; img-src 'self' blob:; base-uri 'none'; form-action 'none'; "
     "frame-ancestors 'none'; object-src 'none'"  },
};

#define BLOCK_BYTES ((size_t)256 * 1024)

struct download {
    struct tokens *tokens;
    int64_t token;
    int fd;
    uint64_t from;
};

static ssize_t server_read_block(void *context, uint64_t position, char *buffer, size_t capacity)
{
    const struct download *d = context;

    if (!tokens_alive(d->tokens, d->token, clock_now()))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    ssize_t bytes = pread(d->fd, buffer, capacity, (off_t)(d->from + position));
    return bytes > 0 ? bytes : MHD_CONTENT_READER_END_WITH_ERROR; /* the file was truncated */
}

static void server_close_download(void *context)
{
    struct download *d = context;

    close(d->fd);
    free(d);
}

/* If the request had a token, sending stops once that is revoked or has expired, because a slow
 * reader may take hours for weights or a backup. NULL leaves r->fd open. */
static struct MHD_Response *server_file_response(const struct http_app *app, const struct reply *r)
{
    if (!r->token)
        return MHD_create_response_from_fd_at_offset64(r->file_bytes, r->fd, r->file_from);
    struct download *d = xcalloc(1, sizeof *d);
    *d = (struct download){app->tokens, r->token, r->fd, r->file_from};
    struct MHD_Response *response = MHD_create_response_from_callback(
        r->file_bytes, BLOCK_BYTES, server_read_block, d, server_close_download);
    if (!response)
        free(d);
    return response;
}

static struct MHD_Response *server_to_mhd(const struct http_app *app, struct reply *r,
                                          struct MHD_Connection *c)
{
    struct MHD_Response *response;

    if (r->stream) {
        response = stream_response(r->stream, c);
        if (response)
            r->stream = NULL;
    } else if (r->file_bytes) {
        response = server_file_response(app, r);
        if (response)
            r->file_bytes = 0; /* now closed by the response */
    } else {
        response = MHD_create_response_from_buffer(r->bytes, r->body, MHD_RESPMEM_MUST_FREE);
        if (response)
            r->body = NULL;
    }
    return response;
}

static enum MHD_Result server_send_reply(const struct http_app *app, struct MHD_Connection *c,
                                         struct reply *r)
{
    struct MHD_Response *response = server_to_mhd(app, r, c);
    bool cached = false, tagged = false;

    if (!response)
        return MHD_NO;
    if (r->type)
        MHD_add_response_header(response, "Content-Type", r->type);
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        MHD_add_response_header(response, always[i].name, always[i].value);
    for (int i = 0; i < r->header_count; i++) {
        MHD_add_response_header(response, r->headers[i].name, r->headers[i].value);
        cached = cached || strcmp(r->headers[i].name, "Cache-Control") == 0;
        tagged = tagged || strcmp(r->headers[i].name, "ETag") == 0;
    }
    if (!cached)
        MHD_add_response_header(response, "Cache-Control",
                                tagged ? "private, no-cache" : "no-store");
    enum MHD_Result result = MHD_queue_response(c, (unsigned)r->status, response);
    MHD_destroy_response(response);
    return result;
}

/* ---------------------------------------------------------------- receiving */

static enum MHD_Result server_take_body(struct http_request *x, const char *data, size_t *bytes)
{
    size_t more = *bytes;

    *bytes = 0;
    x->received += more;
    if (x->received > x->body.limit) {
        x->too_large = true;
        return x->received > DRAIN_FACTOR * x->body.limit ? MHD_NO : MHD_YES;
    }
    if (x->refused || x->encoding) /* still read it, so that the client gets the response */
        return MHD_YES;
    return buffer_append(&x->body, data, more) ? MHD_YES : MHD_NO;
}

static bool server_content_length_exceeds_limit(const struct http_request *x)
{
    const char *length = server_header(x->connection, "Content-Length");
    /* A client that waits for 100 Continue has sent nothing yet. */
    bool waits = server_header(x->connection, "Expect") != NULL;

    if (!length)
        return false;
    return strtoull(length, NULL, 10) >
           (unsigned long long)x->body.limit * (waits ? 1 : DRAIN_FACTOR);
}

/* Header fields whose duplicates could make a proxy see a different request (RFC 9112, 11.2). */
struct framing {
    int hosts, lengths, codings;
    const char *coding;
    const char *encoding; /* encoding of the body, unless identity */
    bool bad_name;
};

static bool server_is_token(const char *name)
{
    static const char others[] = "!#$%&'*+-.^_`|~";

    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && !strchr(others, *name))
            return false;
    return true;
}

static enum MHD_Result server_count_field(void *context, enum MHD_ValueKind kind, const char *name,
                                          const char *value)
{
    struct framing *f = context;

    (void)kind;
    f->hosts += strcasecmp(name, "Host") == 0;
    f->lengths += strcasecmp(name, "Content-Length") == 0;
    if (strcasecmp(name, "Transfer-Encoding") == 0) {
        f->codings++;
        f->coding = value ? value : "";
    }
    if (strcasecmp(name, "Content-Encoding") == 0 && value && *value &&
        strcasecmp(value, "identity") != 0)
        f->encoding = value;
    f->bad_name = f->bad_name || !server_is_token(name);
    return MHD_YES;
}

static const char *server_find_fault(struct MHD_Connection *c, const char **encoding)
{
    struct framing f = {0};

    MHD_get_connection_values(c, MHD_HEADER_KIND, server_count_field, &f);
    *encoding = f.encoding;
    if (f.bad_name)
        return "a header's name has an invalid character, such as a space before the "
               "colon";
    if (f.hosts > 1)
        return "duplicate header Host";
    if (f.lengths > 1)
        return "duplicate header Content-Length";
    if (f.lengths && f.codings)
        return "Content-Length and Transfer-Encoding cannot be combined";
    if (f.codings > 1 || (f.codings && strcasecmp(f.coding, "chunked") != 0))
        return "the only supported Transfer-Encoding is \"chunked\"";
    return NULL;
}

static struct http_request *server_begin_request(const struct endpoint *at,
                                                 struct MHD_Connection *c, const char *url,
                                                 const char *method)
{
    struct http_request *x = xcalloc(1, sizeof *x);
    struct caller caller;
    struct error e;
    int64_t id;
    char allow[64];
    x->at = at;
    x->connection = c;
    x->url = url;
    x->method = method;
    x->config = settings_get(at->app->settings);
    x->body = BUFFER((size_t)x->config->max_body_bytes);
    x->malformed = server_find_fault(c, &x->encoding);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    x->current = info ? info->socket_context : NULL;
    if (x->current)
        *x->current = x;
    x->too_large = server_content_length_exceeds_limit(x);
    x->route =
        route_find(server_is_gettable(method) ? "GET" : method, url, &id, allow, sizeof allow, &e);
    /* Discard the body of an unauthorised request, so that it cannot fill the memory; the response
     * is sent once the request is complete. */
    x->refused = server_find_caller(x, false, &caller, &e) || !x->route ||
                 auth_check(x->route, caller.rights, &e);
    return x;
}

static void server_answer_and_resume(void *context)
{
    struct http_request *x = context;

    server_answer(x);
    MHD_resume_connection(x->connection); /* x may be freed from here on */
}

/* Requests that write to the store, and copies or digests of large files, block on the disk.
 * microhttpd calls server_handle again when the response is ready. */
static bool server_hand_to_pool(struct http_request *x)
{
    if (x->refused || x->too_large || x->malformed)
        return false;
    bool reads = server_is_gettable(x->method);
    if (reads && !route_reads_files(x->route))
        return false;
    x->task = (struct pool_task){server_answer_and_resume, x, NULL};
    MHD_suspend_connection(x->connection);
    if (!thread_pool_submit(reads ? x->at->readers : x->at->writers, &x->task))
        server_answer_and_resume(x);
    return true;
}

static enum MHD_Result server_handle(void *context, struct MHD_Connection *c, const char *url,
                                     const char *method, const char *version, const char *data,
                                     size_t *bytes, void **state)
{
    struct http_request *x = *state;

    (void)version;
    if (!x) {
        *state = x = server_begin_request(context, c, url, method);
        if (!x->too_large && !x->malformed)
            return MHD_YES;
    } else if (*bytes) {
        return server_take_body(x, data, bytes);
    }
    if (!x->answered && server_hand_to_pool(x))
        return MHD_YES;
    if (!x->answered)
        server_answer(x);
    enum MHD_Result result = server_send_reply(x->at->app, c, &x->reply);
    reply_clear(&x->reply);
    return result;
}

static void server_request_destroy(struct http_request *x)
{
    if (!x)
        return;
    if (x->current)
        *x->current = NULL;
    reply_clear(&x->reply);
    buffer_clear(&x->body);
    settings_release(x->config);
    free(x);
}

static void server_on_completed(void *context, struct MHD_Connection *c, void **state,
                                enum MHD_RequestTerminationCode code)
{
    (void)context;
    (void)c;
    (void)code;
    server_request_destroy(*state);
    *state = NULL;
}

/* libmicrohttpd 1.0 does not complete a request whose chunk extension exceeds its memory; such a
 * request is freed with its connection. */
static void server_on_connection(void *context, struct MHD_Connection *c, void **current,
                                 enum MHD_ConnectionNotificationCode code)
{
    (void)context;
    (void)c;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *current = calloc(1, sizeof(struct http_request *));
    } else if (*current) {
        server_request_destroy(*(struct http_request **)*current);
        free(*current);
        *current = NULL;
    }
}

/* Called with the whole address before it is parsed. microhttpd sends no response if its memory is
 * too small for the parameters, so the query is truncated after the maximum number of parameters,
 * and such a request gets a 400. The text is in the connection's buffer and may be changed. */
static void *server_shorten_query(void *context, const char *address, struct MHD_Connection *c)
{
    char *at = strchr((char *)(uintptr_t)address, '?');

    (void)context;
    (void)c;
    for (int i = 0; at && i < QUERY_MAX; i++)
        at = strchr(at + 1, '&');
    if (at)
        *at = '\0';
    return NULL; /* initial state of the request */
}

/* "%00" would truncate the path; it is replaced by a byte that nothing matches. */
static size_t server_unescape(void *context, struct MHD_Connection *c, char *text)
{
    (void)context;
    (void)c;
    for (char *at = strstr(text, "%00"); at; at = strstr(at, "%00"))
        at[2] = '1';
    return MHD_http_unescape(text);
}

/* ---------------------------------------------------------------- start and stop */

static void server_library_words(void *context, const char *format, va_list args)
{
    char text[512];

    (void)context;
    vsnprintf(text, sizeof text, format, args);
    text[strcspn(text, "\n")] = '\0';
    log_debug("http: %s", text);
}

/* TLS 1.2 or later, with forward secrecy and AEAD ciphers only. */
#define TLS_PRIORITIES                                                                             \
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:-CIPHER-ALL:"      \
    "+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-GCM:-MAC-ALL:+AEAD:%SERVER_PRECEDENCE"

static int server_start_endpoint(struct endpoint *at, int *fd, unsigned threads,
                                 const struct http_server *s, struct error *e)
{
    bool tls = at->guarded && s->key;
    struct MHD_OptionItem keys[] = {
        {MHD_OPTION_HTTPS_MEM_CERT,   0, s->certificate        },
        {MHD_OPTION_HTTPS_MEM_KEY,    0, s->key                },
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)TLS_PRIORITIES},
        {MHD_OPTION_END,              0, NULL                  }
    };

    at->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
            (tls ? MHD_USE_TLS : 0u),
        0, NULL, NULL, server_handle, at, MHD_OPTION_EXTERNAL_LOGGER, server_library_words, NULL,
        MHD_OPTION_UNESCAPE_CALLBACK, server_unescape, NULL, MHD_OPTION_URI_LOG_CALLBACK,
        server_shorten_query, NULL, MHD_OPTION_LISTEN_SOCKET, *fd, MHD_OPTION_NOTIFY_COMPLETED,
        server_on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION, server_on_connection, NULL,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)s->config->max_connections,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        at->guarded ? (unsigned)s->config->connections_per_address : 0u,
        MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_THREAD_POOL_SIZE, threads,
        MHD_OPTION_ARRAY, tls ? keys : &keys[3], MHD_OPTION_END);
    *fd = -1; /* microhttpd closes it even on failure */
    if (at->daemon)
        return 0;
    if (tls)
        return error_set(e, ERR_USAGE,
                         "cannot start the HTTPS server: check that tls_certificate and "
                         "tls_key are PEM files that belong together");
    return error_set(e, ERR_IO,
                     "cannot start the HTTP server: check the limits on open files "
                     "and threads (ulimit -n, ulimit -u)");
}

#define PEM_LIMIT_BYTES ((size_t)1 << 20)

static struct listen_rules server_rules_of(const struct config *c)
{
    return (struct listen_rules){c->tls_key != NULL, c->tls_key && c->require_token};
}

/* Takes systemd's sockets or opens its own. A socket file created by systemd is not removed. */
static int server_open_sockets(struct http_server *s, const struct http_app *app, struct error *e)
{
    const struct config *c = s->config;
    struct listen_rules rules = server_rules_of(c);
    int status = listen_inherit(&rules, &s->fds, s->url, sizeof s->url, e);

    if (!status && s->fds.tcp < 0)
        status = listen_tcp(c->listen, &rules, &s->fds.tcp, s->url, sizeof s->url, e);
    if (!status && s->fds.local < 0) {
        status = listen_unix(c->socket, app->socket_gid, &s->fds.local, e);
        if (!status)
            s->socket = xstrdup(c->socket);
    }
    return status;
}

int http_server_check(const struct config *c, struct error *e)
{
    struct listen_rules rules = server_rules_of(c);
    return listen_check(c->listen, &rules, e);
}

int http_server_listen(const struct http_app *app, struct http_server **out, struct error *e)
{
    struct http_server *s = xcalloc(1, sizeof *s);

    *out = NULL;
    s->magic = HTTP_SERVER_MAGIC;
    s->config = settings_get(app->settings);
    s->fds = (struct listen_inherited){-1, -1};
    s->writers = thread_pool_create(WRITE_THREADS);
    s->readers = thread_pool_create(READ_THREADS);
    s->tcp = (struct endpoint){app, s->writers, s->readers, NULL, true};
    s->local = (struct endpoint){app, s->writers, s->readers, NULL, false};
    int status = 0;
    size_t bytes;
    if (s->config->tls_key &&
        (file_read(s->config->tls_certificate, PEM_LIMIT_BYTES, &s->certificate, &bytes, e) ||
         file_read(s->config->tls_key, PEM_LIMIT_BYTES, &s->key, &bytes, e)))
        status = -(int)e->code;
    if (!status)
        status = server_open_sockets(s, app, e);
    if (status)
        http_server_stop(s);
    else
        *out = s;
    return status;
}

int http_server_start(struct http_server *s, struct error *e)
{
    assert_object(s, HTTP_SERVER_MAGIC);
    unsigned threads = (unsigned)s->config->http_threads;
    int status = server_start_endpoint(&s->tcp, &s->fds.tcp, threads, s, e);

    return status ? status
                  : server_start_endpoint(&s->local, &s->fds.local, threads > 1 ? 2 : 0, s, e);
}

const char *http_server_url(const struct http_server *s)
{
    assert_object(s, HTTP_SERVER_MAGIC);
    return s->url;
}

void http_server_stop(struct http_server *s)
{
    if (!s)
        return;
    assert_object_ends(s, HTTP_SERVER_MAGIC);
    if (s->socket)
        unlink(s->socket);
    if (s->fds.tcp >= 0)
        close(s->fds.tcp);
    if (s->fds.local >= 0)
        close(s->fds.local);
    /* microhttpd cannot stop while connections are suspended. */
    thread_pool_shutdown(s->writers);
    thread_pool_shutdown(s->readers);
    if (s->tcp.daemon)
        MHD_stop_daemon(s->tcp.daemon);
    if (s->local.daemon)
        MHD_stop_daemon(s->local.daemon);
    thread_pool_destroy(s->writers);
    thread_pool_destroy(s->readers);
    settings_release(s->config);
    free(s->socket);
    free(s->certificate);
    if (s->key)
        explicit_bzero(s->key, strlen(s->key));
    free(s->key);
    free(s);
}
