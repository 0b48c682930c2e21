#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/host.h"
#include "prep/cmd.h"
#include "prep/prep.h"

#define NODES_MAX    100000
#define EXIT_DATA    6
#define EXIT_SCRATCH 7

/* "200M": bytes, with K, M, G or T for powers of 1000. */
static int stage_parse_size(const struct command_option *option, const char *text, void *field,
                            struct error *e)
{
    static const char units[] = "KMGT";
    char *end;
    double value = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;

    for (const char *u = units; unit && u <= unit; u++)
        value *= 1000;
    if (end == text || (*end && (!unit || end[1])) || !(value >= 1) || value > 1e18)
        return error_set(e, ERR_USAGE, "--%s %s: expected a size like 500K, 200M, 10G or 1.5T",
                         option->name, text);
    *(uint64_t *)field = (uint64_t)value;
    return 0;
}

#define AT(field) offsetof(struct stage_options, field)

/* clang-format off */
static const struct command_option stage_table[] = {
    {.name = "from", .value = "DIR", .kind = OPTION_TEXT, .offset = AT(from), .required = true,
     .help = "data set made by train-prep convert"},
    {.name = "to", .value = "SCRATCH", .kind = OPTION_TEXT, .offset = AT(to), .required = true,
     .help = "folder on a local disk of this node; created if missing"},
    {.name = "node", .value = "I", .kind = OPTION_INT, .offset = AT(part.number), .most = NODES_MAX - 1,
     .help = "number of this node, from 0 (default: 0)"},
    {.name = "nodes", .value = "N", .kind = OPTION_INT, .offset = AT(part.of), .least = 1, .most = NODES_MAX,
     .help = "number of nodes: training shard s goes to node s modulo N, validation shards to all "
             "(default: 1, all shards)"},
    {.name = "hosts", .value = "LIST", .kind = OPTION_TEXT, .offset = AT(hosts),
     .help = "instead of --node and --nodes: the nodes of a Slurm job, as in n[1-4,7] (SLURM_NODELIST); if "
             "--nodes differs from their number, all shards are copied"},
    {.name = "host", .value = "NAME", .kind = OPTION_TEXT, .offset = AT(host),
     .help = "instead of --node: the name of this node in that list"},
    {.name = "bandwidth", .value = "SIZE", .kind = OPTION_TAKEN, .offset = AT(bandwidth_per_sec), .parse = stage_parse_size,
     .help = "read at most this many bytes per second, as in 200M (default: no limit)"},
    {.name = "keep-free", .value = "SIZE", .kind = OPTION_TAKEN, .offset = AT(keep_free), .parse = stage_parse_size,
     .help = "leave this much disk space free, as in 10G (default: 0)"},
    {.name = "keep", .kind = OPTION_FLAG, .offset = AT(keep),
     .help = "keep shards of an earlier staging that this node does not need (default: remove them)"},
    {.name = "json", .kind = OPTION_FLAG, .offset = AT(json),
     .help = "print progress as one JSON object per line"},
    {0},
};
/* clang-format on */

static int stage_check_options(void *fields, struct error *e)
{
    struct stage_options *o = fields;

    if (!o->hosts != !o->host)
        return error_set(e, ERR_USAGE, "--hosts and --host must be used together");
    int stated = o->part.of;
    if (o->hosts && (o->part.number = host_list_place(o->hosts, o->host, &o->part.of)) < 0)
        return error_set(e, ERR_USAGE, "--host %s is not in --hosts %s", o->host, o->hosts);
    /* Slurm's prolog may get the nodes of a step instead of the job's. */
    if (o->hosts && stated > 1 && stated != o->part.of) {
        fprintf(stderr,
                "train-prep: --hosts %s has %d nodes, but --nodes is %d: copying all shards\n",
                o->hosts, o->part.of, stated);
        o->part = (struct dataset_part){0, 1};
    }
    if (o->part.number >= o->part.of)
        return error_set(e, ERR_USAGE,
                         "--node %d is out of range: with --nodes %d it must be from 0 to %d",
                         o->part.number, o->part.of, o->part.of - 1);
    return 0;
}

int cmd_stage(int argc, char **argv, struct error *e)
{
    static const struct command_line line = {
        .program = "train-prep stage",
        .usage = "Usage: train-prep stage [OPTION...]",
        .options = stage_table,
        .common = command_line_common,
        .doc = "Copies the shards that a node needs to its own disk and verifies them; files that "
               "are already there and valid are not copied again. Exit status: 0 complete, 2 wrong "
               "use, 6 the data is invalid or missing (on all nodes), 7 this node's scratch disk "
               "is too small, 130 interrupted.",
        .check = stage_check_options,
    };
    struct stage_options o = {
        .part = {0, 1}
    };
    enum stage_fault fault;

    int rc = command_line_read(&line, argc, argv, &o);
    if (rc >= 0)
        return rc;
    rc = stage(&o, &fault, e);
    if (rc == 0 || fault == STAGE_FAULT_NONE)
        return rc;
    fprintf(stderr, "train-prep stage: %s: %s\n",
            fault == STAGE_FAULT_DATA ? "the data" : "scratch", e->text);
    return fault == STAGE_FAULT_DATA ? EXIT_DATA : EXIT_SCRATCH;
}
