#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/hostlist.h"
#include "prep/cmd.h"
#include "prep/prep.h"

#define NODES_MAX    100000
#define EXIT_DATA    6
#define EXIT_SCRATCH 7

enum {
    KEY_FROM = 1000,
    KEY_TO,
    KEY_NODE,
    KEY_NODES,
    KEY_HOSTS,
    KEY_HOST,
    KEY_BANDWIDTH,
    KEY_KEEP_FREE,
    KEY_KEEP,
    KEY_JSON
};

static const struct argp_option stage_table[] = {
    {"from",                                       KEY_FROM, "DIR", 0, "the data set that train-prep convert made", 0},
    {"to",                                       KEY_TO, "SCRATCH", 0, "the folder on this node's own disk; made if need be", 0},
    {"node", KEY_NODE, "I", 0, "this node's number, from 0 (default: 0)", 0},
    {"nodes",                                            KEY_NODES, "N", 0,
     "of so many nodes: shard s of the training goes to node s modulo N, the validation to all "
     "(default: 1, all shards)", 0},
    {"hosts",KEY_HOSTS, "LIST", 0,
     "instead of --node and --nodes: the nodes of a Slurm job, as n[1-4,7] (SLURM_NODELIST); if "
     "--nodes says another number, all shards are copied", 0},
    {"host",                                           KEY_HOST, "NAME", 0, "instead of --node: this node's name in that list", 0},
    {"bandwidth",                                           KEY_BANDWIDTH, "SIZE", 0,
     "read at most so many bytes a second, as 200M (default: no limit)", 0},
    {"keep-free",                                       KEY_KEEP_FREE, "SIZE", 0, "leave so much of the disk free, as 10G (default: 0)",
     0},
    {"keep",                                         KEY_KEEP, 0, 0,
     "keep shards of an earlier staging that this node does not need now (default: remove them)", 0},
    {"json",   KEY_JSON, 0, 0, "print one JSON object a line as it goes", 0},
    {0                                           },
};

/* "200M": bytes, with K, M, G or T for powers of 1000. */
static uint64_t stage_parse_size(struct argp_state *state, const char *option, const char *text)
{
    static const char units[] = "KMGT";
    char *end;
    double value = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;

    for (const char *u = units; unit && u <= unit; u++)
        value *= 1000;
    if (end == text || (*end && (!unit || end[1])) || !(value >= 1) || value > 1e18)
        argp_error(state, "%s %s: expected a size as 500K, 200M, 10G or 1.5T", option, text);
    return (uint64_t)value;
}

static error_t check_stage(struct stage_options *o, struct argp_state *state)
{
    if (!o->from || !o->to)
        argp_error(state, "--%s is missing", !o->from ? "from" : "to");
    if (!o->hosts != !o->host)
        argp_error(state, "--hosts and --host belong together");
    int stated = o->part.of;
    if (o->hosts && (o->part.number = hostlist_place(o->hosts, o->host, &o->part.of)) < 0)
        argp_error(state, "--host %s: it is not among --hosts %s", o->host, o->hosts);
    /* Slurm's prolog may get the nodes of a step instead of the job's. */
    if (o->hosts && stated > 1 && stated != o->part.of) {
        fprintf(stderr,
                "train-prep: --hosts %s are %d nodes, and --nodes says %d: all shards are copied\n",
                o->hosts, o->part.of, stated);
        o->part = (struct dataset_part){0, 1};
    }
    if (o->part.number >= o->part.of)
        argp_error(state, "--node %d: with --nodes %d it is 0 to %d", o->part.number, o->part.of,
                   o->part.of - 1);
    return 0;
}

static error_t parse_stage(int key, char *arg, struct argp_state *state)
{
    struct stage_options *o = state->input;

    switch (key) {
    case KEY_FROM:
        o->from = arg;
        return 0;
    case KEY_TO:
        o->to = arg;
        return 0;
    case KEY_NODE:
        o->part.number = (int)cmd_number(state, "--node", arg, 0, NODES_MAX - 1);
        return 0;
    case KEY_NODES:
        o->part.of = (int)cmd_number(state, "--nodes", arg, 1, NODES_MAX);
        return 0;
    case KEY_HOSTS:
        o->hosts = arg;
        return 0;
    case KEY_HOST:
        o->host = arg;
        return 0;
    case KEY_BANDWIDTH:
        o->bandwidth_per_sec = stage_parse_size(state, "--bandwidth", arg);
        return 0;
    case KEY_KEEP_FREE:
        o->keep_free = stage_parse_size(state, "--keep-free", arg);
        return 0;
    case KEY_KEEP:
        o->keep = true;
        return 0;
    case KEY_JSON:
        o->json = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument %s", arg);
        return 0;
    case ARGP_KEY_END:
        return check_stage(o, state);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int cmd_stage(int argc, char **argv, struct error *e)
{
    static const struct argp argp = {
        stage_table,
        parse_stage,
        "",
        "Copies the shards that a node needs to its own disk and verifies them; what is there and "
        "right is not copied again. Exit status: 0 all is there, 2 wrong use, 6 the data are "
        "wrong or missing (on all nodes), 7 this node's scratch cannot hold them, 130 interrupted.",
        0,
        0,
        0};
    struct stage_options o = {
        .part = {0, 1}
    };
    enum stage_fault fault;

    argp_parse(&argp, argc, argv, 0, 0, &o);
    int rc = stage(&o, &fault, e);
    if (rc == 0 || fault == STAGE_FAULT_NONE)
        return rc;
    fprintf(stderr, "train-prep stage: %s: %s\n",
            fault == STAGE_FAULT_DATA ? "the data" : "scratch", e->text);
    return fault == STAGE_FAULT_DATA ? EXIT_DATA : EXIT_SCRATCH;
}
