/* Nodes and their reports, which daemon/node/node.h judges. */
#include <math.h>
#include <string.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "common/run/speed.h"
#include "daemon/http/routes.h"
#include "daemon/node/node.h"

#define LIST_CHECKS 20 /* per node in a listing */

static json_t *node_json(const struct store_node *n, bool own, const struct job_slots *here)
{
    char reason[NODE_REASON_BYTES];
    bool checked = n->checked_at > 0;
    enum node_verdict verdict = node_verdict_now(n, clock_now(), reason);

    if (!checked)
        snprintf(reason, sizeof reason, "has not been checked yet");
    return json_pack(
        "{s:s, s:s, s:b, s:s?, s:s, s:s?, s:o, s:o, s:o, s:I, s:o, s:I, s:I, s:[], s:[]}", "name",
        n->name, "kind", n->kind, "local", own, "partition", n->partition, "verdict",
        node_verdict_name(checked ? verdict : NODE_UNKNOWN), "reason", *reason ? reason : NULL,
        "gflops", json_number_or_null(n->figures.gflops > 0 ? n->figures.gflops : NAN),
        "memory_gb_per_sec",
        json_number_or_null(n->figures.memory_gb_per_sec > 0 ? n->figures.memory_gb_per_sec : NAN),
        "clock_ghz", json_number_or_null(n->figures.clock_ghz > 0 ? n->figures.clock_ghz : NAN),
        "load", (json_int_t)n->load, "checked", checked ? json_number(n->checked_at) : json_null(),
        "slots", (json_int_t)(own ? here->total : n->cores), "slots_used",
        (json_int_t)(own ? here->used : 0), "jobs", "history");
}

/* Inserts this machine, in order of its name, if it was never checked. */
static void nodes_add_this_machine(struct store_nodes *nodes, const char *own)
{
    char cpu[SPEED_CPU_BYTES];
    struct store_node *grown =
        must_alloc(array_grow(nodes->items, nodes->count, &nodes->capacity, sizeof *grown));
    size_t at = nodes->count;

    nodes->items = grown;
    while (at > 0 && strcmp(grown[at - 1].name, own) > 0)
        at--;
    if (at > 0 && strcmp(grown[at - 1].name, own) == 0)
        return;
    memmove(&grown[at + 1], &grown[at], (nodes->count++ - at) * sizeof *grown);
    grown[at] = (struct store_node){
        .name = xstrdup(own),
        .kind = xstrdup(speed_cpu(cpu)),
        .figures = {NAN, NAN, NAN},
    };
}

/* *used is increased by the slots in use on all nodes except this machine. */
static int node_add_jobs(const struct request *q, json_t *nodes, const char *own, int64_t *used,
                         struct error *e)
{
    json_t *jobs, *job;
    size_t i;
    int status = store_node_jobs(q->app->store, own, &jobs, e);

    json_array_foreach (jobs, i, job) {
        const char *name = json_get_text(job, "node", "");
        json_int_t slots = json_get_integer(job, "slots", 0);
        json_t *node = json_object_get(nodes, name);
        json_array_append(json_object_get(node, "jobs"), json_object_get(job, "job"));
        if (strcmp(name, own) == 0)
            continue;
        *used += slots;
        slots += json_get_integer(node, "slots_used", 0);
        json_object_set_new(node, "slots_used", json_integer(slots));
    }
    json_decref(jobs);
    return status;
}

struct node_page {
    const char *name, *after;   /* a single node, or (NULL) the nodes after a name */
    int64_t limit, checks;      /* limits on nodes, and on checks of each */
    json_t *nodes, *sums;       /* nodes in order of name; result of store_node_sums */
    char next[NODE_NAME_BYTES]; /* the last node if there are more after it; otherwise "" */
    int64_t slots_used;         /* on all nodes */
};

static int node_collect(const struct request *q, struct node_page *p, struct error *e)
{
    struct store *s = q->app->store;
    double checked_after = clock_now() - NODE_CHECK_DAYS * 86400.0;
    char own[NODE_NAME_BYTES];
    struct job_slots here;
    struct store_nodes found;
    size_t count = 0;

    node_own_name(own);
    job_manager_slots(q->app->jobs, &here);
    p->slots_used = here.used;
    p->nodes = json_object();
    int status = p->name ? store_node_get(s, p->name, &found, e)
                         : store_node_list(s, p->after, p->limit + 1, &found, e);
    if (!status && (p->name ? strcmp(own, p->name) == 0 : strcmp(own, p->after) > 0))
        nodes_add_this_machine(&found, own);
    for (; !status && count < found.count && (int64_t)count < p->limit; count++) {
        const struct store_node *n = &found.items[count];
        json_object_set_new(p->nodes, n->name, node_json(n, strcmp(n->name, own) == 0, &here));
    }
    if (!status && count < found.count)
        snprintf(p->next, sizeof p->next, "%s", found.items[count - 1].name);
    if (!status && p->name && count) {
        const char *text = found.items[0].report;
        json_t *report = json_loads(text ? text : "null", JSON_DECODE_ANY, NULL);
        json_object_set_new(json_object_get(p->nodes, p->name), "report",
                            report ? report : json_null());
    }
    bool failed = status ||
                  (count && store_node_history(s, found.items[0].name, found.items[count - 1].name,
                                               p->checks, p->nodes, e)) ||
                  store_node_sums(s, own, here.total, checked_after, &p->sums, e) ||
                  node_add_jobs(q, p->nodes, own, &p->slots_used, e);
    store_nodes_clear(&found);
    return failed ? -(int)e->code : 0;
}

int handle_nodes(const struct request *q, struct reply *r, struct error *e)
{
    const char *after = request_query(q, "after"), *name;
    struct node_page p = {.after = after ? after : "", .checks = LIST_CHECKS};
    json_t *node;

    if (request_query_int(q, "limit", 1, 1000, 50, &p.limit, e))
        return -(int)e->code;
    if (after && !node_name_is_valid(after))
        return error_set(e, ERR_USAGE,
                         "after must be the value of next on the previous page, a node's name, "
                         "not \"%s\"",
                         after);
    int status = node_collect(q, &p, e);
    json_t *json = json_pack("{s:[], s:s?, s:I}", "nodes", "next", *p.next ? p.next : NULL,
                             "slots_used", (json_int_t)p.slots_used);
    json_object_foreach (p.nodes, name, node)
        json_array_append(json_object_get(json, "nodes"), node);
    json_object_update(json, json_array_get(p.sums, 0));
    json_decref(p.nodes);
    json_decref(p.sums);
    if (!status)
        return reply_json(r, 200, json, e);
    json_decref(json);
    return status;
}

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
    struct node_page p = {.name = name, .limit = 1, .checks = STORE_NODE_CHECKS};

    if (node_parse_name(q, name, e))
        return -(int)e->code;
    int status = node_collect(q, &p, e);
    json_t *node = json_object_get(p.nodes, name);
    if (!status && !node)
        status =
            error_set(e, ERR_NOT_FOUND,
                      "there is no node %s; trainctl nodes and GET /v1/nodes list the nodes", name);
    if (!status)
        status = reply_json(r, 200, json_incref(node), e);
    json_decref(p.nodes);
    json_decref(p.sums);
    return status;
}

/* Drains during the prolog, so that the node gets this reason before Slurm's own. */
static void node_drain(const struct request *q, const char *name, const struct node_judged *judged,
                       const json_t *report)
{
    const char *command = q->config->jobs.drain_command;
    const char *phase = json_string_value(json_object_get(report, "phase"));
    struct error e;

    if (judged->verdict != NODE_DRAIN || !command || !phase || strcmp(phase, "self") == 0)
        return;
    if (node_tell(command, name, judged->reason, &e))
        log_warning("cannot drain node %s: %s", name, e.text);
}

int handle_node_report(const struct request *q, struct reply *r, struct error *e)
{
    char name[NODE_NAME_BYTES];
    struct problems problems = {0};
    struct node_judged judged;

    if (node_parse_name(q, name, e))
        return -(int)e->code;
    if (q->body_bytes == 0)
        return error_set(
            e, ERR_USAGE,
            "send the output of train-worker --self-check --json, with \"phase\" added");
    json_t *report = json_document_parse(q->body, q->body_bytes, e);
    if (!report)
        return -(int)e->code;
    int status = node_report(q->app->store, name, report, &q->config->nodes.limits, clock_now(),
                             &judged, &problems, e);
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
