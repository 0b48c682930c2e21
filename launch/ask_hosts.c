/* traind --launch-hosts: asks the hosts, then becomes mpirun. A program of its own, as names are
 * resolved and hosts waited for. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "common/system/file.h"
#include "common/system/host.h"
#include "common/system/placement.h"
#include "common/system/spawn.h"
#include "launch/command.h"
#include "launch/hosts.h"

#define ANSWER_SECONDS 20.0 /* of a host: an agent's own limit should be shorter */
#define MOST_AT_ONCE   64   /* hosts asked at a time */
#define PER_PROBE      3    /* descriptors: two pipes and the process */
#define OTHERS         40   /* descriptors: what starting one takes, files, what is inherited */
#define LOOK_SECONDS   0.05
#define ANSWER_BYTES   16384

struct asked {
    const char *name;
    json_t *host;         /* its entry in hosts.json, borrowed */
    struct spawn probe;   /* while it is asked */
    int status;           /* of waitpid */
    char *answer, *words; /* what it printed */
    bool late;
};

struct asking {
    json_t *plan;
    struct asked *hosts;
    size_t count;
};

/* ---------------------------------------------------------------- asking */

/* Of a program of its own, which has nothing to save: the daemon shows what it printed. */
static void ask_give_up(void)
{
    fputs("traind --launch-hosts: no memory\n", stderr);
    exit(EXIT_FAILURE);
}

static char *ask_copy(const char *text)
{
    char *copy = strdup(text);

    if (!copy)
        ask_give_up();
    return copy;
}

/* The probe's command line. It finds MPI's libraries where mpirun --prefix will let the ranks find
 * them. */
static char **ask_hosts_probe_argv(const struct asking *a)
{
    char **argv = calloc(11, sizeof *argv), attempt[24];
    const char *prefix = json_get_text(a->plan, "mpi_prefix", NULL);
    size_t count = 0;
    const char *interface = json_get_text(a->plan, "interface", NULL);
    const char *words[] = {json_get_text(a->plan, "worker", NULL),  "--probe",   "--run-dir",
                           json_get_text(a->plan, "run_dir", NULL), "--attempt", attempt,
                           interface ? "--interface" : NULL,        interface};

    if (!argv)
        ask_give_up();
    snprintf(attempt, sizeof attempt, "%lld", json_get_integer(a->plan, "attempt", 0));
    if (prefix) {
        argv[count++] = ask_copy("env");
        if (asprintf(&argv[count++], "LD_LIBRARY_PATH=%s/lib", prefix) < 0)
            ask_give_up();
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0] && words[i]; i++)
        argv[count++] = ask_copy(words[i]);
    return argv;
}

/* The agent's words, the host, and the probe as one word for the shell there: as mpirun calls an
 * agent. */
static char **ask_hosts_agent_argv(const struct asking *a, const char *host, char **probe)
{
    char *agent = ask_copy(json_get_text(a->plan, "agent", NULL)), *rest = NULL;
    char **argv = calloc(strlen(agent) + 4, sizeof *argv);
    size_t count = 0;

    if (!argv)
        ask_give_up();
    for (char *w = strtok_r(agent, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
        argv[count++] = ask_copy(w);
    argv[count++] = ask_copy(host);
    argv[count] = command_quote(probe);
    if (!argv[count])
        ask_give_up();
    argv[count][strcspn(argv[count], "\n")] = '\0';
    free(agent);
    return argv;
}

static void ask_begin(const struct asking *a, struct asked *h)
{
    char **probe = ask_hosts_probe_argv(a);
    char **argv = host_is_here(h->name, true) ? NULL : ask_hosts_agent_argv(a, h->name, probe);
    char **run = argv ? argv : probe;
    struct spawn_request r = {
        .argv = run, .stream = {SPAWN_COLLECTED, SPAWN_COLLECTED},
             .limit_bytes = ANSWER_BYTES
    };
    struct error e;

    if (spawn_begin(&r, &h->probe, &e)) {
        h->probe.status = 127 << 8;
        buffer_printf(&h->probe.text[SPAWN_ERR], "%s cannot be run: %s\n", run[0], strerror(errno));
    }
    command_free(argv);
    command_free(probe);
}

/* How many have not ended. */
static size_t ask_poll(struct asked *hosts, size_t count)
{
    size_t left = 0;

    for (size_t i = 0; i < count; i++)
        left += !spawn_look(&hosts[i].probe, 0);
    return left;
}

static void ask_conclude(struct asked *h)
{
    h->late = h->probe.pid != 0;
    h->status = h->probe.status;
    h->answer = buffer_take(&h->probe.text[SPAWN_OUT], NULL);
    h->words = buffer_take(&h->probe.text[SPAWN_ERR], NULL);
    if (!h->answer || !h->words)
        ask_give_up();
    spawn_clear(&h->probe);
}

/* As many as there are descriptors for. */
static size_t ask_batch_size(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= OTHERS + PER_PROBE * MOST_AT_ONCE)
        return MOST_AT_ONCE;
    return limit.rlim_cur > OTHERS + PER_PROBE ? (limit.rlim_cur - OTHERS) / PER_PROBE : 1;
}

/* Descriptors are few (1024), hosts may be 4096: those of a batch are given back behind it. */
static void ask_batches(struct asking *a)
{
    static const struct timespec pause = {0, (long)(LOOK_SECONDS * 1e9)};
    size_t most = ask_batch_size();

    for (size_t from = 0; from < a->count; from += most) {
        size_t n = a->count - from < most ? a->count - from : most;
        double until = clock_monotonic() + ANSWER_SECONDS;
        for (size_t i = 0; i < n; i++)
            ask_begin(a, &a->hosts[from + i]);
        while (ask_poll(a->hosts + from, n) && clock_monotonic() < until)
            nanosleep(&pause, NULL);
        for (size_t i = from; i < from + n; i++)
            ask_conclude(&a->hosts[i]);
    }
}

/* ---------------------------------------------------------------- judging */

/* The last line, without control characters. */
static const char *ask_hosts_last_line(char *text)
{
    size_t length = strlen(text);

    while (length && (text[length - 1] == '\n' || text[length - 1] == '\r'))
        text[--length] = '\0';
    char *newline = strrchr(text, '\n');
    char *line = newline ? newline + 1 : text;
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    return line;
}

static void ask_hosts_set_problem(struct asked *h, json_t *words)
{
    if (!json_object_get(h->host, "problem"))
        json_object_set(h->host, "problem", words);
    json_decref(words);
}

static void ask_judge_silence(const struct asking *a, struct asked *h)
{
    int code = WIFEXITED(h->status) ? WEXITSTATUS(h->status) : -1;

    const char *line = ask_hosts_last_line(h->words);
    if (h->late)
        ask_hosts_set_problem(h, json_sprintf("does not answer within %.0f s", ANSWER_SECONDS));
    else if (code == 126 || code == 127)
        ask_hosts_set_problem(
            h, json_sprintf("cannot run %s: %.200s", json_get_text(a->plan, "worker", NULL), line));
    else
        ask_hosts_set_problem(h,
                              json_sprintf("does not answer: %.200s",
                                           *line ? line : json_get_text(a->plan, "agent", NULL)));
}

/* The answer's fields become the entry's own. */
static bool ask_hosts_take_answer(struct asked *h)
{
    json_t *answer = json_loads(ask_hosts_last_line(h->answer), 0, NULL);
    if (!json_is_string(json_object_get(answer, "machine"))) {
        json_decref(answer);
        return false;
    }
    json_object_update(h->host, answer);
    json_decref(answer);
    return true;
}

/* Against the first host that answered. */
static void ask_compare(struct asked *h, const json_t *first)
{
    static const struct {
        const char *key, *what;
    } same[] = {
        {"version", "train-worker"                      },
        {"mpi",     "Open MPI"                          },
        {"digest",  "a train-worker program with digest"},
    };

    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        if (strcmp(json_get_text(h->host, same[i].key, "?"),
                   json_get_text(first, same[i].key, "?")) != 0)
            ask_hosts_set_problem(
                h, json_sprintf("has %s %s, but host %s has %s: install the same on both",
                                same[i].what, json_get_text(h->host, same[i].key, "?"),
                                json_get_text(first, "name", "?"),
                                json_get_text(first, same[i].key, "?")));
}

/* Of a host that answered; zero where its train-worker does not say. */
static struct placement_machine ask_hosts_machine_of(const json_t *host)
{
    struct placement_machine m = {0};
    const struct {
        const char *key;
        struct placement_parts *parts;
    } kinds[] = {
        {"numa",    &m.numa   },
        {"sockets", &m.sockets},
        {"whole",   &m.whole  },
    };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const json_t *counts = json_object_get(host, kinds[i].key);
        kinds[i].parts->parts = json_integer_value(json_array_get(counts, 0));
        kinds[i].parts->cores = json_integer_value(json_array_get(counts, 1));
        kinds[i].parts->cpus = json_integer_value(json_array_get(counts, 2));
    }
    return m;
}

static struct placement_wish ask_hosts_wish_of(const struct asking *a)
{
    return (struct placement_wish){(enum job_bind)json_get_integer(a->plan, "bind", 0),
                                   json_is_true(json_object_get(a->plan, "smt")),
                                   json_get_integer(a->plan, "workers_per_node", 0),
                                   json_get_integer(a->plan, "threads", 0), 0};
}

static void ask_judge(const struct asking *a, size_t index, const json_t *first)
{
    struct asked *h = &a->hosts[index];
    struct placement_machine machine = ask_hosts_machine_of(h->host);
    struct placement_wish wish = ask_hosts_wish_of(a);
    struct error e;

    if (first)
        ask_compare(h, first);
    for (size_t i = 0; i < index; i++)
        if (strcmp(json_get_text(a->hosts[i].host, "machine", "?"),
                   json_get_text(h->host, "machine", "?")) == 0)
            ask_hosts_set_problem(h,
                                  json_sprintf("is the same machine as host %s", a->hosts[i].name));
    if (json_is_false(json_object_get(h->host, "interface")))
        ask_hosts_set_problem(h, json_sprintf("has no network interface %s (cluster.interface)",
                                              json_get_text(a->plan, "interface", NULL)));
    if (placement_check(&machine, &wish, &e))
        ask_hosts_set_problem(h, json_string(e.text));
    if (!first && json_is_false(json_object_get(h->host, "run_dir")))
        ask_hosts_set_problem(
            h, json_sprintf("cannot read %s/job.json: the first host, where rank 0 runs, "
                            "must see the state folder",
                            json_get_text(a->plan, "run_dir", NULL)));
}

static size_t ask_hosts_judge_all(struct asking *a)
{
    const json_t *first = NULL;
    size_t usable = 0;

    for (size_t i = 0; i < a->count; i++) {
        struct asked *h = &a->hosts[i];
        if (h->late || h->status || !ask_hosts_take_answer(h))
            ask_judge_silence(a, h);
        else
            ask_judge(a, i, first);
        if (json_object_get(h->host, "problem"))
            continue;
        if (!first)
            first = h->host;
        usable++;
    }
    return usable;
}

/* ---------------------------------------------------------------- what comes of it */

static int ask_hosts_write_text(const char *attempt_dir, const char *name, const char *text,
                                struct error *e)
{
    char path[PATH_MAX];

    if ((size_t)snprintf(path, sizeof path, "%s/%s", attempt_dir, name) >= sizeof path)
        return error_set(e, ERR_INVALID, "the path of %s is too long", name);
    return file_write_unsynced(path, text, strlen(text), e);
}

static int ask_hosts_write_hostfile(const struct asking *a, const char *attempt_dir,
                                    struct error *e)
{
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    long long nodes = json_get_integer(a->plan, "nodes", 0);

    if (!out)
        return error_set(e, ERR_NO_MEMORY, "no memory for the hostfile");
    for (size_t i = 0; i < a->count && nodes > 0; i++)
        if (!json_object_get(a->hosts[i].host, "problem")) {
            fprintf(out, "%s slots=%lld\n", a->hosts[i].name,
                    json_get_integer(a->plan, "workers_per_node", 0));
            nodes--;
        }
    fclose(out);
    int status = ask_hosts_write_text(attempt_dir, "hostfile", text, e);
    free(text);
    return status;
}

static void ask_report(const struct asking *a, bool enough)
{
    for (size_t i = 0; i < a->count; i++) {
        const struct asked *h = &a->hosts[i];
        long long ended = json_integer_value(json_object_get(h->host, "ended"));
        if (json_object_get(h->host, "problem"))
            fprintf(stderr, "traind: %shost %s %s\n", enough ? "not taken: " : "", h->name,
                    json_get_text(h->host, "problem", "?"));
        if (ended > 0)
            fprintf(stderr, "traind: host %s: %lld processes of an earlier attempt were ended\n",
                    h->name, ended);
    }
}

static int ask_hosts_open_plan(const char *attempt_dir, struct asking *a, struct error *e)
{
    char path[PATH_MAX];
    json_t *host;
    size_t i;

    snprintf(path, sizeof path, "%s/hosts.json", attempt_dir);
    a->plan = json_document_load(path, e);
    if (!a->plan)
        return -(int)e->code;
    json_t *hosts = json_object_get(a->plan, "hosts");
    a->count = json_array_size(hosts);
    a->hosts = xcalloc(a->count + 1, sizeof *a->hosts);
    json_array_foreach (hosts, i, host) {
        a->hosts[i].host = host;
        a->hosts[i].name = json_string_value(json_object_get(host, "name"));
    }
    return 0;
}

static struct placement_machine ask_hosts_least_machine(const struct asking *a)
{
    struct placement_machine least = {0};
    bool any = false;
    long long nodes = json_get_integer(a->plan, "nodes", 0);

    for (size_t i = 0; i < a->count && nodes > 0; i++) {
        if (json_object_get(a->hosts[i].host, "problem"))
            continue;
        struct placement_machine m = ask_hosts_machine_of(a->hosts[i].host);
        least = any ? placement_least(least, m) : m;
        any = true;
        nodes--;
    }
    return least;
}

/* Where the ranks go was written before the hosts were asked. */
static void ask_hosts_place_ranks(const struct asking *a, char **argv, struct placement *p)
{
    struct placement_machine least = ask_hosts_least_machine(a);
    struct placement_wish wish = ask_hosts_wish_of(a);

    for (size_t i = 0; i < a->count && !wish.mpi; i++)
        wish.mpi = placement_mpi_version(json_get_text(a->hosts[i].host, "mpi", ""));
    *p = placement_choose(&least, &wish);
    for (; argv[0] && argv[1]; argv++)
        if (strcmp(argv[0], "--map-by") == 0 && argv[2] && argv[3]) {
            argv[1] = p->map_by;
            argv[3] = (char *)p->bind_to; /* of --bind-to */
            return;
        }
}

int hosts_launch(char **argv)
{
    struct placement placement;
    const char *attempt_dir = argv[0];
    struct asking a = {0};
    struct error e;
    int status = ask_hosts_open_plan(attempt_dir, &a, &e);

    if (!status) {
        ask_batches(&a);
        bool enough = ask_hosts_judge_all(&a) >= (size_t)json_get_integer(a.plan, "nodes", 0);
        json_object_set_new(a.plan, "asked", json_true());
        ask_report(&a, enough);
        char *text = json_dumps(a.plan, JSON_INDENT(1));
        status = ask_hosts_write_text(attempt_dir, "hosts.json", text ? text : "", &e);
        free(text);
        if (!status && !enough)
            return HOSTS_MISSING_EXIT;
    }
    if (!status)
        status = ask_hosts_write_hostfile(&a, attempt_dir, &e);
    ask_hosts_place_ranks(&a, argv + 1, &placement);
    if (status)
        fprintf(stderr, "traind: %s\n", e.text);
    else
        execv(argv[1], argv + 1);
    if (!status)
        fprintf(stderr, "traind: cannot run %s: %s\n", argv[1], strerror(errno));
    return status ? 1 : 127;
}
