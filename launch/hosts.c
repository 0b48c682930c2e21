#include "launch/hosts.h"

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
#include "common/system/file.h"
#include "common/system/host.h"
#include "common/system/placement.h"
#include "common/system/spawn.h"
#include "common/xalloc.h"
#include "launch/command.h"

static json_t *hosts_entries_of(const struct job_spec *spec)
{
    json_t *list = json_array();

    for (size_t i = 0; i < spec->cluster.host_count; i++) {
        struct host host;
        host_parse(spec->cluster.hosts[i], &host);
        json_array_append_new(
            list, json_pack("{s:s, s:s}", "entry", spec->cluster.hosts[i], "name", host.name));
    }
    return list;
}

static int hosts_write_text(const char *attempt_dir, const char *name, char *text, struct error *e)
{
    char path[PATH_MAX];
    int status = file_path(path, e, "%s/%s", attempt_dir, name);

    if (!status)
        status = file_write_unsynced(path, must_alloc(text), strlen(text), e);
    free(text);
    return status;
}

int hosts_write(const struct launch_request *r, const char *attempt_dir, struct error *e)
{
    int64_t workers = r->spec->cluster.workers_per_node;
    char *agent = command_agent(r);
    json_t *plan = json_pack(
        "{s:s, s:s?, s:s?, s:s, s:s, s:I, s:I, s:I, s:I, s:i, s:b, s:o}", "agent", agent,
        "interface", r->spec->cluster.interface, "mpi_prefix", r->spec->cluster.mpi_prefix,
        "worker", r->worker, "run_dir", r->run_dir, "attempt", (json_int_t)r->attempt, "nodes",
        (json_int_t)r->spec->cluster.nodes, "workers_per_node", (json_int_t)workers, "threads",
        (json_int_t)r->threads, "bind", (int)r->bind, "smt", (int)r->spec->cluster.smt, "hosts",
        hosts_entries_of(r->spec));
    int status = hosts_write_text(attempt_dir, "hosts.json", json_dumps(plan, JSON_INDENT(1)), e);

    json_decref(plan);
    free(agent);
    return status;
}

static json_t *hosts_load(const char *attempt_dir, struct error *e)
{
    char path[PATH_MAX];

    return file_path(path, e, "%s/hosts.json", attempt_dir) ? NULL : json_document_load(path, e);
}

/* Appends a problem such as "host n2 does not answer: ..."; only the first few are listed. */
static void hosts_add_problem(FILE *out, size_t count, const char *name, const char *problem)
{
    if (count < 8)
        fprintf(out, "%shost %s %s", count ? "; " : "", name, problem);
    else if (count == 8)
        fputs("; and others", out);
}

bool hosts_read(const char *attempt_dir, struct hosts_found *found)
{
    struct error e;
    json_t *plan = hosts_load(attempt_dir, &e), *hosts = json_object_get(plan, "hosts"), *host;
    size_t i, bytes, count = json_array_size(hosts);

    *found = (struct hosts_found){0};
    if (count == 0 || !json_object_get(plan, "asked")) {
        json_decref(plan);
        return false;
    }
    FILE *out = must_alloc(open_memstream(&found->problems, &bytes));
    found->usable = xcalloc(count + 1, sizeof *found->usable);
    json_array_foreach (hosts, i, host) {
        const char *problem = json_string_value(json_object_get(host, "problem"));
        const char *entry = json_string_value(json_object_get(host, "entry"));
        const char *name = json_string_value(json_object_get(host, "name"));
        if (problem && name)
            hosts_add_problem(out, found->problem_count++, name, problem);
        if (!problem && entry)
            found->usable[found->usable_count++] = xstrdup(entry);
    }
    fclose(out);
    json_decref(plan);
    return true;
}

void hosts_found_clear(struct hosts_found *found)
{
    for (size_t i = 0; i < found->usable_count; i++)
        free(found->usable[i]);
    free(found->usable);
    free(found->problems);
    *found = (struct hosts_found){0};
}

char *hosts_name_of(const char *attempt_dir, const char *machine_host)
{
    struct error e;
    json_t *plan = hosts_load(attempt_dir, &e), *hosts = json_object_get(plan, "hosts"), *host;
    char *name = NULL;
    size_t i;

    json_array_foreach (hosts, i, host) {
        const char *own = json_string_value(json_object_get(host, "host"));
        const char *its = json_string_value(json_object_get(host, "name"));
        if (!name && own && its && strcmp(own, machine_host) == 0)
            name = xstrdup(its);
    }
    json_decref(plan);
    return name;
}

bool hosts_read_taken(const char *attempt_dir, struct hosts_taken *taken)
{
    struct error e;
    json_t *plan = hosts_load(attempt_dir, &e), *hosts = json_object_get(plan, "hosts"), *host;
    json_int_t nodes = json_integer_value(json_object_get(plan, "nodes"));
    size_t i, capacity = json_array_size(hosts); /* not nodes: workers can write the file */

    *taken = (struct hosts_taken){0};
    taken->names = xcalloc(capacity + 1, sizeof *taken->names);
    taken->machines = xcalloc(capacity + 1, sizeof *taken->machines);
    json_array_foreach (hosts, i, host) {
        const char *machine = json_string_value(json_object_get(host, "host"));
        const char *name = json_string_value(json_object_get(host, "name"));
        bool used = machine && name && !json_object_get(host, "problem") &&
                    (json_int_t)taken->count < nodes;
        if (!used)
            continue;
        taken->names[taken->count] = xstrdup(name);
        taken->machines[taken->count++] = xstrdup(machine);
    }
    json_decref(plan);
    if (taken->count > 0)
        return true;
    hosts_taken_clear(taken);
    return false;
}

void hosts_taken_clear(struct hosts_taken *taken)
{
    for (size_t i = 0; i < taken->count; i++) {
        free(taken->names[i]);
        free(taken->machines[i]);
    }
    free(taken->names);
    free(taken->machines);
    *taken = (struct hosts_taken){0};
}

/* ---- traind --launch-hosts: probes the hosts, then becomes mpirun. This is a separate process,
 * because resolving names and waiting for hosts can take long. */

#define ANSWER_SECONDS 20.0 /* per host; an agent's own limit should be shorter */
#define MAX_PARALLEL   64   /* hosts probed at the same time */
#define PER_PROBE      3    /* descriptors: two pipes and the process */
#define OTHERS         40   /* descriptors for starting a probe, files, and inherited ones */
#define LOOK_SECONDS   0.05
#define ANSWER_BYTES   16384

struct asked {
    const char *name;
    json_t *host;         /* its entry in hosts.json, borrowed */
    struct spawn probe;   /* while it runs */
    int status;           /* as returned by waitpid */
    char *answer, *words; /* output of the probe */
    bool late;
};

struct asking {
    json_t *plan;
    struct asked *hosts;
    size_t count;
};

/* Returns the probe's command line, with the library path that mpirun --prefix gives the ranks. */
static char **hosts_probe_argv(const struct asking *a)
{
    char **argv = xcalloc(11, sizeof *argv), attempt[24];
    const char *prefix = json_get_text(a->plan, "mpi_prefix", NULL);
    size_t count = 0;
    const char *interface = json_get_text(a->plan, "interface", NULL);
    const char *words[] = {json_get_text(a->plan, "worker", NULL),  "--probe",   "--run-dir",
                           json_get_text(a->plan, "run_dir", NULL), "--attempt", attempt,
                           interface ? "--interface" : NULL,        interface};

    snprintf(attempt, sizeof attempt, "%lld", json_get_integer(a->plan, "attempt", 0));
    if (prefix) {
        argv[count++] = xstrdup("env");
        argv[count++] = xasprintf("LD_LIBRARY_PATH=%s/lib", prefix);
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0] && words[i]; i++)
        argv[count++] = xstrdup(words[i]);
    return argv;
}

/* Returns the agent's command, the host, and the probe as a single argument for the remote shell,
 * like mpirun's calls of an agent. */
static char **hosts_agent_argv(const struct asking *a, const char *host, char **probe)
{
    char *agent = xstrdup(json_get_text(a->plan, "agent", NULL)), *rest = NULL;
    char **argv = xcalloc(strlen(agent) + 4, sizeof *argv);
    size_t count = 0;

    for (char *w = strtok_r(agent, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
        argv[count++] = xstrdup(w);
    argv[count++] = xstrdup(host);
    argv[count] = command_quote(probe);
    argv[count][strcspn(argv[count], "\n")] = '\0';
    free(agent);
    return argv;
}

static void hosts_ask_begin(const struct asking *a, struct asked *h)
{
    char **probe = hosts_probe_argv(a);
    char **argv = host_is_here(h->name, true) ? NULL : hosts_agent_argv(a, h->name, probe);
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

static size_t hosts_ask_poll(struct asked *hosts, size_t count)
{
    size_t left = 0;

    for (size_t i = 0; i < count; i++)
        left += !spawn_look(&hosts[i].probe, 0);
    return left;
}

static void hosts_ask_conclude(struct asked *h)
{
    h->late = h->probe.pid != 0;
    h->status = h->probe.status;
    h->answer = must_alloc(buffer_take(&h->probe.text[SPAWN_OUT], NULL));
    h->words = must_alloc(buffer_take(&h->probe.text[SPAWN_ERR], NULL));
    spawn_clear(&h->probe);
}

static size_t hosts_ask_batch_size(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= OTHERS + PER_PROBE * MAX_PARALLEL)
        return MAX_PARALLEL;
    return limit.rlim_cur > OTHERS + PER_PROBE ? (limit.rlim_cur - OTHERS) / PER_PROBE : 1;
}

/* Probes in batches, because there may be 4096 hosts but only 1024 descriptors. */
static void hosts_ask_batches(struct asking *a)
{
    static const struct timespec pause = {0, (long)(LOOK_SECONDS * 1e9)};
    size_t most = hosts_ask_batch_size();

    for (size_t from = 0; from < a->count; from += most) {
        size_t n = a->count - from < most ? a->count - from : most;
        double until = clock_monotonic() + ANSWER_SECONDS;
        for (size_t i = 0; i < n; i++)
            hosts_ask_begin(a, &a->hosts[from + i]);
        while (hosts_ask_poll(a->hosts + from, n) && clock_monotonic() < until)
            nanosleep(&pause, NULL);
        for (size_t i = from; i < from + n; i++)
            hosts_ask_conclude(&a->hosts[i]);
    }
}

/* Returns the last line with control characters replaced; modifies text. */
static const char *hosts_last_line(char *text)
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

static void hosts_set_problem(struct asked *h, json_t *words)
{
    if (!json_object_get(h->host, "problem"))
        json_object_set(h->host, "problem", words);
    json_decref(words);
}

static void hosts_judge_silence(const struct asking *a, struct asked *h)
{
    int code = WIFEXITED(h->status) ? WEXITSTATUS(h->status) : -1;

    const char *line = hosts_last_line(h->words);
    if (h->late)
        hosts_set_problem(h, json_sprintf("does not answer within %.0f s", ANSWER_SECONDS));
    else if (code == 126 || code == 127)
        hosts_set_problem(
            h, json_sprintf("cannot run %s: %.200s", json_get_text(a->plan, "worker", NULL), line));
    else
        hosts_set_problem(h, json_sprintf("does not answer: %.200s",
                                          *line ? line : json_get_text(a->plan, "agent", NULL)));
}

static bool hosts_take_answer(struct asked *h)
{
    json_t *answer = json_loads(hosts_last_line(h->answer), 0, NULL);
    if (!json_is_string(json_object_get(answer, "machine"))) {
        json_decref(answer);
        return false;
    }
    json_object_update(h->host, answer);
    json_decref(answer);
    return true;
}

static void hosts_compare(struct asked *h, const json_t *first)
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
            hosts_set_problem(
                h, json_sprintf("has %s %s, but host %s has %s: install the same on both",
                                same[i].what, json_get_text(h->host, same[i].key, "?"),
                                json_get_text(first, "name", "?"),
                                json_get_text(first, same[i].key, "?")));
}

static struct placement_machine hosts_machine_of(const json_t *host)
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

static struct placement_wish hosts_wish_of(const struct asking *a)
{
    return (struct placement_wish){(enum job_bind)json_get_integer(a->plan, "bind", 0),
                                   json_is_true(json_object_get(a->plan, "smt")),
                                   json_get_integer(a->plan, "workers_per_node", 0),
                                   json_get_integer(a->plan, "threads", 0), 0};
}

static void hosts_judge(const struct asking *a, size_t index, const json_t *first)
{
    struct asked *h = &a->hosts[index];
    struct placement_machine machine = hosts_machine_of(h->host);
    struct placement_wish wish = hosts_wish_of(a);
    struct error e;

    if (first)
        hosts_compare(h, first);
    for (size_t i = 0; i < index; i++)
        if (strcmp(json_get_text(a->hosts[i].host, "machine", "?"),
                   json_get_text(h->host, "machine", "?")) == 0)
            hosts_set_problem(h, json_sprintf("is the same machine as host %s", a->hosts[i].name));
    if (json_is_false(json_object_get(h->host, "interface")))
        hosts_set_problem(h, json_sprintf("has no network interface %s (cluster.interface)",
                                          json_get_text(a->plan, "interface", NULL)));
    if (placement_check(&machine, &wish, &e))
        hosts_set_problem(h, json_string(e.text));
    if (!first && json_is_false(json_object_get(h->host, "run_dir")))
        hosts_set_problem(
            h, json_sprintf("cannot read %s/job.json: the first host, where rank 0 runs, "
                            "must see the state folder",
                            json_get_text(a->plan, "run_dir", NULL)));
}

static size_t hosts_judge_all(struct asking *a)
{
    const json_t *first = NULL;
    size_t usable = 0;

    for (size_t i = 0; i < a->count; i++) {
        struct asked *h = &a->hosts[i];
        if (h->late || h->status || !hosts_take_answer(h))
            hosts_judge_silence(a, h);
        else
            hosts_judge(a, i, first);
        if (json_object_get(h->host, "problem"))
            continue;
        if (!first)
            first = h->host;
        usable++;
    }
    return usable;
}

static int hosts_write_hostfile(const struct asking *a, const char *attempt_dir, struct error *e)
{
    char *text;
    size_t bytes;
    FILE *out = must_alloc(open_memstream(&text, &bytes));
    long long nodes = json_get_integer(a->plan, "nodes", 0);

    for (size_t i = 0; i < a->count && nodes > 0; i++)
        if (!json_object_get(a->hosts[i].host, "problem")) {
            fprintf(out, "%s slots=%lld\n", a->hosts[i].name,
                    json_get_integer(a->plan, "workers_per_node", 0));
            nodes--;
        }
    fclose(out);
    return hosts_write_text(attempt_dir, "hostfile", text, e);
}

static void hosts_report(const struct asking *a, bool enough)
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

static int hosts_open_plan(const char *attempt_dir, struct asking *a, struct error *e)
{
    json_t *host;
    size_t i;

    a->plan = hosts_load(attempt_dir, e);
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

static struct placement_machine hosts_least_machine(const struct asking *a)
{
    struct placement_machine least = {0};
    bool any = false;
    long long nodes = json_get_integer(a->plan, "nodes", 0);

    for (size_t i = 0; i < a->count && nodes > 0; i++) {
        if (json_object_get(a->hosts[i].host, "problem"))
            continue;
        struct placement_machine m = hosts_machine_of(a->hosts[i].host);
        least = any ? placement_least(least, m) : m;
        any = true;
        nodes--;
    }
    return least;
}

/* Replaces the placement in mpirun's arguments, which were made before the hosts had answered. */
static void hosts_place_ranks(const struct asking *a, char **argv, struct placement *p)
{
    struct placement_machine least = hosts_least_machine(a);
    struct placement_wish wish = hosts_wish_of(a);

    for (size_t i = 0; i < a->count && !wish.mpi; i++)
        wish.mpi = placement_mpi_version(json_get_text(a->hosts[i].host, "mpi", ""));
    *p = placement_choose(&least, &wish);
    for (; argv[0] && argv[1]; argv++)
        if (strcmp(argv[0], "--map-by") == 0 && argv[2] && argv[3]) {
            argv[1] = p->map_by;
            argv[3] = (char *)p->bind_to; /* the value of --bind-to */
            return;
        }
}

int hosts_launch(char **argv)
{
    struct placement placement;
    const char *attempt_dir = argv[0];
    struct asking a = {0};
    struct error e;
    int status = hosts_open_plan(attempt_dir, &a, &e);

    if (!status) {
        hosts_ask_batches(&a);
        bool enough = hosts_judge_all(&a) >= (size_t)json_get_integer(a.plan, "nodes", 0);
        json_object_set_new(a.plan, "asked", json_true());
        hosts_report(&a, enough);
        status =
            hosts_write_text(attempt_dir, "hosts.json", json_dumps(a.plan, JSON_INDENT(1)), &e);
        if (!status && !enough)
            return HOSTS_MISSING_EXIT;
    }
    if (!status && !argv[1])
        return 0;
    if (!status)
        status = hosts_write_hostfile(&a, attempt_dir, &e);
    hosts_place_ranks(&a, argv + 1, &placement);
    if (status)
        fprintf(stderr, "traind: %s\n", e.text);
    else
        execv(argv[1], argv + 1);
    if (!status)
        fprintf(stderr, "traind: cannot run %s: %s\n", argv[1], strerror(errno));
    return status ? 1 : 127;
}
