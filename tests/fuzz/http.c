/*
 * Requests to the real server over its unix socket: the input is what a client sends before it
 * closes its side, and soon all of the connection. What the server answers is HTTP, and never a
 * 500; and it lives on.
 *
 * The daemon's threads run but for the job manager's loop, so what is submitted stays in the queue,
 * and the one that sends notices, so nobody is called.
 */
#include "daemon/http/server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/system/file.h"
#include "common/system/open_beneath.h"
#include "daemon/http/access/token.h"
#include "daemon/http/stream/stream.h"
#include "daemon/store/store_open.h"
#include "tests/fuzz/fuzz.h"

#define REQUESTS_A_DAEMON 2000 /* then a new one, whose store is empty */
#define ANSWER_MS         60000
#define HALF_SENT_MS      20 /* microhttpd waits for the rest of a body, up to IDLE_SECONDS */
#define SETTINGS                                                                                   \
    "listen = 127.0.0.1:0\nstate = %1$s/state\nsocket = %1$s/socket\nslots = 4\n"                  \
    "data_roots = %1$s/roots\nhttp_threads = 1\nmax_body_bytes = 65536\nworker = /bin/false\n"     \
    "mpirun = /bin/false\nslurm.node_cores = 4\n"

static struct http_app app;
static struct http_server *server;
static char folder[512], address[108];
static int requests;
static struct error e;

static void http_settings(struct config *c)
{
    char text[4096];

    snprintf(folder, sizeof folder, "%.400s/http", fuzz_folder());
    file_remove_tree(folder, NULL);
    mkdir(folder, 0700);
    snprintf(text, sizeof text, "%s/state", folder);
    mkdir(text, 0700);
    snprintf(text, sizeof text, "%s/roots", folder);
    mkdir(text, 0700);
    snprintf(text, sizeof text, SETTINGS, folder);
    setenv("SLURM_CONF", "/nonexistent", 1); /* no cluster is asked for anything */
    const char *path = fuzz_file("http/traind.conf", text, strlen(text));
    FUZZ_CHECK(config_load(c, path, &e) == 0, "%s", e.text);
    snprintf(address, sizeof address, "%s", c->socket);
    open_beneath_set_roots(c->data_roots);
}

static void http_end(void)
{
    if (!server)
        return;
    streams_stop(app.streams);
    http_server_stop(server);
    streams_destroy(app.streams);
    job_manager_destroy(app.jobs);
    notices_destroy(app.notices);
    tokens_close(app.tokens);
    store_close(app.store);
    settings_destroy(app.settings);
    server = NULL;
}

static void http_begin(void)
{
    static bool ends;
    struct config config = {0};
    char path[600], jobs[600];
    struct streams_limits limits = {4, 15};
    struct notice_settings *notices;

    if (!ends)
        atexit(http_end);
    ends = true;
    http_end();
    requests = 0;
    signal(SIGPIPE, SIG_IGN);
    http_settings(&config);
    FUZZ_CHECK(notice_settings_load(&config, &notices, &e) == 0, "%s", e.text);
    app.settings = settings_create(&config);
    snprintf(path, sizeof path, "%s/state/traind.db", folder);
    FUZZ_CHECK(store_open(path, &app.store, &e) == 0, "%s", e.text);
    app.notices = notices_create(app.store, notices);
    snprintf(path, sizeof path, "%s/state/tokens.json", folder);
    FUZZ_CHECK(tokens_open(path, &app.tokens, &e) == 0, "%s", e.text);
    snprintf(jobs, sizeof jobs, "%s/state/jobs", folder);
    struct job_manager_config manager = {.jobs_dir = jobs, .slots = 4, .worker = "/bin/false"};
    FUZZ_CHECK(job_manager_create(&manager, app.store, &app.jobs, &e) == 0, "%s", e.text);
    FUZZ_CHECK(streams_create(app.store, app.tokens, &limits, &app.streams, &e) == 0, "%s", e.text);
    app.socket_gid = (gid_t)-1;
    FUZZ_CHECK(http_server_listen(&app, &server, &e) == 0 && http_server_start(server, &e) == 0,
               "%s", e.text);
}

static int connect_socket(long wait_ms)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct timeval limit = {wait_ms / 1000, wait_ms % 1000 * 1000};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(to.sun_path, sizeof to.sun_path, "%s", address);
    FUZZ_CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0, "no connection");
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
}

/* All that comes in time is read; the first line is judged: the status, 0 for no answer. */
static int read_answer(int fd)
{
    char head[64] = "", rest[16384];
    size_t got = 0;
    ssize_t n;

    while (got < sizeof head - 1 && (n = read(fd, head + got, sizeof head - 1 - got)) > 0)
        got += (size_t)n;
    while (read(fd, rest, sizeof rest) > 0)
        continue;
    if (got < 12)
        return 0;
    FUZZ_CHECK(strncmp(head, "HTTP/1.", 7) == 0, "this is no HTTP: %s", head);
    FUZZ_CHECK(strncmp(head + 8, " 500", 4) != 0, "a server's own fault: %s", head);
    return (int)strtol(head + 9, NULL, 10);
}

static int http_send(const void *data, size_t bytes, long wait_ms)
{
    const char *at = data;
    int fd = connect_socket(wait_ms);

    for (size_t sent = 0; sent < bytes;) {
        ssize_t n = send(fd, at + sent, bytes - sent, MSG_NOSIGNAL);
        if (n <= 0)
            break; /* the server may end it at any time */
        sent += (size_t)n;
    }
    shutdown(fd, SHUT_WR);
    int status = read_answer(fd);
    close(fd);
    return status;
}

int fuzz_http(const uint8_t *data, size_t bytes)
{
    static const char alive[] = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

    if (!server || requests++ == REQUESTS_A_DAEMON)
        http_begin();
    http_send(data, bytes, HALF_SENT_MS);
    if (requests % 16 == 1) {
        int status = http_send(alive, sizeof alive - 1, ANSWER_MS);
        FUZZ_CHECK(status == 200, "no life in the server: %d", status);
    }
    return 0;
}
