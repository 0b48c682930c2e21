#include "daemon/store/node.h"

#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "daemon/store/once.h"
#include "daemon/store/sql.h"
#include "daemon/store/store_internal.h"

static const char *const verdicts[NODE_VERDICTS] = {"unknown", "fine", "slow", "drain"};

const char *node_verdict_name(enum node_verdict verdict)
{
    return verdicts[verdict];
}

static enum node_verdict node_verdict_of(const char *name)
{
    for (int i = 0; name && i < NODE_VERDICTS; i++)
        if (strcmp(verdicts[i], name) == 0)
            return (enum node_verdict)i;
    return NODE_UNKNOWN;
}

static int node_upsert(struct sql *c, const struct store_node_check *k, struct error *e)
{
    const struct node_figures *f = &k->figures;
/* Begins an expression that keeps the node's own value. */
#define STAY                                                                                       \
    "case when excluded.load > 0 and excluded.verdict = 'unknown' and "                            \
    "node.verdict in ('fine', 'slow') then node."

    return sql_run(
        c, e, NULL,
        "insert into node (name, kind, cores, partition, gflops, memory_gb_per_sec, clock_ghz, "
        "verdict, reason, checked_at, report, load) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "on conflict (name) do update set kind = excluded.kind, "
        "cores = case when excluded.cores > 0 then excluded.cores else cores end, "
        "partition = coalesce(excluded.partition, partition), "
        "gflops = " STAY "gflops else coalesce(excluded.gflops, gflops) end, "
        "memory_gb_per_sec = " STAY "memory_gb_per_sec else "
        "coalesce(excluded.memory_gb_per_sec, memory_gb_per_sec) end, "
        "clock_ghz = " STAY "clock_ghz else coalesce(excluded.clock_ghz, clock_ghz) end, "
        "verdict = " STAY "verdict else excluded.verdict end, "
        "reason = case when excluded.verdict = 'unknown' and node.verdict = 'slow' then reason "
        "else excluded.reason end, checked_at = excluded.checked_at, "
        "load = case when excluded.gflops is null then load else excluded.load end, "
        "report = case when excluded.gflops is null and node.gflops is not null then report "
        "else excluded.report end "
        "where excluded.checked_at >= checked_at",
        "ssisdddssdsi", k->node, k->kind, k->cores, k->partition, f->gflops, f->memory_gb_per_sec,
        f->clock_ghz, node_verdict_name(k->verdict), k->reason, k->t, k->report, k->load);
#undef STAY
}

static int node_insert_check(struct sql *c, const struct store_node_check *k, struct error *e)
{
    const struct node_figures *f = &k->figures;

    return sql_run(c, e, NULL,
                   "insert into node_check (node, t, phase, job_id, gflops, memory_gb_per_sec, "
                   "clock_ghz, verdict, reason, load) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                   "sdsndddssi", k->node, k->t, k->phase, k->job_id ? k->job_id : (int64_t)-1,
                   f->gflops, f->memory_gb_per_sec, f->clock_ghz, node_verdict_name(k->verdict),
                   k->reason, k->load);
}

/* Bounds the number of nodes, because reports could otherwise fill the store with names. */
static int node_make_room(struct sql *c, const char *name, double now, struct error *e)
{
    int forgotten = 0;
    int full = sql_one(c, e,
                       "select 1 where not exists (select 1 from node where name = ?1) and "
                       "(select count(*) from node) >= ?2",
                       "si", name, (int64_t)STORE_NODES_MAX);

    if (full <= 0)
        return full;
    int status = sql_run(c, e, &forgotten,
                         "delete from node where name = (select name from node where checked_at < "
                         "?1 order by checked_at limit 1)",
                         "d", now - STORE_NODE_FORGET_SECONDS);
    if (status || forgotten)
        return status;
    return error_set(e, ERR_CONFLICT,
                     "node %s is unknown, and %d other nodes have reported within a week, which "
                     "is the limit",
                     name, STORE_NODES_MAX);
}

/* Returns 1 if it becomes drained by this check. */
static int node_becomes_drained(struct sql *c, const struct store_node_check *k, struct error *e)
{
    if (k->verdict != NODE_DRAIN)
        return 0;
    int found = sql_one(c, e,
                        "select 1 from node where name = ? and (verdict = 'drain' or "
                        "checked_at > ?)",
                        "sd", k->node, k->t);
    return found < 0 ? found : !found;
}

static int node_write_check(struct sql *c, const struct store_node_check *k, double now,
                            struct error *e)
{
    struct store_fact fact = {.what = STORE_FACT_NODE, .id = k->job_id, .check = k, .t = k->t};
    int drained = 0;

    if (node_make_room(c, k->node, now, e) || (drained = node_becomes_drained(c, k, e)) < 0 ||
        node_upsert(c, k, e) || node_insert_check(c, k, e) ||
        sql_run(c, e, NULL,
                "delete from node_check where node = ?1 and id <= (select id from "
                "node_check where node = ?1 order by id desc limit 1 offset ?2)",
                "si", k->node, (int64_t)STORE_NODE_CHECKS) ||
        (drained && store_call_hook(c, &fact, e)))
        return -(int)e->code;
    return 0;
}

int store_node_check(struct store *s, const struct store_node_check *k, double now, struct error *e)
{
    return sql_transaction(s, false, c, e, node_write_check(c, k, now, e));
}

static void node_clear(struct store_node *n)
{
    free(n->name);
    free(n->kind);
    free(n->partition);
    free(n->reason);
    free(n->report);
}

void store_nodes_clear(struct store_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++)
        node_clear(&nodes->items[i]);
    free(nodes->items);
    *nodes = (struct store_nodes){0};
}

static struct node_figures node_read_figures(sqlite3_stmt *row, int column)
{
    return (struct node_figures){sql_double(row, column), sql_double(row, column + 1),
                                 sql_double(row, column + 2)};
}

static struct store_node node_read(sqlite3_stmt *row)
{
    return (struct store_node){
        .name = sql_text(row, 0),
        .kind = sql_text(row, 1),
        .cores = sql_int(row, 2, 0),
        .partition = sql_text(row, 3),
        .figures = node_read_figures(row, 4),
        .verdict = node_verdict_of((const char *)sqlite3_column_text(row, 7)),
        .reason = sql_text(row, 8),
        .checked_at = sql_double(row, 9),
        .load = sql_int(row, 10, 0),
        .report = sql_text(row, 11),
    };
}

static int node_append(sqlite3_stmt *row, void *list, struct error *e)
{
    struct store_nodes *nodes = list;

    (void)e;
    array_add(nodes->items, nodes->count, nodes->capacity) = node_read(row);
    return 0;
}

#define NODE_COLUMNS                                                                               \
    "select name, kind, cores, partition, gflops, memory_gb_per_sec, clock_ghz, verdict, reason, " \
    "checked_at, load"

int store_node_list(struct store *s, const char *after, int64_t max, struct store_nodes *nodes,
                    struct error *e)
{
    *nodes = (struct store_nodes){0};
    int status = once_each(s, node_append, nodes, e,
                           NODE_COLUMNS ", null from node where name > ? order by name limit ?",
                           "si", after, max);
    if (status)
        store_nodes_clear(nodes);
    return status;
}

int store_node_get(struct store *s, const char *name, struct store_nodes *nodes, struct error *e)
{
    *nodes = (struct store_nodes){0};
    int status = once_each(s, node_append, nodes, e,
                           NODE_COLUMNS ", report from node where name = ?", "s", name);
    if (status)
        store_nodes_clear(nodes);
    return status;
}

static json_t *node_sums_json(sqlite3_stmt *row)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "total", (json_int_t)sql_int(row, 0, 0), "slow",
                     (json_int_t)sql_int(row, 1, 0), "drained", (json_int_t)sql_int(row, 2, 0),
                     "slots", (json_int_t)sql_int(row, 3, 0));
}

int store_node_sums(struct store *s, const char *own, int64_t slots, double checked_after,
                    json_t **sums, struct error *e)
{
    return once_json(s, node_sums_json, sums, e,
                     "select count(*) + not coalesce(max(name = ?1), 0), sum(verdict = 'slow' and "
                     "checked_at > ?3), sum(verdict = 'drain'), ?2 + coalesce(sum(cores) filter "
                     "(where name <> ?1), 0) from node",
                     "sid", own, slots, checked_after);
}

int store_node_witness(struct store *s, const char *name, const char *path, double after,
                       char **witness, struct error *e)
{
    return once_get(s, e,
                    "select node from node_data where path = ? and seen_at > ? and node <> ? "
                    "limit 1",
                    "sds:s", path, after, name, witness);
}

static json_t *node_check_json(sqlite3_stmt *row)
{
    struct node_figures f = node_read_figures(row, 3);
    int64_t job = sql_int(row, 2, 0);

    return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:I, s:s, s:s?}", "t",
                     json_number(sql_double(row, 0)), "phase", sqlite3_column_text(row, 1), "job",
                     json_integer_or_null(job, job), "gflops", json_number_or_null(f.gflops),
                     "memory_gb_per_sec", json_number_or_null(f.memory_gb_per_sec), "clock_ghz",
                     json_number_or_null(f.clock_ghz), "load", (json_int_t)sql_int(row, 8, 0),
                     "verdict", sqlite3_column_text(row, 6), "reason", sqlite3_column_text(row, 7));
}

static int node_add_check(sqlite3_stmt *row, void *nodes, struct error *e)
{
    const json_t *node = json_object_get(nodes, (const char *)sqlite3_column_text(row, 9));

    (void)e;
    json_array_append_new(json_object_get(node, "history"), node_check_json(row));
    return 0;
}

int store_node_history(struct store *s, const char *first, const char *last, int64_t max,
                       json_t *nodes, struct error *e)
{
    return once_each(s, node_add_check, nodes, e,
                     "select k.t, k.phase, k.job_id, k.gflops, k.memory_gb_per_sec, k.clock_ghz, "
                     "k.verdict, k.reason, k.load, k.node from node n join node_check k on k.id in "
                     "(select id from node_check where node = n.name order by t desc, id desc "
                     "limit ?) where n.name between ? and ? order by k.node, k.t desc, k.id desc",
                     "iss", max, first, last);
}

struct node_figures_list {
    struct node_figures *items;
    size_t *count;
};

static int node_add_figures(sqlite3_stmt *row, void *list, struct error *e)
{
    struct node_figures_list *l = list;

    (void)e;
    l->items[(*l->count)++] = node_read_figures(row, 0);
    return 0;
}

int store_node_fine(struct store *s, const char *node, double before, struct node_figures *figures,
                    size_t max, size_t *count, struct error *e)
{
    struct node_figures_list list = {figures, count};

    *count = 0;
    return once_each(
        s, node_add_figures, &list, e,
        "select gflops, memory_gb_per_sec, clock_ghz from node_check where node = ? "
        "and verdict = 'fine' and gflops is not null and t < ? order by t desc limit ?",
        "sdi", node, before, (int64_t)max);
}

/* Uses the index node_by_kind only. */
int store_node_peers(struct store *s, const char *node, const char *kind, int64_t cores,
                     double after, struct node_figures *figures, size_t max, size_t *count,
                     struct error *e)
{
    struct node_figures_list list = {figures, count};

    *count = 0;
    return once_each(s, node_add_figures, &list, e,
                     "select gflops, memory_gb_per_sec, null from node where kind = ? and "
                     "cores = ? and checked_at > ? and verdict in ('fine', 'slow') and name <> ? "
                     "order by checked_at desc limit ?",
                     "sidsi", kind, cores, after, node, (int64_t)max);
}

int store_node_refusal(struct store *s, int64_t job_id, double since, char **words, struct error *e)
{
    return once_get(s, e,
                    "select 'node ' || node || coalesce(': ' || reason, '') from node_check where "
                    "job_id = ? and phase = 'prolog' and verdict = 'drain' and t >= ? "
                    "order by id desc limit 1",
                    "id:s", job_id, since, words);
}

static json_t *node_job_json(sqlite3_stmt *row)
{
    return json_pack("{s:I, s:s, s:I}", "job", (json_int_t)sql_int(row, 0, 0), "node",
                     sqlite3_column_text(row, 1), "slots", (json_int_t)sql_int(row, 2, 0));
}

int store_node_jobs(struct store *s, const char *own, json_t **jobs, struct error *e)
{
    return once_json(
        s, node_job_json, jobs, e,
        "with active as materialized (select id, coalesce(json_extract(spec, "
        "'$.cluster.launcher'), 'local') = 'local' and coalesce(json_array_length(spec, "
        "'$.cluster.hosts'), 0) = 0 as here, json_extract(spec, '$.cluster.workers_per_node') * "
        "json_extract(spec, '$.cluster.threads_per_worker') as slots from job where state in "
        "('starting', 'running', 'evaluating')) select id, ?, 0 from active where here union all "
        "select active.id, k.node, coalesce(nullif(slots, 0), cores) from active join node_check "
        "k on k.job_id = active.id join node on name = k.node where not here and phase = 'prolog' "
        "and k.id = (select max(id) from node_check where node = k.node and job_id = active.id) "
        "order by 1 desc",
        "s", own);
}
