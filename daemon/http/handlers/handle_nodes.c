/* Machines that train: what they report, and what is known of them. daemon/node/node.h judges. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "common/run/speed.h"
#include "daemon/http/routes.h"
#include "daemon/node/node.h"

#define JOBS_MAX    64
#define LIST_CHECKS 20 /* of each node in a listing */

/* ---------------------------------------------------------------- jobs that run */

struct active {
    int64_t id, slots_per_node; /* 0: all of a node's */
    bool local;                 /* on this machine */
};
struct actives {
    struct active *items;
    size_t count;
};

static struct active read_active(const struct store_job *job)
{
    struct active a = {.id = job->id, .local = true};
    json_t *spec = json_loads(job->spec ? job->spec : "{}", 0, NULL);
    const json_t *cluster = json_object_get(spec, "cluster");
    const char *launcher = json_string_value(json_object_get(cluster, "launcher"));

    a.slots_per_node = json_integer_value(json_object_get(cluster, "workers_per_node")) *
                       json_integer_value(json_object_get(cluster, "threads_per_worker"));
    a.local = (!launcher || strcmp(launcher, "local") == 0) &&
              json_array_size(json_object_get(cluster, "hosts")) == 0;
    json_decref(spec);
    return a;
}

static int find_active(const struct request *q, struct actives *all, struct error *e)
{
    struct store_job_filter filter = {.states = 1u << JOB_STARTING | 1u << JOB_RUNNING |
                                                1u << JOB_EVALUATING,
                                      .order = STORE_NEWEST_FIRST,
                                      .documents = true};
    struct store_jobs jobs = {0};
    int status = store_job_list(q->app->store, &filter, &jobs, e);

    if (!status && !(all->items = calloc(jobs.count + 1, sizeof *all->items)))
        status = error_set(e, ERR_NO_MEMORY, "no memory for the jobs");
    for (size_t i = 0; !status && i < jobs.count; i++)
        all->items[all->count++] = read_active(&jobs.items[i]);
    store_jobs_clear(&jobs);
    return status;
}

/* ---------------------------------------------------------------- a node as JSON */

/* The jobs on a node, and the slots they take. */
static int node_add_jobs(const struct request *q, const struct store_node *n, bool own,
                         const struct actives *all, json_t *json, struct error *e)
{
    int64_t ids[JOBS_MAX], used = 0;
    json_t *jobs = json_array();
    struct job_slots slots;
    size_t count;
    int status = store_node_jobs(q->app->store, n->name, ids, JOBS_MAX, &count, e);

    for (size_t a = 0; !status && a < all->count; a++) {
        const struct active *job = &all->items[a];
        bool here = own && job->local;
        for (size_t i = 0; i < count; i++)
            here |= ids[i] == job->id && !job->local;
        if (!here)
            continue;
        json_array_append_new(jobs, json_integer((json_int_t)job->id));
        used += job->slots_per_node ? job->slots_per_node : n->cores;
    }
    job_manager_slots(q->app->jobs, &slots);
    json_object_set_new(json, "slots", json_integer((json_int_t)(own ? slots.total : n->cores)));
    json_object_set_new(json, "slots_used", json_integer((json_int_t)(own ? slots.used : used)));
    json_object_set_new(json, "jobs", jobs);
    return status;
}

static int node_json(const struct request *q, const struct store_node *n, bool own,
                     const struct actives *all, int64_t checks, json_t **out, struct error *e)
{
    char reason[NODE_REASON_BYTES];
    bool checked = n->checked_at > 0;
    enum node_verdict verdict = node_verdict_now(n, clock_now(), reason);
    json_t *history = NULL;

    if (!checked)
        snprintf(reason, sizeof reason, "was not checked yet");
    json_t *json = json_pack(
        "{s:s, s:s, s:b, s:s?, s:s, s:s?, s:o, s:o, s:o, s:I, s:o}", "name", n->name, "kind",
        n->kind, "local", own, "partition", n->partition, "verdict",
        node_verdict_name(checked ? verdict : NODE_UNKNOWN), "reason", *reason ? reason : NULL,
        "gflops", json_number_or_null(n->figures.gflops > 0 ? n->figures.gflops : NAN),
        "memory_gb_per_sec",
        json_number_or_null(n->figures.memory_gb_per_sec > 0 ? n->figures.memory_gb_per_sec : NAN),
        "clock_ghz", json_number_or_null(n->figures.clock_ghz > 0 ? n->figures.clock_ghz : NAN),
        "load", (json_int_t)n->load, "checked", checked ? json_number(n->checked_at) : json_null());
    int status = node_add_jobs(q, n, own, all, json, e);
    if (!status)
        status = store_node_history(q->app->store, n->name, checks, &history, e);
    json_object_set_new(json, "history", history ? history : json_array());
    *out = json;
    return status;
}

/* This machine, where it was not checked yet. */
static int add_this_machine(struct store_nodes *nodes, const char *own, struct error *e)
{
    char cpu[SPEED_CPU_BYTES];

    for (size_t i = 0; i < nodes->count; i++)
        if (strcmp(nodes->items[i].name, own) == 0)
            return 0;
    struct store_node *grown = array_grow(nodes->items, nodes->count, &nodes->room, sizeof *grown);
    if (!grown)
        return error_set(e, ERR_NO_MEMORY, "no memory for the nodes");
    nodes->items = grown;
    struct store_node *node = &nodes->items[nodes->count++];
    *node = (struct store_node){
        .name = strdup(own),
        .kind = strdup(speed_cpu(cpu)),
        .figures = {NAN, NAN, NAN},
    };
    return node->name && node->kind ? 0 : error_set(e, ERR_NO_MEMORY, "no memory for the nodes");
}

/* All nodes, or the one that is named. */
static int node_collect(const struct request *q, const char *name, int64_t checks, json_t *list,
                        struct error *e)
{
    char own[NODE_NAME_BYTES];
    struct actives all = {0};
    struct store_nodes nodes;
    int status = store_node_list(q->app->store, &nodes, e);

    node_own_name(own);
    if (!status)
        status = add_this_machine(&nodes, own, e);
    if (!status)
        status = find_active(q, &all, e);
    for (size_t i = 0; !status && i < nodes.count; i++) {
        const struct store_node *n = &nodes.items[i];
        json_t *json = NULL;
        if (name && strcmp(name, n->name) != 0)
            continue;
        status = node_json(q, n, strcmp(own, n->name) == 0, &all, checks, &json, e);
        if (!status && name) {
            json_t *report = json_loads(n->report ? n->report : "null", JSON_DECODE_ANY, NULL);
            json_object_set_new(json, "report", report ? report : json_null());
        }
        json_array_append_new(list, json);
    }
    store_nodes_clear(&nodes);
    free(all.items);
    return status;
}

int handle_nodes(const struct request *q, struct reply *r, struct error *e)
{
    json_t *list = json_array();
    int status = node_collect(q, NULL, LIST_CHECKS, list, e);

    if (!status)
        return reply_json(r, 200, json_pack("{s:o}", "nodes", list), e);
    json_decref(list);
    return status;
}

/* The {name} of the path. */
static int node_parse_name(const struct request *q, char name[NODE_NAME_BYTES], struct error *e)
{
    const char *at = q->path + strlen("/v1/nodes/");
    size_t length = strcspn(at, "/");

    snprintf(name, NODE_NAME_BYTES, "%.*s", (int)length, at);
    if (length < NODE_NAME_BYTES && node_name_is_valid(name))
        return 0;
    return error_set(e, ERR_USAGE,
                     "a node's name is that of one host: 1 to %d letters, digits, dots, hyphens "
                     "and underscores; ALL is every node for Slurm and no name",
                     NODE_NAME_BYTES - 1);
}

int handle_node(const struct request *q, struct reply *r, struct error *e)
{
    char name[NODE_NAME_BYTES];
    json_t *list = json_array();
    int status = node_parse_name(q, name, e);

    if (!status)
        status = node_collect(q, name, STORE_NODE_CHECKS, list, e);
    if (!status && json_array_size(list) == 0)
        status = error_set(
            e, ERR_NOT_FOUND,
            "there is no node %s; trainctl nodes and GET /v1/nodes list those there are", name);
    if (!status)
        status = reply_json(r, 200, json_incref(json_array_get(list, 0)), e);
    json_decref(list);
    return status;
}

/* ---------------------------------------------------------------- reports */

/* Slurm is told while the prolog waits for the answer, so that the node has our reason before it
 * gets Slurm's own. */
static void node_drain(const struct request *q, const char *name, const struct node_judged *judged,
                       const json_t *report)
{
    const char *command = q->config->node_drain_command;
    const char *phase = json_string_value(json_object_get(report, "phase"));
    struct error e;

    if (judged->verdict != NODE_DRAIN || !command || !phase || strcmp(phase, "self") == 0)
        return;
    if (node_tell(command, name, judged->reason, &e))
        log_warning("node %s could not be drained: %s", name, e.text);
}

int handle_node_report(const struct request *q, struct reply *r, struct error *e)
{
    struct node_limits limits = {(double)q->config->node_slow_percent / 100,
                                 (double)q->config->node_drain_percent / 100};
    char name[NODE_NAME_BYTES];
    struct problems problems = {0};
    struct node_judged judged;

    if (node_parse_name(q, name, e))
        return -(int)e->code;
    if (q->body_bytes == 0)
        return error_set(e, ERR_USAGE,
                         "send what train-worker --self-check --json prints, with \"phase\"");
    json_t *report = json_document_parse(q->body, q->body_bytes, e);
    if (!report)
        return -(int)e->code;
    int status =
        node_report(q->app->store, name, report, &limits, clock_now(), &judged, &problems, e);
    if (!status && problems.count) {
        status = reply_refusal(r, ERR_INVALID, &problems);
    } else if (!status) {
        node_drain(q, name, &judged, report);
        status = reply_json(r, 200,
                            json_pack("{s:s, s:s, s:s?}", "name", name, "verdict",
                                      node_verdict_name(judged.verdict), "reason",
                                      *judged.reason ? judged.reason : NULL),
                            e);
    }
    problems_clear(&problems);
    json_decref(report);
    return status;
}
