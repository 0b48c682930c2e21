#include "daemon/config.h"

#include <errno.h>
#include <grp.h>
#include <ini.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/job/job_spec.h"
#include "common/job/job_text.h"
#include "common/xalloc.h"
#include "common/text.h"
#include "common/system/install_paths.h"
#include "launch/launch.h"

#define HELP_COLUMNS 78
#define FIELD(name)  offsetof(struct config, name)

/* clang-format off */
static const struct config_key keys[] = {
    {"listen", 's', "127.0.0.1:7077", 0, 0, FIELD(listen),
     .help = "address and port of the HTTP server; port 0 selects a free one"},
    {"socket", 's', NULL, 0, 0, FIELD(socket),
     .help = "path of the unix socket (default: traind.sock in the state folder)"},
    {"state", 's', NULL, 0, 0, FIELD(state),
     .help = "folder of the database and the runs (default: $TRAIND_STATE, else systemd's StateDirectory, else /var/lib/traind for "
     "root, else ~/.local/state/traind)"},
    {"slots", 'i', "0", 0, 4096, FIELD(jobs.slots),
     .help = "cores that jobs may use at the same time; 0 means all"},
    {"mpirun", 's', MPIRUN, 0, 0, FIELD(jobs.mpirun), .help = "program that starts the workers of a job"},
    {"worker", 's', BINDIR "/train-worker", 0, 0, FIELD(jobs.worker), .help = "the worker program"},
    {"launch_agent", 's', LAUNCH_AGENT, 0, 0, FIELD(jobs.agent),
     .help = "program, with its options, that runs a command on another host (cluster.hosts); it is called with the host and the command, and with -p PORT for jobs with a cluster.ssh_port"},
    {"cancel_grace_seconds", 'd', "10", 0, 3600, FIELD(jobs.limits.cancel_grace_seconds),
     .help = "time for the workers of a cancelled job to finish their step and write a checkpoint, in seconds; the time of three steps if that is longer", .reloads = true},
    {"priority_seconds", 'd', "3600", 1, 604800, FIELD(jobs.limits.priority_seconds),
     .help = "waiting time worth one point of priority, in seconds", .reloads = true},
    {"max_running_per_user", 'i', "0", 0, 1000000, FIELD(jobs.limits.caps.running),
     .help = "maximum number of running jobs per user on this machine; further ones wait; 0: no limit", .reloads = true},
    {"max_slots_per_user", 'i', "0", 0, 1000000, FIELD(jobs.limits.caps.slots),
     .help = "maximum number of slots in use per user; further jobs wait; 0: no limit", .reloads = true},
    {"max_queued_per_user", 'i', "0", 0, 1000000, FIELD(jobs.limits.max_queued_per_user),
     .help = "maximum number of queued jobs per user; further ones are refused with status 429; 0: no limit", .reloads = true},
    {"fair_share_weight", 'd', "0", 0, 1000, FIELD(jobs.limits.fair_share.weight),
     .help = "priority points lost by a user who accounts for all recent use of the slots, by others in proportion; 0: use does not count", .reloads = true},
    {"fair_share_half_life_hours", 'd', "168", 6, 2160, FIELD(jobs.limits.fair_share.half_life_seconds), .times = 3600,
     .help = "half-life of recorded use, in hours", .reloads = true},
    {"restart_delay_seconds", 'd', "10", 0, 600, FIELD(jobs.limits.restart_delay_seconds),
     .help = "delay before a failed job is restarted, in seconds; it doubles with each restart, up to 600", .reloads = true},
    {"keep_runs", 'i', "0", 0, 1000000000, FIELD(jobs.limits.keep_runs),
     .help = "number of finished jobs to keep; older ones are removed with their run directories; 0 keeps all", .reloads = true},
    {"keep_checkpoints", 'i', "0", 0, 1000000, FIELD(jobs.limits.keep_checkpoints),
     .help = "number of newest checkpoints to keep of a finished job; 0 keeps all that its checkpoint.keep left", .reloads = true},
    {"keep_audit_days", 'i', "730", 0, 36500, FIELD(jobs.limits.keep_audit_days),
     .help = "days to keep lines of the audit log; 0 keeps all", .reloads = true},
    {"log_limit_bytes", 'i', "0", 0, 1073741824, FIELD(jobs.limits.log_limit_bytes),
     .help = "maximum size of a worker log after its attempt has ended, in bytes; its end is kept; 0 keeps all of it", .reloads = true},
    {"stall_seconds", 'i', "300", 0, 1000000, FIELD(jobs.limits.stall_seconds),
     .help = "time without progress after which a warning names the rank responsible and the run is restarted if it cannot recover, in seconds; 0: never", .reloads = true},
    {"log_level", 'w', "info", 0, 0, FIELD(log_level), .help = "error, warning, info or debug", .reloads = true, .words = "error warning info debug"},
    {"log_format", 'w', "text", 0, 0, FIELD(log_format), .help = "text, or json: one object per line", .reloads = true, .words = "text json"},
    {"max_body_bytes", 'i', "1048576", 1024, 1048576, FIELD(max_body_bytes),
     .help = "largest request body, in bytes", .reloads = true},
    {"http_threads", 'i', "4", 1, 64, FIELD(http_threads), .help = "threads that answer requests"},
    {"streams_per_client", 'i', "256", 1, 1024, FIELD(streams.per_client),
     .help = "maximum number of open event streams per client (a token or an address)"},
    {"heartbeat_seconds", 'i', "10", 1, 15, FIELD(streams.heartbeat_seconds),
     .help = "interval of heartbeats on an idle event stream, in seconds"},
    {"web_dir", 's', PKGDATADIR "/web", 0, 0, FIELD(web_dir), .help = "folder of the dashboard files"},
    {"require_token", 'w', "yes", 0, 0, FIELD(require_token),
     .help = "yes: requests over TCP need a token, see trainctl token; no: every local user may read and submit over the loopback", .words = "no yes"},
    {"tls_certificate", 's', NULL, 0, 0, FIELD(tls_certificate),
     .help = "PEM file with the certificate of the server and its chain; with tls_key, the server uses HTTPS (default: none)"},
    {"tls_key", 's', NULL, 0, 0, FIELD(tls_key), .help = "PEM file with the private key of the certificate (default: none)"},
    {"socket_group", 's', NULL, 0, 0, FIELD(socket_group),
     .help = "group whose members may submit over the unix socket (default: none; root and the daemon's own user may do everything)"},
    {"data_roots", 's', NULL, 0, 0, FIELD(data_roots),
     .help = "folders, separated by colons, that the paths of jobs must be in (default: any folder)", .reloads = true},
    {"job_env_prefixes", 's', "OMP_ KMP_ GOMP_ OPENBLAS_ MALLOC_ OMPI_MCA_btl_ UCX_", 0, 0, FIELD(job_env_prefixes),
     .help = "prefixes, separated by spaces, of the environment variables that jobs may set (cluster.env); none: jobs may set no variables", .reloads = true},
    {"mpi_prefixes", 's', NULL, 0, 0, FIELD(mpi_prefixes),
     .help = "installation folders of Open MPI, separated by colons, that jobs may select (cluster.mpi_prefix) (default: none)", .reloads = true},
    {"max_connections", 'i', "1024", 8, 100000, FIELD(max_connections), .help = "maximum number of connections over TCP, and again over the unix socket"},
    {"connections_per_address", 'i', "512", 0, 100000, FIELD(connections_per_address),
     .help = "maximum number of TCP connections per address, which all clients of a proxy share; 0: no limit"},
    {"node_check_seconds", 'd', "60", 0, 1000000, FIELD(nodes.idle_seconds),
     .help = "idle time after which this machine is checked (train-worker --self-check), and then once a day, in seconds; 0: never", .reloads = true},
    {"node_slow_percent", 'd', "15", 1, 100, FIELD(nodes.limits.slow), .over = 100,
     .help = "percentage by which a node must be slower than its earlier checks or the median of its kind to be reported as slow", .reloads = true},
    {"node_drain_percent", 'd', "30", 0, 100, FIELD(nodes.limits.drain), .over = 100,
     .help = "percentage by which a node must be slower to be drained; 0: nodes are never drained for their speed", .reloads = true},
    {"node_drain_command", 's', PKGDATADIR "/slurm/drain-node", 0, 0, FIELD(jobs.drain_command),
     .help = "program that is called with the name of a node and the reason to drain it", .reloads = true},
    {"failure_rules", 's', NULL, 0, 0, FIELD(failure_rules),
     .help = "file with rules that give failures a label, prevent or allow restarts, and drain nodes; read again on reload (default: the built-in rules only)", .reloads = true},
    {"node_watts", 'd', "0", 0, 100000, FIELD(prices.node_watts),
     .help = "power of a node under load, in watts, for estimating the energy of jobs where it is not measured; 0: unknown", .reloads = true},
    {"price_per_kwh", 'r', "0", 0, 1000000, FIELD(prices.per_kwh), .help = "price of a kilowatt-hour; 0: unknown", .reloads = true},
    {"price_per_node_hour", 'r', "0", 0, 1000000, FIELD(prices.per_node_hour), .help = "price of a node-hour, excluding energy; 0: unknown", .reloads = true},
    {"currency", 's', NULL, 0, 0, FIELD(prices.currency), .help = "currency of these prices, for example EUR (default: none)", .reloads = true},
    {"requests_per_second", 'i', "1000", 0, 1000000, FIELD(requests_per_second),
     .help = "requests per second allowed for each token; 0: no limit", .reloads = true},
    {"public_url", 's', NULL, 0, 0, FIELD(public_url),
     .help = "address of the dashboard as its users reach it, for the links in notices (default: notices have no links)", .reloads = true},
    {"notify_rules", 's', NULL, 0, 0, FIELD(notify_rules),
     .help = "JSON file with rules for the notices of all jobs, sweeps and nodes (default: none)", .reloads = true},
    {"notify_secret_file", 's', NULL, 0, 0, FIELD(notify_secret_file),
     .help = "file with lines HOST SECRET, for signing requests to these hosts (default: none)", .reloads = true},
    {"notify_allow", 's', NULL, 0, 0, FIELD(notify_allow),
     .help = "networks, addresses and hosts, separated by spaces, that notices may be sent to although their addresses are private (default: none)", .reloads = true},
    {"notify_redirects", 'i', "0", 0, 10, FIELD(notify_redirects),
     .help = "maximum number of redirects that a notice follows", .reloads = true},
    {"notify_proxy", 's', NULL, 0, 0, FIELD(notify_proxy),
     .help = "proxy for notices, for example http://proxy:3128 (default: none)", .reloads = true},
    {"notify_ca_file", 's', NULL, 0, 0, FIELD(notify_ca_file),
     .help = "PEM file with the certificate authorities of the receivers of notices (default: those of the system)", .reloads = true},
    {"notify_sendmail", 's', "/usr/sbin/sendmail", 0, 0, FIELD(notify_sendmail),
     .help = "program that sends the mails of notices", .reloads = true},
    {"notify_from", 's', NULL, 0, 0, FIELD(notify_from),
     .help = "sender of the mails of notices (default: chosen by sendmail)", .reloads = true},
    {"notify_mail_domains", 's', NULL, 0, 0, FIELD(notify_mail_domains),
     .help = "domains, separated by spaces, of mail addresses that users may specify (default: any)", .reloads = true},
    {"notify_retry_seconds", 'i', "86400", 1, 2592000, FIELD(notify_retry_seconds),
     .help = "time after which a notice that cannot be delivered is given up, in seconds", .reloads = true},
    {"keep_notice_days", 'i', "30", 0, 36500, FIELD(keep_notice_days),
     .help = "days to keep a notice after it was delivered or given up; 0 keeps all", .reloads = true},
    {"slurm.start", 'w', "mpirun", 0, 0, FIELD(jobs.slurm.srun),
     .help = "program that starts the workers in a Slurm job: mpirun, or srun (--mpi=pmix)", .words = "mpirun srun"},
    {"slurm.account", 's', NULL, 0, 0, FIELD(jobs.slurm.account),
     .help = "Slurm account of jobs that do not set one (default: Slurm's default)"},
    {"slurm.options", 's', NULL, 0, 0, FIELD(jobs.slurm.options),
     .help = "additional sbatch options for all jobs, for example --qos=long --exclusive (default: none)"},
    {"slurm.setup", 's', NULL, 0, 0, FIELD(jobs.slurm.setup),
     .help = "shell file that each batch script sources first, for modules and variables (default: none)"},
    {"slurm.poll_seconds", 'i', "10", 1, 600, FIELD(jobs.slurm.poll_seconds),
     .help = "interval between queries of Slurm's queue, in seconds"},
    {"slurm.node_cores", 'i', "0", 0, 100000, FIELD(jobs.slurm.node_cores),
     .help = "cores of a cluster node, divided among the workers if threads_per_worker is 0; 0: query Slurm"},
};
/* clang-format on */
#define KEY_COUNT  (sizeof keys / sizeof keys[0])
#define KEY_BIT(i) ((config_keys)1 << (i))
_Static_assert(KEY_COUNT <= 8 * sizeof(config_keys), "each key needs a bit");

const struct config_key *config_key_at(size_t i)
{
    return i < KEY_COUNT ? &keys[i] : NULL;
}

static char **config_text(const struct config *c, const struct config_key *key)
{
    return (char **)(void *)((char *)c + key->offset);
}

/* Returns the value in the file's unit; whole numbers are below 2^53. */
static double config_number(const struct config *c, const struct config_key *key)
{
    const void *field = (const char *)c + key->offset;
    double value = key->kind == 'i' || key->kind == 'w' ? (double)*(const int64_t *)field
                                                        : *(const double *)field;

    return value * (double)(key->over ? key->over : 1) / (double)(key->times ? key->times : 1);
}

static void config_set_number(struct config *c, const struct config_key *key, double value)
{
    void *field = (char *)c + key->offset;

    if (key->kind == 'i' || key->kind == 'w')
        *(int64_t *)field = (int64_t)value;
    else
        *(double *)field =
            value * (double)(key->times ? key->times : 1) / (double)(key->over ? key->over : 1);
}

static int config_set_word(struct config *c, const struct config_key *key, const char *text,
                           const char *source, struct error *e)
{
    char words[128];
    size_t used = 0; /* length of words: "a, b or c" */
    int i = 0;

    for (const char *w = key->words; *w; i++) {
        size_t n = strcspn(w, " ");
        const char *rest = w[n] ? w + n + 1 : w + n;
        const char *between = !*rest ? "" : strchr(rest, ' ') ? ", " : " or ";
        if (n == strlen(text) && strncmp(w, text, n) == 0) {
            config_set_number(c, key, i);
            return 0;
        }
        used += (size_t)snprintf(words + used, sizeof words - used, "%.*s%s", (int)n, w, between);
        w = rest;
    }
    return error_set(e, ERR_USAGE, "%s: %s must be %s, not \"%s\"", source, key->name, words, text);
}

static int config_set_value(struct config *c, const struct config_key *key, const char *text,
                            const char *source, struct error *e)
{
    bool real = key->kind == 'r';
    char *end;

    if (key->kind == 'w')
        return config_set_word(c, key, text, source, e);
    if (key->kind == 's') {
        if (!*text)
            return error_set(e, ERR_USAGE, "%s: %s must not be empty", source, key->name);
        free(*config_text(c, key));
        *config_text(c, key) = xstrdup(text);
        return 0;
    }
    errno = 0;
    double value = real ? strtod(text, &end) : (double)strtoll(text, &end, 10);
    if ((errno && !real) || end == text || *end ||
        !(value >= (double)key->minimum && value <= (double)key->maximum))
        return error_set(e, ERR_USAGE, "%s: %s must be a %snumber from %lld to %lld, not \"%s\"",
                         source, key->name, real ? "" : "whole ", (long long)key->minimum,
                         (long long)key->maximum, text);
    config_set_number(c, key, value);
    return 0;
}

static int config_unknown_key(const char *name, const char *source, struct error *e)
{
#define BY_COMMANDS                                                                                \
    "jobs are submitted to Slurm with sbatch, squeue and scancel from traind's PATH (apt-get "     \
    "install "                                                                                     \
    "slurm-client)"
    static const struct {
        const char *name, *why;
    } removed[] = {
        {"slurm.via",          BY_COMMANDS                                   },
        {"slurm.restd_socket", BY_COMMANDS                                   },
        {"slurm.restd_url",    BY_COMMANDS                                   },
        {"slurm.restd_token",  BY_COMMANDS                                   },
        {"max_import_bytes",   "archives of other daemons cannot be imported"},
    };
    struct suggest nearest = {.word = name};

    for (size_t i = 0; i < sizeof removed / sizeof removed[0]; i++)
        if (strcmp(removed[i].name, name) == 0)
            return error_set(e, ERR_USAGE, "%s: %s is no longer supported: %s; remove the line",
                             source, name, removed[i].why);
    for (size_t i = 0; i < KEY_COUNT; i++)
        text_suggest(&nearest, keys[i].name);
    if (nearest.best)
        return error_set(e, ERR_USAGE, "%s: unknown key \"%s\"; did you mean \"%s\"?", source, name,
                         nearest.best);
    return error_set(e, ERR_USAGE, "%s: unknown key \"%s\"; traind.conf(5) lists them all", source,
                     name);
}

static int config_index_of(const char *name)
{
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (strcmp(keys[i].name, name) == 0)
            return (int)i;
    return -1;
}

int config_set(struct config *c, const char *name, const char *text, const char *source,
               struct error *e)
{
    int i = config_index_of(name);
    if (i < 0)
        return config_unknown_key(name, source, e);
    int status = config_set_value(c, &keys[i], text, source, e);
    if (status == 0)
        c->given |= KEY_BIT(i);
    return status;
}

struct config_reading {
    struct config *config;
    const char *path;
    config_keys outside; /* keys set before the file, which override it */
    config_keys seen;
    char bad[ERROR_TEXT_BYTES]; /* errors, one per line, as far as they fit */
    size_t bad_bytes;
};

static int config_bad_line(struct config_reading *r, const char *text)
{
    size_t prefix = strlen(r->path);

    if (strncmp(text, r->path, prefix) == 0 && strncmp(text + prefix, ": ", 2) == 0)
        text += prefix + 2;
    int n = snprintf(r->bad + r->bad_bytes, sizeof r->bad - r->bad_bytes, "%s%s",
                     r->bad_bytes ? "; " : "", text);
    r->bad_bytes =
        n < (int)(sizeof r->bad - r->bad_bytes) ? r->bad_bytes + (size_t)n : sizeof r->bad - 1;
    return 0;
}

/* Handler for libinih: returns 0 for an invalid line. */
static int config_parse_line(void *context, const char *section, const char *name,
                             const char *value)
{
    struct config_reading *r = context;
    struct config unused = {0};
    struct error e;
    int i = config_index_of(name);

    if (*section) {
        error_set(&e, ERR_USAGE, "sections are not used; write %s without [%s]", name, section);
        return config_bad_line(r, e.text);
    }
    if (i >= 0 && (r->seen & KEY_BIT(i))) {
        error_set(&e, ERR_USAGE, "duplicate key \"%s\"", name);
        return config_bad_line(r, e.text);
    }
    if (i >= 0)
        r->seen |= KEY_BIT(i);
    bool hidden = i >= 0 && (r->outside & KEY_BIT(i)); /* overridden, but still validated */
    int status = config_set(hidden ? &unused : r->config, name, value, r->path, &e);
    config_clear(&unused);
    return status ? config_bad_line(r, e.text) : 1;
}

static int config_read_file(struct config *c, const char *path, struct error *e)
{
    struct config_reading r = {.config = c, .path = path, .outside = c->given};

    errno = 0;
    int line = ini_parse(path, config_parse_line, &r);
    if (line == -1)
        return error_set_errno(e, errno, "cannot read the configuration %s", path);
    if (r.bad_bytes)
        return error_set(e, ERR_USAGE, "line %d of %s: %s", line, path, r.bad);
    if (line)
        return error_set(e, ERR_USAGE, "line %d of %s is not \"key = value\"", line, path);
    return 0;
}

static char *config_default_state(void)
{
    const char *home = getenv("HOME"), *unit = getenv("STATE_DIRECTORY");

    if (unit && *unit == '/') /* "a:b" if StateDirectory= names several */
        return xstrndup(unit, strcspn(unit, ":"));
    if (geteuid() == 0 || !home || !*home)
        return xstrdup("/var/lib/traind");
    return xasprintf("%s/.local/state/traind", home);
}

/* Makes a path absolute, because paths in jobs must not depend on where the daemon was started. The
 * folder may not exist yet. */
static void config_make_absolute(char **path)
{
    char cwd[PATH_MAX], *relative = *path;

    if (!relative || *relative == '/' || !getcwd(cwd, sizeof cwd))
        return;
    *path = xasprintf("%s/%s", cwd, relative);
    free(relative);
}

int config_load(struct config *c, const char *path, struct error *e)
{
    static const char *const installed = SYSCONFDIR "/traind.conf";
    const char *state = getenv("TRAIND_STATE");

    if (state && *state && !c->state && config_set(c, "state", state, "TRAIND_STATE", e))
        return -(int)e->code;
    if (!path && access(installed, F_OK) == 0)
        path = installed;
    if (path && config_read_file(c, path, e))
        return -(int)e->code;
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (!(c->given & KEY_BIT(i)) && keys[i].default_text &&
            config_set_value(c, &keys[i], keys[i].default_text, "default", e))
            return -(int)e->code;
    if (!c->state)
        c->state = config_default_state();
    config_make_absolute(&c->state);
    config_make_absolute(&c->socket);
    if (!c->socket)
        c->socket = xasprintf("%s/traind.sock", c->state);
    if (c->jobs.slots == 0)
        c->jobs.slots = launch_node_slots(false);
    return 0;
}

static bool config_same_value(const struct config *a, const struct config *b,
                              const struct config_key *key)
{
    if (key->kind != 's')
        return config_number(a, key) == config_number(b, key);
    const char *x = *config_text(a, key), *y = *config_text(b, key);
    return x && y ? strcmp(x, y) == 0 : x == y;
}

static void config_print_value(FILE *out, const struct config *c, const struct config_key *key)
{
    if (key->kind == 's') {
        fputs(*config_text(c, key) ? *config_text(c, key) : "not set", out);
    } else if (key->kind != 'w') {
        fprintf(out, "%.12g", config_number(c, key));
    } else {
        const char *word = key->words;
        for (double i = config_number(c, key); i > 0 && *word; i--) {
            word += strcspn(word, " ");
            word += *word == ' ';
        }
        fprintf(out, "%.*s", (int)strcspn(word, " "), word);
    }
}

static void config_copy_value(struct config *c, const struct config *from,
                              const struct config_key *key)
{
    if (key->kind == 's') {
        const char *text = *config_text(from, key);
        free(*config_text(c, key));
        *config_text(c, key) = xstrdup_or_null(text);
    } else {
        config_set_number(c, key, config_number(from, key));
    }
}

void config_copy(struct config *c, const struct config *from)
{
    for (size_t i = 0; i < KEY_COUNT; i++)
        config_copy_value(c, from, &keys[i]);
    c->given = from->given;
}

void config_inherit(struct config *fresh, const struct config *before,
                    struct config_changes *changes)
{
    size_t bytes[2];
    FILE *taken = must_alloc(open_memstream(&changes->taken, &bytes[0]));
    FILE *needs_restart = must_alloc(open_memstream(&changes->needs_restart, &bytes[1]));

    for (const struct config_key *key = keys; key < keys + KEY_COUNT; key++) {
        if (config_same_value(before, fresh, key))
            continue;
        if (!key->reloads) {
            fprintf(needs_restart, "%s%s", ftell(needs_restart) ? ", " : "", key->name);
            config_copy_value(fresh, before, key);
            continue;
        }
        fprintf(taken, "%s%s = ", ftell(taken) ? ", " : "", key->name);
        config_print_value(taken, fresh, key);
        fputs(" (was ", taken);
        config_print_value(taken, before, key);
        fputc(')', taken);
    }
    fclose(taken);
    fclose(needs_restart);
    must_alloc(changes->taken);
    must_alloc(changes->needs_restart);
}

void config_changes_clear(struct config_changes *changes)
{
    free(changes->taken);
    free(changes->needs_restart);
    *changes = (struct config_changes){0};
}

static int config_check_readable(const char *key, const char *path, struct error *e)
{
    if (access(path, R_OK) == 0)
        return 0;
    return error_set(e, ERR_USAGE, "%s: cannot read %s: %s", key, path, strerror(errno));
}

static int config_check_root(const char *path, struct error *e)
{
    struct stat st;

    if (path[0] != '/')
        return error_set(e, ERR_USAGE,
                         "data_roots must be absolute folders separated by colons, for example "
                         "/data:/scratch; \"%s\" is not an absolute path",
                         path);
    if (stat(path, &st) || !S_ISDIR(st.st_mode))
        return error_set(e, ERR_USAGE, "data_roots: folder %s does not exist", path);
    return 0;
}

static int config_check_env_prefix(const char *prefix, struct error *e)
{
    if (!job_text_right(JOB_TEXT_VARIABLE, prefix))
        return error_set(e, ERR_USAGE,
                         "job_env_prefixes must be prefixes of variable names separated by "
                         "spaces, for example OMP_ UCX_; \"%s\" is not valid",
                         prefix);
    if (job_env_is_refused(prefix))
        return error_set(e, ERR_USAGE,
                         "job_env_prefixes: variables that begin with %s are never taken "
                         "from jobs",
                         prefix);
    return 0;
}

/* The folder need not exist here, because it is on the nodes. */
static int config_check_mpi_prefix(const char *path, struct error *e)
{
    if (job_text_right(JOB_TEXT_PREFIX, path))
        return 0;
    return error_set(e, ERR_USAGE,
                     "mpi_prefixes must be folders separated by colons, and \"%s\" is not %s", path,
                     job_text_expects(JOB_TEXT_PREFIX));
}

static int config_check_items(const char *list, const char *separator,
                              int check(const char *item, struct error *e), struct error *e)
{
    char item[PATH_MAX];
    int status = 0;

    while (list && *list && !status) {
        size_t length = strcspn(list, separator);
        snprintf(item, sizeof item, "%.*s", (int)length, list);
        list += length + (list[length] != '\0');
        status = *separator == ' ' && !*item ? 0 : check(item, e);
    }
    return status;
}

int config_check(const struct config *c, struct error *e)
{
    if (!c->tls_certificate != !c->tls_key)
        return error_set(e, ERR_USAGE,
                         "TLS needs both tls_certificate and tls_key, and %s is not set",
                         c->tls_key ? "tls_certificate" : "tls_key");
    if (c->tls_key && (config_check_readable("tls_certificate", c->tls_certificate, e) ||
                       config_check_readable("tls_key", c->tls_key, e)))
        return -(int)e->code;
    if (c->socket_group && !getgrnam(c->socket_group))
        return error_set(e, ERR_USAGE, "socket_group: there is no group \"%s\"", c->socket_group);
    if ((c->jobs.slurm.setup && config_check_readable("slurm.setup", c->jobs.slurm.setup, e)) ||
        config_check_items(c->job_env_prefixes, " ", config_check_env_prefix, e) ||
        config_check_items(c->mpi_prefixes, ":", config_check_mpi_prefix, e))
        return -(int)e->code;
    return config_check_items(c->data_roots, ":", config_check_root, e);
}

void config_help(FILE *out)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        fprintf(out, "  %s%s%s\n", keys[i].name, keys[i].default_text ? " = " : "",
                keys[i].default_text ? keys[i].default_text : "");
        text_wrap(out, HELP_COLUMNS, "      ", 6, keys[i].help);
    }
}

void config_clear(struct config *c)
{
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (keys[i].kind == 's')
            free(*config_text(c, &keys[i]));
    memset(c, 0, sizeof *c);
}
