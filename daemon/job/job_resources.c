#include "daemon/job/job_resources.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/job_text.h"
#include "common/system/host.h"
#include "common/system/placement.h"
#include "common/xalloc.h"
#include "daemon/job/job.h"
#include "daemon/job/job_estimate.h"
#include "daemon/launch/slurm.h"
#include "launch/hosts.h"

static bool resources_job_hosts_are_here(const struct job_spec *spec)
{
    struct host host;

    for (size_t i = 0; i < spec->cluster.host_count; i++)
        if (host_parse(spec->cluster.hosts[i], &host) && host_is_here(host.name, false))
            return true;
    return false;
}

int64_t job_hosts_slots(const struct job_spec *spec, int64_t total)
{
    int64_t least = 0;
    struct host host;

    for (size_t i = 0; job_spec_names_hosts(spec) && i < spec->cluster.host_count; i++)
        if (host_parse(spec->cluster.hosts[i], &host) && host.slots &&
            (least == 0 || host.slots < least))
            least = host.slots;
    return least ? least : total;
}

/* Returns the hardware threads per core of this machine if the job counts those, otherwise 1. */
static int64_t resources_threads_of_core(const struct job_spec *spec)
{
    if (!spec->cluster.smt)
        return 1;
    int64_t cores = launch_node_slots(false);
    return (launch_node_slots(true) + cores - 1) / cores;
}

int64_t job_machine_slots(const struct job_spec *spec, int64_t total)
{
    return total * resources_threads_of_core(spec);
}

int64_t job_threads(const struct job_spec *spec, int64_t total)
{
    int64_t threads = spec->cluster.threads_per_worker;
    if (threads <= 0 && spec->cluster.workers_per_node > 0)
        threads =
            job_hosts_slots(spec, job_machine_slots(spec, total)) / spec->cluster.workers_per_node;
    return threads > 0 ? threads : 1;
}

int64_t job_slots_needed(const struct job_spec *spec, int64_t total)
{
    int64_t needed;
    if (job_spec_names_hosts(spec) && !resources_job_hosts_are_here(spec))
        return 0;
    if (__builtin_mul_overflow(spec->cluster.workers_per_node, job_threads(spec, total), &needed))
        return INT64_MAX;
    int64_t together = resources_threads_of_core(spec);
    return needed / together + (needed % together != 0);
}

static int resources_check_fits_slurm(const struct job_manager *m, const struct job_spec *spec,
                                      struct problems *problems, struct error *e)
{
    if (job_manager_slurm(m)->srun && spec->cluster.mpi_arg_count)
        problems_add(problems, "/cluster/mpi_args", NULL,
                     "are for mpirun, and here srun starts the workers (slurm.start of "
                     "traind.conf)");
    if (job_manager_slurm(m)->srun && spec->cluster.mpi_prefix)
        problems_add(problems, "/cluster/mpi_prefix", NULL,
                     "is for mpirun, and here srun starts the workers (slurm.start of "
                     "traind.conf)");
    return problems->count ? 0 : slurm_check(e);
}

/* Checks that a binding by name is possible on this machine; other hosts check it themselves. */
static void resources_check_binding(const struct job_manager *m, const struct job_spec *spec,
                                    struct problems *problems)
{
    struct placement_wish wish =
        placement_wish_of(spec, job_threads(spec, job_manager_total_slots(m)));
    struct placement_machine machine;
    struct error why;

    if (job_spec_names_hosts(spec) || wish.bind == JOB_BIND_AUTO)
        return;
    placement_read_mine(&machine);
    if (placement_check(&machine, &wish, &why))
        problems_add(problems, "/cluster/bind", NULL, "this machine %s", why.text);
}

int job_check_fits(const struct job_manager *m, const struct job_spec *spec,
                   struct problems *problems, struct error *e)
{
    int64_t total = job_manager_total_slots(m), needed = job_slots_needed(spec, total);

    if (spec->cluster.launcher == JOB_LAUNCHER_SLURM)
        return resources_check_fits_slurm(m, spec, problems, e);
    if (spec->cluster.nodes != 1 && !job_spec_names_hosts(spec))
        problems_add(problems, "/cluster/nodes", NULL,
                     "launcher \"local\" needs to know which %lld machines: name them in "
                     "cluster.hosts, as in [\"n1\", \"n2:16\"]",
                     (long long)spec->cluster.nodes);
    if (needed > total)
        problems_add(
            problems, "/cluster/workers_per_node", NULL,
            "the job takes %lld x %lld = %lld slots (workers_per_node x threads_per_worker%s), but "
            "this node has %lld: use fewer workers or threads, or set slots in traind.conf",
            (long long)spec->cluster.workers_per_node, (long long)job_threads(spec, total),
            (long long)needed, spec->cluster.smt ? ", hardware threads" : "", (long long)total);
    else
        resources_check_binding(m, spec, problems);
    return 0;
}

void job_check_caps(struct job_manager *m, const struct job_spec *spec, struct problems *problems)
{
    int64_t max = job_manager_limits(m).caps.slots,
            needed = job_slots_needed(spec, job_manager_total_slots(m));

    if (spec->cluster.launcher == JOB_LAUNCHER_SLURM || !max || needed <= max)
        return;
    problems_add(problems, "/cluster/workers_per_node", NULL,
                 "the job takes %lld slots, and one user may take %lld at the same time "
                 "(max_slots_per_user of traind.conf): use fewer workers or threads",
                 (long long)needed, (long long)max);
}

/* A job in Slurm, or one that does not give a host's slots, has its nodes to itself. */
double job_node_share(const struct job_spec *spec, int64_t total)
{
    bool shares = spec->cluster.launcher == JOB_LAUNCHER_LOCAL;
    int64_t cores = launch_node_slots(false);
    double own;

    if (!shares || spec->cluster.workers_per_node < 1)
        return 1;
    if (!job_spec_names_hosts(spec)) {
        own = (double)job_slots_needed(spec, total);
        return fmin(1, own / (double)(total > cores ? total : cores));
    }
    own = (double)(spec->cluster.workers_per_node * job_threads(spec, total));
    double slots = (double)job_hosts_slots(spec, 0);
    return slots > 0 ? fmin(1, own / slots) : 1;
}

struct store_job_size job_size(const struct job_manager *m, const struct job_spec *spec,
                               const struct plan *plan)
{
    int64_t total = job_manager_total_slots(m);
    bool known = plan->predicted.known;
    bool slurm = spec->cluster.launcher == JOB_LAUNCHER_SLURM;
    return (struct store_job_size){
        .launcher = slurm ? "slurm" : "local",
        .slots = slurm ? 0 : job_slots_needed(spec, total),
        .train_steps = plan->train_steps,
        .global_batch = llround(plan_mean_batch(plan)),
        .evaluations = plan_evaluations(plan, spec),
        .nodes = spec->cluster.nodes,
        .node_share = job_node_share(spec, total),
        .eval_images = plan->eval_images,
        .time_limit_seconds = time_limit_seconds(spec->cluster.time_limit),
        .predicted_seconds = known ? plan->predicted.ttt_seconds.value : NAN,
        .predicted_low_seconds = known ? plan->predicted.ttt_seconds.low : NAN,
        .predicted_high_seconds = known ? plan->predicted.ttt_seconds.high : NAN,
    };
}

void job_hosts_of(const struct job_spec *spec, int64_t slots, struct job_hosts *hosts)
{
    size_t count = job_spec_names_hosts(spec) ? spec->cluster.host_count : 0;

    *hosts = (struct job_hosts){0};
    if (count == 0)
        return;
    hosts->items = xcalloc(count, sizeof *hosts->items);
    for (size_t i = 0; i < count; i++)
        if (host_parse(spec->cluster.hosts[i], &hosts->items[hosts->count]))
            hosts->count++;
    hosts->slots = slots;
}

void job_hosts_clear(struct job_hosts *hosts)
{
    free(hosts->items);
    *hosts = (struct job_hosts){0};
}

const struct host *job_hosts_find(const struct job_hosts *hosts, const char *name)
{
    for (size_t i = 0; i < hosts->count; i++)
        if (strcmp(hosts->items[i].name, name) == 0)
            return &hosts->items[i];
    return NULL;
}

static int resources_find_node(const struct job_manager *m, const struct job_spec *spec,
                               struct slurm_cores *found, struct problems *problems)
{
    struct error e;

    if (spec->cluster.launcher != JOB_LAUNCHER_SLURM) {
        found->cores = job_hosts_slots(spec, job_machine_slots(spec, job_manager_total_slots(m)));
        snprintf(found->source, sizeof found->source, "%s",
                 job_spec_names_hosts(spec) ? "the slots of cluster.hosts, or of traind's machine"
                                            : "the slots of traind's machine");
        return 0;
    }
    if (!slurm_cores_find(job_manager_slurm(m), spec, found, &e))
        return 0;
    problems_add(problems, "/cluster/threads_per_worker", NULL, "%s", e.text);
    return -(int)e.code;
}

struct resources_for {
    const struct job_manager *m;
    const char *by;
};

static bool resources_speed_of(const struct job_spec *spec, struct plan_speed *speed, void *context)
{
    const struct resources_for *f = context;
    struct error ignored;

    return job_estimate_speed(job_manager_store(f->m), spec,
                              job_threads(spec, job_manager_total_slots(f->m)), f->by, speed,
                              &ignored) == 0;
}

static int resources_choose_workers(const struct job_manager *m, struct job_spec *spec,
                                    const char *by, struct job_cores *found,
                                    struct problems *problems)
{
    struct resources_for job = {m, by};
    struct plan_workers_node node = {.speed = resources_speed_of, .context = &job};
    int status = resources_find_node(m, spec, &found->node, problems);

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

static int resources_share_out(struct job_spec *spec, const struct slurm_cores *node,
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
        return resources_choose_workers(m, spec, by, found, problems);
    if (spec->cluster.threads_per_worker > 0 || (!slurm && job_spec_names_hosts(spec)))
        return 0;
    int status = resources_find_node(m, spec, &found->node, problems);
    return status || !slurm ? status : resources_share_out(spec, &found->node, problems);
}

void job_cores_to_plan_inputs(const struct job_cores *cores, struct plan_inputs *inputs)
{
    inputs->node_cores = cores->node.cores;
    inputs->cores_source = cores->node.source;
    inputs->workers = &cores->workers;
    if (!(inputs->speed.image_seconds > 0))
        inputs->speed = cores->workers.speed;
}
