#include "daemon/config.h"

#include <errno.h>
#include <grp.h>
#include <ini.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/job/job_env.h"
#include "common/job/job_text.h"
#include "common/xalloc.h"
#include "common/text/suggest.h"
#include "common/system/install_paths.h"
#include "launch/launch.h"

#define FIELD(name) offsetof(struct config, name)

/* clang-format off */
static const struct config_key keys[] = {
    {"listen", 's', "127.0.0.1:7077", 0, 0, FIELD(listen),
     .help = "address and port of the HTTP server; port 0 takes a free one"},
    {"socket", 's', NULL, 0, 0, FIELD(socket),
     .help = "path of the unix socket (default: traind.sock in the state folder)"},
    {"state", 's', NULL, 0, 0, FIELD(state),
     .help = "folder of the database and the runs (default: $TRAIND_STATE, else systemd's StateDirectory, else /var/lib/traind for "
     "root, else ~/.local/state/traind)"},
    {"slots", 'i', "0", 0, 4096, FIELD(slots),
     .help = "cores that jobs may use at the same time; 0 means all"},
    {"mpirun", 's', MPIRUN, 0, 0, FIELD(mpirun), .help = "program that starts the workers of a job"},
    {"worker", 's', BINDIR "/train-worker", 0, 0, FIELD(worker), .help = "the worker program"},
    {"launch_agent", 's', LAUNCH_AGENT, 0, 0, FIELD(launch_agent),
     .help = "program, with its options, that runs a command on another host (cluster.hosts); it is called with the host and the command, and with -p PORT for jobs with a cluster.ssh_port"},
    {"cancel_grace_seconds", 'i', "10", 0, 3600, FIELD(cancel_grace_seconds),
     .help = "time that the workers of a cancelled job have to finish their step and write a checkpoint, in seconds; three steps if that is longer", .reloads = true},
    {"priority_seconds", 'i', "3600", 1, 604800, FIELD(priority_seconds),
     .help = "waiting time that is worth one point of priority, in seconds", .reloads = true},
    {"max_running_per_user", 'i', "0", 0, 1000000, FIELD(max_running_per_user),
     .help = "maximum number of running jobs per user on this machine; further ones wait; 0: no limit", .reloads = true},
    {"max_slots_per_user", 'i', "0", 0, 1000000, FIELD(max_slots_per_user),
     .help = "maximum number of slots in use per user; further jobs wait; 0: no limit", .reloads = true},
    {"max_queued_per_user", 'i', "0", 0, 1000000, FIELD(max_queued_per_user),
     .help = "maximum number of queued jobs per user; further ones are refused with status 429; 0: no limit", .reloads = true},
    {"fair_share_weight", 'i', "0", 0, 1000, FIELD(fair_share_weight),
     .help = "points of priority that a user with all of the recent use of the slots loses, others in proportion; 0: use does not count", .reloads = true},
    {"fair_share_half_life_hours", 'i', "168", 6, 2160, FIELD(fair_share_half_life_hours),
     .help = "time after which use counts half, in hours", .reloads = true},
    {"restart_delay_seconds", 'i', "10", 0, 600, FIELD(restart_delay_seconds),
     .help = "delay before a failed job is restarted, in seconds; it doubles with each restart, up to 600", .reloads = true},
    {"keep_runs", 'i', "0", 0, 1000000000, FIELD(keep_runs),
     .help = "number of finished jobs to keep; older ones are removed with their run directories; 0 keeps all", .reloads = true},
    {"keep_checkpoints", 'i', "0", 0, 1000000, FIELD(keep_checkpoints),
     .help = "number of newest checkpoints to keep of a finished job; 0 keeps those that its checkpoint.keep kept", .reloads = true},
    {"keep_audit_days", 'i', "730", 0, 36500, FIELD(keep_audit_days),
     .help = "days to keep a line of the audit log; 0 keeps all", .reloads = true},
    {"log_limit_bytes", 'i', "0", 0, 1073741824, FIELD(log_limit_bytes),
     .help = "maximum size of a worker log after its attempt has ended, in bytes; the end is kept; 0 keeps all of it", .reloads = true},
    {"stall_seconds", 'i', "300", 0, 1000000, FIELD(stall_seconds),
     .help = "time without progress after which a warning names the rank that is the cause, and the run is restarted if it cannot recover, in seconds; 0: never", .reloads = true},
    {"log_level", 'w', "info", 0, 0, FIELD(log_level), .help = "error, warning, info or debug", .reloads = true, .words = "error warning info debug"},
    {"log_format", 'w', "text", 0, 0, FIELD(log_format), .help = "text, or json: one object per line", .reloads = true, .words = "text json"},
    {"max_body_bytes", 'i', "1048576", 1024, 1048576, FIELD(max_body_bytes),
     .help = "largest request body, in bytes", .reloads = true},
    {"http_threads", 'i', "4", 1, 64, FIELD(http_threads), .help = "threads that answer requests"},
    {"streams_per_client", 'i', "256", 1, 1024, FIELD(streams_per_client),
     .help = "maximum number of open event streams per client (a token or an address)"},
    {"heartbeat_seconds", 'i', "10", 1, 15, FIELD(heartbeat_seconds),
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
    {"node_check_seconds", 'i', "60", 0, 1000000, FIELD(node_check_seconds),
     .help = "idle time after which this machine is checked (train-worker --self-check), and then once a day, in seconds; 0: never", .reloads = true},
    {"node_slow_percent", 'i', "15", 1, 100, FIELD(node_slow_percent),
     .help = "percentage by which a node must be slower than its earlier checks or the median of its kind to be reported as slow", .reloads = true},
    {"node_drain_percent", 'i', "30", 0, 100, FIELD(node_drain_percent),
     .help = "percentage by which a node must be slower to be drained; 0: nodes are never drained for their speed", .reloads = true},
    {"node_drain_command", 's', PKGDATADIR "/slurm/drain-node", 0, 0, FIELD(node_drain_command),
     .help = "program that is called with the name of a node and the reason to drain it", .reloads = true},
    {"failure_rules", 's', NULL, 0, 0, FIELD(failure_rules),
     .help = "file with rules that give failures a label, prevent or allow restarts, and drain nodes; read again on reload (default: the built-in rules only)", .reloads = true},
    {"node_watts", 'i', "0", 0, 100000, FIELD(node_watts),
     .help = "power of a node under load, in watts, from which the energy of jobs is estimated where it is not measured; 0: not known", .reloads = true},
    {"price_per_kwh", 'r', "0", 0, 1000000, FIELD(price_per_kwh), .help = "price of a kilowatt-hour; 0: not known", .reloads = true},
    {"price_per_node_hour", 'r', "0", 0, 1000000, FIELD(price_per_node_hour), .help = "price of one node-hour, excluding energy; 0: not known", .reloads = true},
    {"currency", 's', NULL, 0, 0, FIELD(currency), .help = "name of the currency of these prices, as EUR (default: none)", .reloads = true},
    {"requests_per_second", 'i', "1000", 0, 1000000, FIELD(requests_per_second),
     .help = "requests per second allowed for each token; 0: no limit", .reloads = true},
    {"public_url", 's', NULL, 0, 0, FIELD(public_url),
     .help = "address of the dashboard as its users reach it, for the links in notices (default: notices have no links)", .reloads = true},
    {"notify_rules", 's', NULL, 0, 0, FIELD(notify_rules),
     .help = "JSON file with rules for the notices of all jobs, sweeps and nodes (default: none)", .reloads = true},
    {"notify_secret_file", 's', NULL, 0, 0, FIELD(notify_secret_file),
     .help = "file with lines HOST SECRET, that requests to these hosts are signed with (default: none)", .reloads = true},
    {"notify_allow", 's', NULL, 0, 0, FIELD(notify_allow),
     .help = "networks, addresses and hosts, separated by spaces, that notices may be sent to although their addresses are private (default: none)", .reloads = true},
    {"notify_redirects", 'i', "0", 0, 10, FIELD(notify_redirects),
     .help = "maximum number of redirects that a notice follows", .reloads = true},
    {"notify_proxy", 's', NULL, 0, 0, FIELD(notify_proxy),
     .help = "proxy for notices, as in http://proxy:3128 (default: none)", .reloads = true},
    {"notify_ca_file", 's', NULL, 0, 0, FIELD(notify_ca_file),
     .help = "PEM file with the certificate authorities of the receivers of notices (default: those of the system)", .reloads = true},
    {"notify_sendmail", 's', "/usr/sbin/sendmail", 0, 0, FIELD(notify_sendmail),
     .help = "program that sends the mails of notices", .reloads = true},
    {"notify_from", 's', NULL, 0, 0, FIELD(notify_from),
     .help = "sender of the mails of notices (default: chosen by sendmail)", .reloads = true},
    {"notify_mail_domains", 's', NULL, 0, 0, FIELD(notify_mail_domains),
     .help = "domains, separated by spaces, that the mails users ask for may go to (default: any)", .reloads = true},
    {"notify_retry_seconds", 'i', "86400", 1, 2592000, FIELD(notify_retry_seconds),
     .help = "time after which a notice that cannot be delivered is given up, in seconds", .reloads = true},
    {"keep_notice_days", 'i', "30", 0, 36500, FIELD(keep_notice_days),
     .help = "days to keep a notice after it was delivered or given up; 0 keeps all", .reloads = true},
    {"slurm.start", 'w', "mpirun", 0, 0, FIELD(slurm_start),
     .help = "program that starts the workers in a Slurm job: mpirun, or srun (--mpi=pmix)", .words = "mpirun srun"},
    {"slurm.account", 's', NULL, 0, 0, FIELD(slurm_account),
     .help = "Slurm account of jobs that do not set one (default: that of Slurm)"},
    {"slurm.options", 's', NULL, 0, 0, FIELD(slurm_options),
     .help = "additional sbatch options for all jobs, as in --qos=long --exclusive (default: none)"},
    {"slurm.setup", 's', NULL, 0, 0, FIELD(slurm_setup),
     .help = "shell file that each batch script sources first, for modules and variables (default: none)"},
    {"slurm.poll_seconds", 'i', "10", 1, 600, FIELD(slurm_poll_seconds),
     .help = "interval between queries of the queue of Slurm, in seconds"},
    {"slurm.node_cores", 'i', "0", 0, 100000, FIELD(slurm_node_cores),
     .help = "cores of a cluster node, divided among the workers if threads_per_worker is 0; 0: ask Slurm"},
};
/* clang-format on */
#define KEY_COUNT  (sizeof keys / sizeof keys[0])
#define KEY_BIT(i) ((config_keys)1 << (i))
_Static_assert(KEY_COUNT <= 8 * sizeof(config_keys), "each key has its bit");

const struct config_key *config_key_at(size_t i)
{
    return i < KEY_COUNT ? &keys[i] : NULL;
}

static int64_t *config_number(const struct config *c, const struct config_key *key)
{
    return (int64_t *)(void *)((char *)c + key->offset);
}

static char **config_text(const struct config *c, const struct config_key *key)
{
    return (char **)(void *)((char *)c + key->offset);
}

/* The index of text among space-separated words, -1: it is none of them. */
static int config_word_index(const char *words, const char *text)
{
    size_t length = strlen(text);

    for (int i = 0; *words; i++) {
        size_t n = strcspn(words, " ");
        if (n == length && strncmp(words, text, n) == 0)
            return i;
        words += n + (words[n] == ' ');
    }
    return -1;
}

static int config_set_word(struct config *c, const struct config_key *key, const char *text,
                           const char *source, struct error *e)
{
    int i = config_word_index(key->words, text);
    char words[128];

    if (i >= 0) {
        *config_number(c, key) = i;
        return 0;
    }
    /* "a, b or c" */
    size_t used = 0;
    for (const char *w = key->words; *w && used < sizeof words - 1;) {
        size_t n = strcspn(w, " ");
        const char *rest = w[n] ? w + n + 1 : w + n;
        const char *between = !*rest ? "" : strchr(rest, ' ') ? ", " : " or ";
        used += (size_t)snprintf(words + used, sizeof words - used, "%.*s%s", (int)n, w, between);
        w = rest;
    }
    return error_set(e, ERR_USAGE, "%s: %s must be %s, not \"%s\"", source, key->name, words, text);
}

static int config_set_number(struct config *c, const struct config_key *key, const char *text,
                             const char *source, struct error *e)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);

    if (errno || end == text || *end || value < key->minimum || value > key->maximum)
        return error_set(e, ERR_USAGE,
                         "%s: %s must be a whole number from %lld to %lld, not \"%s\"", source,
                         key->name, (long long)key->minimum, (long long)key->maximum, text);
    *config_number(c, key) = value;
    return 0;
}

static double *config_real(const struct config *c, const struct config_key *key)
{
    return (double *)(void *)((char *)c + key->offset);
}

static int config_set_real(struct config *c, const struct config_key *key, const char *text,
                           const char *source, struct error *e)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !(value >= (double)key->minimum && value <= (double)key->maximum))
        return error_set(e, ERR_USAGE, "%s: %s must be a number from %lld to %lld, not \"%s\"",
                         source, key->name, (long long)key->minimum, (long long)key->maximum, text);
    *config_real(c, key) = value;
    return 0;
}

static int config_set_text(struct config *c, const struct config_key *key, const char *text,
                           const char *source, struct error *e)
{
    if (!*text)
        return error_set(e, ERR_USAGE, "%s: %s must not be empty", source, key->name);
    char *copy = xstrdup(text);
    free(*config_text(c, key));
    *config_text(c, key) = copy;
    return 0;
}

static int config_set_value(struct config *c, const struct config_key *key, const char *text,
                            const char *source, struct error *e)
{
    if (key->kind == 'w')
        return config_set_word(c, key, text, source, e);
    if (key->kind == 'r')
        return config_set_real(c, key, text, source, e);
    return key->kind == 'i' ? config_set_number(c, key, text, source, e)
                            : config_set_text(c, key, text, source, e);
}

static int config_unknown_key(const char *name, const char *source, struct error *e)
{
#define BY_COMMANDS                                                                                \
    "jobs go to Slurm by sbatch, squeue and scancel, from traind's PATH (apt-get install "         \
    "slurm-client)"
    static const struct {
        const char *name, *why;
    } removed[] = {
        {"slurm.via",          BY_COMMANDS                                 },
        {"slurm.restd_socket", BY_COMMANDS                                 },
        {"slurm.restd_url",    BY_COMMANDS                                 },
        {"slurm.restd_token",  BY_COMMANDS                                 },
        {"max_import_bytes",   "archives of other daemons are not imported"},
    };
    struct suggest nearest = {.word = name};

    for (size_t i = 0; i < sizeof removed / sizeof removed[0]; i++)
        if (strcmp(removed[i].name, name) == 0)
            return error_set(e, ERR_USAGE, "%s: %s is no longer supported: %s; remove the line",
                             source, name, removed[i].why);
    for (size_t i = 0; i < KEY_COUNT; i++)
        suggest_offer(&nearest, keys[i].name);
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

/* ---------------------------------------------------------------- the file */

struct reading {
    struct config *config;
    const char *path;
    config_keys outside; /* keys given before the file, which win over it */
    config_keys seen;
    char bad[ERROR_TEXT_BYTES]; /* what is wrong, one a line, as far as it fits */
    size_t bad_bytes;
};

static int config_bad_line(struct reading *r, const char *text)
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

/* libinih's handler: returns 0 for a bad line; ini_parse reads on, and returns the first one's
 * number. */
static int config_parse_line(void *context, const char *section, const char *name,
                             const char *value)
{
    struct reading *r = context;
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
    bool hidden = i >= 0 && (r->outside & KEY_BIT(i)); /* still checked */
    int status = config_set(hidden ? &unused : r->config, name, value, r->path, &e);
    config_clear(&unused);
    return status ? config_bad_line(r, e.text) : 1;
}

static int config_read_file(struct config *c, const char *path, struct error *e)
{
    struct reading r = {.config = c, .path = path, .outside = c->given};

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

/* ---------------------------------------------------------------- defaults */

/* systemd names the folder of StateDirectory=, "a:b" where there are several. */
static char *config_default_state(void)
{
    const char *home = getenv("HOME"), *unit = getenv("STATE_DIRECTORY");
    char *path = NULL;

    if (unit && *unit == '/')
        return strndup(unit, strcspn(unit, ":"));
    if (geteuid() == 0 || !home || !*home)
        return strdup("/var/lib/traind");
    if (asprintf(&path, "%s/.local/state/traind", home) < 0)
        return NULL;
    return path;
}

/* The folder may not exist yet; jobs' paths must not depend on where the daemon was started. */
static char *config_make_absolute(char *path)
{
    char cwd[PATH_MAX], *full = NULL;

    if (!path || *path == '/' || !getcwd(cwd, sizeof cwd))
        return path;
    if (asprintf(&full, "%s/%s", cwd, path) < 0)
        return path;
    free(path);
    return full;
}

static int config_fill_defaults(struct config *c, struct error *e)
{
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (!(c->given & KEY_BIT(i)) && keys[i].default_text &&
            config_set_value(c, &keys[i], keys[i].default_text, "default", e))
            return -(int)e->code;
    if (!c->state)
        c->state = config_default_state();
    c->state = config_make_absolute(c->state);
    c->socket = config_make_absolute(c->socket);
    if (!c->socket && c->state && asprintf(&c->socket, "%s/traind.sock", c->state) < 0)
        c->socket = NULL;
    if (!c->state || !c->socket)
        return error_set(e, ERR_NO_MEMORY, "no memory for the configuration");
    if (c->slots == 0)
        c->slots = launch_node_slots(false);
    return 0;
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
    return config_fill_defaults(c, e);
}

/* ---------------------------------------------------------------- reloading and checking */

static bool config_same_value(const struct config *a, const struct config *b,
                              const struct config_key *key)
{
    if (key->kind == 'r')
        return *config_real(a, key) == *config_real(b, key);
    if (key->kind != 's')
        return *config_number(a, key) == *config_number(b, key);
    const char *x = *config_text(a, key), *y = *config_text(b, key);
    return x && y ? strcmp(x, y) == 0 : x == y;
}

/* As it would stand in the file. */
static void config_print_value(FILE *out, const struct config *c, const struct config_key *key)
{
    if (key->kind == 's') {
        fputs(*config_text(c, key) ? *config_text(c, key) : "not set", out);
    } else if (key->kind == 'r') {
        fprintf(out, "%.12g", *config_real(c, key));
    } else if (key->kind == 'i') {
        fprintf(out, "%lld", (long long)*config_number(c, key));
    } else {
        const char *word = key->words;
        for (int64_t i = *config_number(c, key); i > 0 && *word; i--) {
            word += strcspn(word, " ");
            word += *word == ' ';
        }
        fprintf(out, "%.*s", (int)strcspn(word, " "), word);
    }
}

static int config_copy_value(struct config *c, const struct config *from,
                             const struct config_key *key)
{
    if (key->kind != 's') {
        *config_number(c, key) = *config_number(from, key);
        return 0;
    }
    char *text = *config_text(from, key) ? strdup(*config_text(from, key)) : NULL;
    if (!text && *config_text(from, key))
        return -1;
    free(*config_text(c, key));
    *config_text(c, key) = text;
    return 0;
}

static int config_inherit_value(struct config *fresh, const struct config *before,
                                const struct config_key *key, FILE *taken, FILE *needs_restart)
{
    if (config_same_value(before, fresh, key))
        return 0;
    if (!key->reloads) {
        fprintf(needs_restart, "%s%s", ftell(needs_restart) ? ", " : "", key->name);
        return config_copy_value(fresh, before, key);
    }
    fprintf(taken, "%s%s = ", ftell(taken) ? ", " : "", key->name);
    config_print_value(taken, fresh, key);
    fputs(" (was ", taken);
    config_print_value(taken, before, key);
    fputc(')', taken);
    return 0;
}

int config_inherit(struct config *fresh, const struct config *before,
                   struct config_changes *changes, struct error *e)
{
    size_t bytes[2];
    *changes = (struct config_changes){0};
    FILE *taken = open_memstream(&changes->taken, &bytes[0]);
    FILE *needs_restart = open_memstream(&changes->needs_restart, &bytes[1]);
    int status = taken && needs_restart ? 0 : -1;

    for (size_t i = 0; i < KEY_COUNT && !status; i++)
        status = config_inherit_value(fresh, before, &keys[i], taken, needs_restart);
    if (taken && fclose(taken))
        status = -1;
    if (needs_restart && fclose(needs_restart))
        status = -1;
    return status ? error_set(e, ERR_NO_MEMORY, "no memory for the settings") : 0;
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

static int config_check_roots(const char *roots, struct error *e)
{
    char path[PATH_MAX];

    for (const char *at = roots; *at; at += strcspn(at, ":"), at += *at == ':') {
        struct stat st;
        snprintf(path, sizeof path, "%.*s", (int)strcspn(at, ":"), at);
        if (path[0] != '/')
            return error_set(e, ERR_USAGE,
                             "data_roots must be absolute folders separated by colons, for example "
                             "/data:/scratch; \"%s\" is not an absolute path",
                             path);
        if (stat(path, &st) || !S_ISDIR(st.st_mode))
            return error_set(e, ERR_USAGE, "data_roots: folder %s does not exist", path);
    }
    return 0;
}

/* A prefix that takes in what no job may set is a mistake: "LD_" would never work. */
static int config_check_prefixes(const char *prefixes, struct error *e)
{
    char prefix[JOB_ENV_NAME_BYTES];

    for (const char *at = prefixes; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        snprintf(prefix, sizeof prefix, "%.*s", (int)strcspn(at, " "), at);
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
    }
    return 0;
}

/* They need not be here: they are folders of the nodes. */
static int config_check_mpi_prefixes(const char *prefixes, struct error *e)
{
    char path[PATH_MAX];

    for (const char *at = prefixes; at && *at; at += strcspn(at, ":"), at += *at == ':') {
        snprintf(path, sizeof path, "%.*s", (int)strcspn(at, ":"), at);
        if (!job_text_right(JOB_TEXT_PREFIX, path))
            return error_set(e, ERR_USAGE,
                             "mpi_prefixes must be folders with colons between, and \"%s\" is "
                             "not %s",
                             path, job_text_expects(JOB_TEXT_PREFIX));
    }
    return 0;
}

static int config_check_slurm(const struct config *c, struct error *e)
{
    return c->slurm_setup ? config_check_readable("slurm.setup", c->slurm_setup, e) : 0;
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
        return error_set(e, ERR_USAGE, "socket_group: no group \"%s\"", c->socket_group);
    if (config_check_slurm(c, e) || config_check_prefixes(c->job_env_prefixes, e) ||
        config_check_mpi_prefixes(c->mpi_prefixes, e))
        return -(int)e->code;
    return c->data_roots ? config_check_roots(c->data_roots, e) : 0;
}

#define HELP_COLUMNS 78
#define HELP_INDENT  6

static void config_print_wrapped(FILE *out, const char *words)
{
    int column = fprintf(out, "%*s", HELP_INDENT - 1, "");

    while (*words) {
        int length = (int)strcspn(words, " ");
        if (column + 1 + length > HELP_COLUMNS)
            column = fprintf(out, "\n%*s", HELP_INDENT - 1, "") - 1;
        column += fprintf(out, " %.*s", length, words);
        words += length + (words[length] == ' ');
    }
    fputc('\n', out);
}

void config_help(FILE *out)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        fprintf(out, "  %s%s%s\n", keys[i].name, keys[i].default_text ? " = " : "",
                keys[i].default_text ? keys[i].default_text : "");
        config_print_wrapped(out, keys[i].help);
    }
}

void config_clear(struct config *c)
{
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (keys[i].kind == 's')
            free(*config_text(c, &keys[i]));
    memset(c, 0, sizeof *c);
}
