#include "daemon/job/job_cores.h"

#include <stdio.h>

#include "common/system/host.h"
#include "common/system/placement.h"
#include "daemon/job/job_estimate.h"
#include "daemon/job/job_manager_internal.h"
#include "daemon/job/job_resources.h"

static int cores_find_node(const struct job_manager *m, const struct job_spec *spec,
                           struct slurm_cores *found, struct problems *problems)
{
    struct error e;

    if (spec->cluster.launcher != JOB_LAUNCHER_SLURM) {
        found->cores = job_hosts_slots(spec, job_machine_slots(spec, m->slots));
        snprintf(found->source, sizeof found->source, "%s",
                 job_spec_names_hosts(spec) ? "the slots of cluster.hosts, or of traind's machine"
                                            : "the slots of traind's machine");
        return 0;
    }
    if (!slurm_cores_find(&m->slurm_settings, spec, found, &e))
        return 0;
    problems_add(problems, "/cluster/threads_per_worker", NULL, "%s", e.text);
    return -(int)e.code;
}

struct cores_for {
    const struct job_manager *m;
    const char *by;
};

static bool cores_speed_of(const struct job_spec *spec, struct plan_speed *speed, void *context)
{
    const struct cores_for *f = context;
    struct error ignored;

    return job_estimate_speed(f->m->store, spec, f->m->slots, f->by, speed, &ignored) == 0;
}

static int cores_choose_workers(const struct job_manager *m, struct job_spec *spec, const char *by,
                                struct job_cores *found, struct problems *problems)
{
    struct cores_for job = {m, by};
    struct plan_workers_node node = {.speed = cores_speed_of, .context = &job};
    int status = cores_find_node(m, spec, &found->node, problems);

    if (status)
        return status;
    node.cores = found->node.cores;
    node.domain_cores = found->node.socket_cores;
    node.memory_bytes = found->node.memory_bytes;
    if (spec->cluster.launcher == JOB_LAUNCHER_LOCAL && !job_spec_names_hosts(spec)) {
        struct placement_machine machine;
        placement_read_mine(&machine);
        node.memory_bytes = host_memory_bytes();
        node.domain_cores = spec->cluster.smt ? machine.numa.cpus : machine.numa.cores;
    }
    return plan_workers_choose(spec, &node, &found->workers, problems) ? 0 : -(int)ERR_INVALID;
}

static int cores_share_out(struct job_spec *spec, const struct slurm_cores *node,
                           struct problems *problems)
{
    int64_t workers = spec->cluster.workers_per_node;

    if (workers > node->cores) {
        problems_add(problems, "/cluster/workers_per_node", NULL,
                     "are %lld, but a node has %lld %s (%s)", (long long)workers,
                     (long long)node->cores, spec->cluster.smt ? "hardware threads" : "cores",
                     node->source);
        return -(int)ERR_INVALID;
    }
    spec->cluster.threads_per_worker = node->cores / workers;
    return 0;
}

int job_share_cores(const struct job_manager *m, struct job_spec *spec, const char *by,
                    struct job_cores *found, struct problems *problems)
{
    bool slurm = spec->cluster.launcher == JOB_LAUNCHER_SLURM;

    *found = (struct job_cores){0};
    if (job_spec_leaves_workers(spec))
        return cores_choose_workers(m, spec, by, found, problems);
    if (spec->cluster.threads_per_worker > 0 || (!slurm && job_spec_names_hosts(spec)))
        return 0;
    int status = cores_find_node(m, spec, &found->node, problems);
    return status || !slurm ? status : cores_share_out(spec, &found->node, problems);
}

void job_cores_to_plan_inputs(const struct job_cores *cores, struct plan_inputs *inputs)
{
    inputs->node_cores = cores->node.cores;
    inputs->cores_source = cores->node.source;
    inputs->workers = &cores->workers;
    if (!(inputs->speed.image_seconds > 0))
        inputs->speed = cores->workers.speed;
}
