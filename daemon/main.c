/* traind, the daemon: opens the store, serves HTTP, and runs jobs until it is stopped. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "common/log.h"
#include "common/system/command_line.h"
#include "common/system/process.h"
#include "common/system/file.h"
#include "common/system/install_paths.h"
#include "common/system/open_beneath.h"
#include "common/xalloc.h"
#include <config.h> /* the build's config.h, not daemon/config.h */
#include "daemon/config.h"
#include "launch/hosts.h"
#include "daemon/http/openapi.h"
#include "daemon/http/server.h"
#include "daemon/http/stream/stream.h"
#include "daemon/http/access/token.h"
#include "daemon/job/job.h"
#include "daemon/job/job_manager.h"
#include "daemon/launch/failure_rules.h"
#include "daemon/node/node_self.h"
#include "daemon/notice/notices.h"
#include "daemon/state_folder.h"
#include "daemon/store/store.h"
#include "daemon/store/store_open.h"
#include "daemon/watchdog.h"

struct arguments {
    const char *state, *listen, *socket; /* override the file; NULL: not given */
    const char *config_file;
    bool print_openapi, check_config;
};

#define AT(field) offsetof(struct arguments, field)

/* clang-format off */
static const struct command_option options[] = {
    {.name = "config", .letter = 'c', .value = "FILE", .kind = OPTION_TEXT, .offset = AT(config_file),
     .help = "settings (default: " SYSCONFDIR "/traind.conf)"},
    {.name = "state", .letter = 's', .value = "DIR", .kind = OPTION_TEXT, .offset = AT(state),
     .help = "folder of the database and the runs"},
    {.name = "listen", .letter = 'l', .value = "HOST:PORT", .kind = OPTION_TEXT, .offset = AT(listen),
     .help = "address of the HTTP server (default: 127.0.0.1:7077)"},
    {.name = "socket", .letter = 'u', .value = "PATH", .kind = OPTION_TEXT, .offset = AT(socket),
     .help = "unix socket (default: traind.sock in the state folder)"},
    {.name = "check-config", .kind = OPTION_FLAG, .offset = AT(check_config), .help = "check the settings and exit"},
    {.name = "openapi", .kind = OPTION_FLAG, .offset = AT(print_openapi),
     .help = "print the API's OpenAPI document and exit"},
    {.name = "version", .letter = 'V', .help = "show the version", .ends = true},
    {0},
};
/* clang-format on */

static int main_set_options(const struct arguments *a, struct config *c, struct error *e)
{
    const struct {
        const char *key, *text;
    } given[] = {
        {"state",  a->state },
        {"listen", a->listen},
        {"socket", a->socket},
    };
    char option[16];

    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        snprintf(option, sizeof option, "--%s", given[i].key);
        if (given[i].text && config_set(c, given[i].key, given[i].text, option, e))
            return -(int)e->code;
    }
    return 0;
}

static int main_check_options(void *fields, struct error *e)
{
    struct config unused = {0};
    int status = main_set_options(fields, &unused, e);

    config_clear(&unused);
    return status;
}

static void main_print_keys(FILE *out)
{
    fputs("\nKeys of the settings file and their defaults (the command line wins over the file):\n",
          out);
    config_help(out);
}

struct daemon_life {
    const struct arguments *arguments;
    struct http_app app;
    const struct config *config; /* as of the start, for keys that need a restart */
    struct node_self *self;
    struct watchdog *watchdog; /* NULL: not watched by systemd */
};

static struct job_manager *signalled;
static atomic_bool reload_wanted;

static void main_on_signal(int number)
{
    if (number == SIGHUP) {
        atomic_store(&reload_wanted, true);
        job_manager_wake(signalled);
    } else {
        job_manager_stop(signalled);
    }
}

static void main_handle_signals(void (*handler)(int))
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};

    sigaction(SIGTERM, &act, NULL);
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGHUP, &act, NULL);
}

static void main_use_process_settings(const struct config *c)
{
    open_beneath_set_roots(c->data_roots);
    log_set_level((enum log_level)c->log_level);
    log_set_format((enum log_format)c->log_format);
}

/* Reads and validates all settings. The caller frees all three, even after an error. */
static int main_load(const struct arguments *a, struct config *c, struct failure_rules **rules,
                     struct notice_settings **notices, struct error *e)
{
    *c = (struct config){0};
    *rules = NULL;
    *notices = NULL;
    int status = main_set_options(a, c, e);
    if (status == 0)
        status = config_load(c, a->config_file, e);
    if (status == 0)
        status = config_check(c, e);
    if (status == 0)
        status = http_server_check(c, e);
    if (status == 0)
        status = notice_settings_load(c, notices, e);
    if (status == 0)
        status = failure_rules_load(c->failure_rules, rules, e);
    return status;
}

static void main_reload(struct daemon_life *d)
{
    struct config_changes changes = {0};
    struct config fresh;
    struct failure_rules *rules;
    struct notice_settings *notices;
    struct error e;

    sd_notify(0, "RELOADING=1");
    if (main_load(d->arguments, &fresh, &rules, &notices, &e)) {
        log_error("keeping the previous settings: %s", e.text);
        failure_rules_destroy(rules);
        notice_settings_release(notices);
    } else {
        settings_replace(d->app.settings, &fresh, &changes);
        notices_set(d->app.notices, notices);
        const struct config *config = settings_get(d->app.settings);
        main_use_process_settings(config);
        job_manager_set_rules(d->app.jobs, rules, config->jobs.drain_command);
        job_manager_set_limits(d->app.jobs, &config->jobs.limits);
        settings_release(config);
        if (!*changes.taken && !*changes.needs_restart)
            log_info("settings reloaded; nothing has changed");
        else
            log_info("settings reloaded%s%s%s%s", *changes.taken ? ": " : "", changes.taken,
                     *changes.needs_restart ? "; restart traind to change " : "",
                     changes.needs_restart);
    }
    config_clear(&fresh);
    config_changes_clear(&changes);
    sd_notify(0, "READY=1");
}

static double main_on_round(void *context)
{
    struct daemon_life *d = context;

    if (atomic_exchange(&reload_wanted, false))
        main_reload(d);
    const struct config *config = settings_get(d->app.settings);
    double next = node_self_round(d->self, &config->nodes);
    settings_release(config);
    return fmin(next, watchdog_round(d->watchdog));
}

static int main_open_store(const struct config *c, struct http_app *app, struct error *e)
{
    char *database = xasprintf("%s/traind.db", c->state);
    char *tokens = xasprintf("%s/tokens.json", c->state);
    int status = store_open(database, &app->store, e);

    if (status == 0)
        status = tokens_open(tokens, &app->tokens, e);
    free(database);
    free(tokens);
    return status;
}

static int main_serve(struct daemon_life *d, struct error *e)
{
    const struct config *c = d->config;
    struct http_server *server;

    signalled = d->app.jobs;
    signal(SIGPIPE, SIG_IGN);
    main_handle_signals(main_on_signal);
    job_manager_each_round(d->app.jobs, main_on_round, d);
    if (http_server_listen(&d->app, &server, e))
        return -(int)e->code;
    const char *url = http_server_url(server);
    /* Written before the first response, so that a client that got one finds the file. */
    int status = state_folder_write_url(c->state, url, e);
    if (status == 0)
        status = http_server_start(server, e);
    if (status == 0) {
        log_info("listening on %s and on %s; state in %s", url, c->socket, c->state);
        if (!c->require_token)
            log_warning("require_token = no: every user of this machine may read, submit and, "
                        "where a job has no owner, cancel and remove jobs at %s",
                        url);
        else if (!c->data_roots && (c->tls_key || c->socket_group))
            log_warning("data_roots is not set: jobs may use any folder that this user can read");
        sd_notifyf(0, "READY=1\nSTATUS=listening on %s", url);
        status = job_manager_run(d->app.jobs, e);
    }
    state_folder_remove_url(c->state);
    sd_notify(0, "STOPPING=1");
    streams_stop(d->app.streams);
    http_server_stop(server);
    return status;
}

/* Takes ownership of rules and notices. */
static int main_run(struct daemon_life *d, struct failure_rules *rules,
                    struct notice_settings *notices, struct error *e)
{
    const struct config *c = d->config;
    struct http_app *app = &d->app;
    const struct group *group = c->socket_group ? getgrnam(c->socket_group) : NULL;
    struct job_manager_config jobs = c->jobs;
    char *jobs_dir = xasprintf("%s/jobs", c->state);
    int lock = -1;

    app->socket_gid = group ? group->gr_gid : (gid_t)-1;
    jobs.jobs_dir = jobs_dir;
    jobs.rules = rules;
    int status = state_folder_prepare(c->state, c->socket, app->socket_gid, e);
    if (status == 0)
        status = state_folder_lock(c->state, &lock, e);
    if (status == 0)
        status = main_open_store(c, app, e);
    if (status) {
        failure_rules_destroy(rules);
        notice_settings_release(notices);
    } else {
        app->notices = notices_create(app->store, notices); /* before any job changes */
        status = job_manager_create(&jobs, app->store, &app->jobs, e);
    }
    if (status == 0)
        status = streams_create(app->store, app->tokens, &c->streams, &app->streams, e);
    if (status == 0)
        d->self = node_self_create(app->store, app->jobs, c->jobs.worker);
    if (status == 0)
        status = watchdog_start(app->store, &d->watchdog, e);
    if (status == 0)
        status = notices_start(app->notices, e);
    if (status == 0)
        status = main_serve(d, e);
    watchdog_stop(d->watchdog);
    streams_destroy(app->streams);
    node_self_destroy(d->self);
    main_handle_signals(SIG_IGN); /* ignore a second SIGTERM or Ctrl-C */
    job_manager_destroy(app->jobs);
    notices_destroy(app->notices);
    tokens_close(app->tokens);
    store_close(app->store);
    if (lock >= 0)
        close(lock);
    free(jobs_dir);
    return status;
}

static int main_print_openapi(void)
{
    json_t *document = openapi_document();
    int failed = json_dumpf(document, stdout, JSON_INDENT(1)) || putchar('\n') == EOF;

    json_decref(document);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void main_print_check(const struct config *c, const struct failure_rules *rules)
{
    int64_t unlabelled;
    json_t *list = failure_rules_to_json(rules, &unlabelled);
    const json_t *rule;
    size_t i;

    printf("the settings are valid: traind would listen on %s%s and on %s, with its state in %s\n",
           c->listen, c->tls_key ? " (TLS)" : "", c->socket, c->state);
    fputs("failures are labelled", stdout);
    json_array_foreach (list, i, rule)
        printf("%s %s%s", i ? "," : "", json_string_value(json_object_get(rule, "label")),
               json_is_true(json_object_get(rule, "shipped")) ? "" : " (by failure_rules)");
    putchar('\n');
    json_decref(list);
}

/* If one of the descriptors 0 to 2 is closed, a file opened later would get its number and receive
 * the output of the log or a launcher. */
static void main_fill_standard_streams(void)
{
    int fd = open("/dev/null", O_RDWR);

    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDWR);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    static const struct command_line line = {
        .program = "traind",
        .usage = "Usage: traind [OPTION...]",
        .doc = "Serves training jobs over HTTP, in the foreground.",
        .options = options,
        .version = "traind " PACKAGE_VERSION,
        .check = main_check_options,
        .print_more = main_print_keys,
    };
    struct arguments a = {0};
    struct config config;
    struct failure_rules *rules;
    struct notice_settings *notices;
    struct daemon_life life = {.arguments = &a};
    struct error e = {0};

    main_fill_standard_streams();
    if (argc > 2 && strcmp(argv[1], HOSTS_LAUNCH) == 0)
        return hosts_launch(argv + 2);
    process_forbid_core_dump();
    int status = command_line_read(&line, argc, argv, &a);
    if (status >= 0)
        return status;
    if (a.print_openapi)
        return main_print_openapi();
    status = main_load(&a, &config, &rules, &notices, &e);
    if (status || a.check_config) {
        if (status == 0)
            main_print_check(&config, rules);
        failure_rules_destroy(rules);
        notice_settings_release(notices);
        config_clear(&config);
    } else {
        life.app.settings = settings_create(&config);
        life.config = settings_get(life.app.settings);
        main_use_process_settings(life.config);
        status = main_run(&life, rules, notices, &e);
        if (status == 0)
            log_info("stopped; running jobs continue");
        settings_release(life.config);
        settings_destroy(life.app.settings);
    }
    if (status)
        log_error("%s", e.text);
    return status ? error_type(e.code)->exit_code : EXIT_SUCCESS;
}
