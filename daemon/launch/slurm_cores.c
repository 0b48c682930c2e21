#include "daemon/launch/slurm_cores.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/xalloc.h"
#include "daemon/launch/slurm_call.h"

#define ASK_SECONDS 10
#define MIB         ((int64_t)1 << 20)

/* Whether a list such as "a,b(x),c" has the name; Slurm adds counts or states in parentheses. */
static bool slurm_cores_is_in_list(const char *list, const char *name)
{
    size_t length = strlen(name);

    while (*list) {
        size_t item = strcspn(list, ","), word = strcspn(list, ",(");
        if (word == length && strncmp(list, name, length) == 0)
            return true;
        list += item + (list[item] == ',');
    }
    return false;
}

static void slurm_cores_find_fewest(const json_t *nodes, const char *feature, const char *what,
                                    struct slurm_cores *found, size_t *count)
{
    const json_t *node;
    size_t i;

    found->cores = found->socket_cores = found->memory_bytes = 0;
    *count = 0;
    json_array_foreach (nodes, i, node) {
        int64_t cores = json_integer_value(json_object_get(node, what));
        const char *features = json_string_value(json_object_get(node, "features"));
        if (cores < 1 || (feature && !slurm_cores_is_in_list(features ? features : "", feature)))
            continue;
        int64_t sockets = json_integer_value(json_object_get(node, "sockets"));
        int64_t in_socket = sockets > 0 ? cores / sockets : cores;
        if (found->cores == 0 || cores < found->cores)
            found->cores = cores;
        if (++*count == 1 || in_socket < found->socket_cores)
            found->socket_cores = in_socket;
        int64_t memory = json_integer_value(json_object_get(node, "memory"));
        if (memory > 1 && (!found->memory_bytes || memory * MIB < found->memory_bytes))
            found->memory_bytes = memory * MIB;
    }
}

static int slurm_cores_ask(const struct job_spec *spec, struct slurm_cores *found, struct error *e)
{
    static const atomic_bool never = false;
    const struct slurm_call call = {&never, ASK_SECONDS};
    const char *constraint = spec->cluster.constraint, *partition = spec->cluster.partition;
    /* Only a single feature is used; expressions are not evaluated. */
    const char *feature =
        constraint && *constraint && !strpbrk(constraint, "&|[]()*,! ") ? constraint : NULL;
    char *hosts = spec->cluster.host_count ? slurm_host_list(spec) : NULL, where[128];
    json_t *nodes = NULL;
    size_t count = 0;
    int status = slurm_call_nodes(&call, partition, hosts, &nodes, e);

    if (hosts)
        snprintf(where, sizeof where, "named in cluster.hosts");
    else
        snprintf(where, sizeof where, "of %s%.64s%s%.32s",
                 partition ? "partition " : "the default partition", partition ? partition : "",
                 feature ? " with " : "", feature ? feature : "");
    if (!status) {
        slurm_cores_find_fewest(nodes, feature, spec->cluster.smt ? "cpus" : "cores", found,
                                &count);
        if (count == 0)
            status = error_set(e, ERR_NOT_FOUND, "sinfo knows no nodes %s", where);
    }
    if (count == 1)
        snprintf(found->source, sizeof found->source, "sinfo: the node %s", where);
    else
        snprintf(found->source, sizeof found->source, "sinfo: the fewest of the %zu nodes %s",
                 count, where);
    json_decref(nodes);
    free(hosts);
    return status;
}

int slurm_cores_find(const struct slurm_settings *settings, const struct job_spec *spec,
                     struct slurm_cores *found, struct error *e)
{
    *found = (struct slurm_cores){.cores = settings->node_cores};
    if (found->cores > 0 && !spec->cluster.smt) {
        struct slurm_cores asked = {0};
        struct error ignored;
        if (job_spec_leaves_workers(spec) && !slurm_cores_ask(spec, &asked, &ignored))
            found->memory_bytes = asked.memory_bytes;
        snprintf(found->source, sizeof found->source, "slurm.node_cores of traind.conf");
        return 0;
    }
    if (slurm_cores_ask(spec, found, e) == 0)
        return 0;
    return error_set(
        e, e->code == ERR_UNREACHABLE ? ERR_UNREACHABLE : ERR_INVALID,
        "the number of %s of a node is unknown: %.600s; set cluster.threads_per_worker%s",
        spec->cluster.smt ? "hardware threads" : "cores", e->text,
        spec->cluster.smt ? "" : ", or have slurm.node_cores set in traind.conf");
}
