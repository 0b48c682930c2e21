/* traind: the daemon. Opens the store, serves HTTP, and runs jobs until it is told to stop. */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/file.h"
#include "common/log.h"
#include <config.h> /* the build's, not daemon/config.h */
#include "daemon/config.h"
#include "daemon/http/server.h"
#include "daemon/http/stream.h"
#include "daemon/job/job.h"
#include "daemon/store/store.h"

/* ---------------------------------------------------------------- command line */

struct arguments {
    struct config config;
    const char *config_file;
    bool print_openapi;
};

enum { OPTION_OPENAPI = 256 };

/* clang-format off */
static const struct argp_option options[] = {
    {"config", 'c', "FILE", 0, "settings (default: " SYSCONFDIR "/traind.conf)", 0},
    {"state", 's', "DIR", 0, "folder of the database and the runs", 0},
    {"listen", 'l', "HOST:PORT", 0, "address of the HTTP server (default: 127.0.0.1:7077)", 0},
    {"socket", 'u', "PATH", 0, "unix socket (default: traind.sock in the state folder)", 0},
    {"openapi", OPTION_OPENAPI, NULL, 0, "print the API's OpenAPI document and exit", 0},
    {0},
};
/* clang-format on */

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    struct error e;
    int status = 0;

    switch (key) {
    case 'c':
        a->config_file = text;
        break;
    case 's':
        status = config_set(&a->config, "state", text, "--state", &e);
        break;
    case 'l':
        status = config_set(&a->config, "listen", text, "--listen", &e);
        break;
    case 'u':
        status = config_set(&a->config, "socket", text, "--socket", &e);
        break;
    case OPTION_OPENAPI:
        a->print_openapi = true;
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "\"%s\" is not an option; traind takes no other arguments", text);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (status)
        argp_error(state, "%s", e.text);
    return 0;
}

/* --help lists the keys of the file too, from their table. */
static char *help_text(int key, const char *text, void *input)
{
    char *keys = NULL;
    size_t bytes;

    (void)input;
    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)text;
    FILE *out = open_memstream(&keys, &bytes);
    if (!out)
        return (char *)text;
    fputs("Keys of the settings file and their defaults (the command line wins over the file):\n",
          out);
    config_help(out);
    fclose(out);
    return keys;
}

/* ---------------------------------------------------------------- the state folder */

/* One daemon a folder: the lock lives as long as the process. */
static int lock_state(const struct config *c, int *fd, struct error *e)
{
    char *path = NULL, text[32] = "";

    if (asprintf(&path, "%s/lock", c->state) < 0)
        return error_set(e, ERR_NO_MEMORY, "out of memory");
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    int status = *fd < 0 ? error_set_errno(e, errno, "cannot open %s", path) : 0;
    if (status == 0 && flock(*fd, LOCK_EX | LOCK_NB)) {
        if (read(*fd, text, sizeof text - 1) < 0)
            text[0] = '\0';
        text[strcspn(text, "\n")] = '\0';
        status = error_set(e, ERR_CONFLICT,
                           "another traind (pid %s) works in %s. Stop that one, or give another "
                           "folder with --state",
                           *text ? text : "unknown", c->state);
    }
    if (status == 0 && (ftruncate(*fd, 0) || dprintf(*fd, "%ld\n", (long)getpid()) < 0))
        status = error_set_errno(e, errno, "cannot write %s", path);
    free(path);
    return status;
}

static int state_file(const struct config *c, const char *name, char **path, struct error *e)
{
    if (asprintf(path, "%s/%s", c->state, name) >= 0)
        return 0;
    *path = NULL;
    return error_set(e, ERR_NO_MEMORY, "out of memory");
}

static int write_url(const struct config *c, const char *url, struct error *e)
{
    char *path, line[160];

    if (state_file(c, "listen", &path, e))
        return -(int)e->code;
    int bytes = snprintf(line, sizeof line, "%s\n", url);
    int status = file_write_atomic(path, line, (size_t)bytes, e);
    free(path);
    return status;
}

static void remove_url(const struct config *c)
{
    char *path;

    if (state_file(c, "listen", &path, NULL))
        return;
    unlink(path);
    free(path);
}

/* ---------------------------------------------------------------- the life of the daemon */

static struct job_manager *signalled; /* what a signal stops */

static void on_signal(int number)
{
    (void)number;
    job_manager_stop(signalled);
}

static void catch_signals(struct job_manager *m)
{
    struct sigaction stop = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    signalled = m;
    signal(SIGPIPE, SIG_IGN);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
}

static int open_store(const struct config *c, struct store **store, struct error *e)
{
    char *path;

    if (state_file(c, "traind.db", &path, e))
        return -(int)e->code;
    int status = store_open(path, store, e);
    free(path);
    return status;
}

static int create_manager(const struct config *c, struct store *store, struct job_manager **m,
                          struct error *e)
{
    char *jobs_dir;

    if (state_file(c, "jobs", &jobs_dir, e))
        return -(int)e->code;
    struct job_manager_config settings = {.jobs_dir = jobs_dir,
                                          .mpirun = c->mpirun,
                                          .worker = c->worker,
                                          .slots = c->slots,
                                          .cancel_grace_seconds = (double)c->cancel_grace_seconds,
                                          .priority_seconds = (double)c->priority_seconds,
                                          .restart_delay_seconds = (double)c->restart_delay_seconds,
                                          .keep_runs = c->keep_runs,
                                          .keep_checkpoints = c->keep_checkpoints,
                                          .log_limit_bytes = c->log_limit_bytes,
                                          .stall_seconds = c->stall_seconds};
    int status = job_manager_create(&settings, store, m, e);
    free(jobs_dir);
    return status;
}

static int create_streams(const struct config *c, struct store *store, struct streams **streams,
                          struct error *e)
{
    struct streams_limits limits = {c->streams_per_client, c->heartbeat_seconds};

    return streams_create(store, &limits, streams, e);
}

static int serve(const struct http_app *app, struct error *e)
{
    struct http_server *server;

    catch_signals(app->jobs);
    if (http_server_start(app, &server, e))
        return -(int)e->code;
    int status = write_url(app->config, http_server_url(server), e);
    if (status == 0) {
        log_info("listening on %s and on %s; state in %s", http_server_url(server),
                 app->config->socket, app->config->state);
        status = job_manager_run(app->jobs, e);
        remove_url(app->config);
    }
    streams_stop(app->streams);
    http_server_stop(server);
    return status;
}

static int run(const struct config *config, struct error *e)
{
    struct http_app app = {.config = config};
    int lock = -1;

    int status = file_make_dirs(config->state, e);
    if (status == 0)
        status = lock_state(config, &lock, e);
    if (status == 0)
        status = open_store(config, &app.store, e);
    if (status == 0)
        status = create_manager(config, app.store, &app.jobs, e);
    if (status == 0)
        status = create_streams(config, app.store, &app.streams, e);
    if (status == 0)
        status = serve(&app, e);
    streams_destroy(app.streams);
    job_manager_destroy(app.jobs);
    store_close(app.store);
    if (lock >= 0)
        close(lock);
    return status;
}

static int print_openapi(void)
{
    json_t *document = openapi_document();
    int failed = json_dumpf(document, stdout, JSON_INDENT(2)) || putchar('\n') == EOF;

    json_decref(document);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static const struct argp parser = {
        options, parse_option, NULL, "Serves training jobs over HTTP, in the foreground.\v(keys)",
        NULL,    help_text,    NULL};
    struct arguments a = {0};
    struct error e = {0};

    argp_program_version = "traind " PACKAGE_VERSION;
    argp_err_exit_status = error_type(ERR_USAGE)->exit_code;
    argp_parse(&parser, argc, argv, 0, NULL, &a);
    if (a.print_openapi)
        return print_openapi();
    int status = config_load(&a.config, a.config_file, &e);
    if (status == 0) {
        log_set_level(a.config.log_level);
        status = run(&a.config, &e);
    }
    if (status == 0)
        log_info("stopped; trainings that run go on");
    else
        log_error("%s", e.text);
    config_clear(&a.config);
    return status ? error_type(e.code)->exit_code : EXIT_SUCCESS;
}
