#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/placement.h"
#include "common/time_limit.h"
#include "daemon/job/manager.h"
#include "daemon/job/run_dir.h"
#include "daemon/launch/hosts.h"

#define RUN_FILE_LIMIT_BYTES ((size_t)16 << 20) /* of job.json and plan.json */

/* Hardware threads of a core of this machine, where the job counts those. */
static int64_t threads_of_core(const struct job_spec *spec)
{
    if (!spec->cluster.smt)
        return 1;
    int64_t cores = launch_node_slots(false);
    return (launch_node_slots(true) + cores - 1) / cores;
}

int64_t job_machine_slots(const struct job_spec *spec, int64_t total)
{
    return total * threads_of_core(spec);
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
    if (hosts_are_named(spec) && !job_hosts_are_here(spec))
        return 0;
    if (__builtin_mul_overflow(spec->cluster.workers_per_node, job_threads(spec, total), &needed))
        return INT64_MAX;
    int64_t together = threads_of_core(spec);
    return needed / together + (needed % together != 0);
}

int job_share_cores(const struct job_manager *m, struct job_spec *spec, struct slurm_cores *found,
                    struct problems *problems)
{
    int64_t workers = spec->cluster.workers_per_node;
    struct error e;

    *found = (struct slurm_cores){0};
    if (spec->cluster.launcher != JOB_LAUNCHER_SLURM || spec->cluster.threads_per_worker > 0)
        return 0;
    if (slurm_cores_find(&m->slurm_settings, spec, found, &e)) {
        problems_add(problems, "/cluster/threads_per_worker", NULL, "%s", e.text);
        return -(int)e.code;
    }
    if (workers > found->cores) {
        problems_add(problems, "/cluster/workers_per_node", NULL,
                     "are %lld, but a node has %lld %s (%s)", (long long)workers,
                     (long long)found->cores, spec->cluster.smt ? "hardware threads" : "cores",
                     found->source);
        return -(int)ERR_INVALID;
    }
    spec->cluster.threads_per_worker = found->cores / workers;
    return 0;
}

static int check_fits_slurm(const struct job_manager *m, const struct job_spec *spec,
                            struct error *e)
{
    if (m->slurm_settings.srun && spec->cluster.mpi_arg_count)
        return error_set(e, ERR_INVALID,
                         "/cluster/mpi_args: are for mpirun, and here srun starts the ranks "
                         "(slurm.start of traind.conf)");
    if (m->slurm_settings.srun && spec->cluster.mpi_prefix)
        return error_set(e, ERR_INVALID,
                         "/cluster/mpi_prefix: is for mpirun, and here srun starts the ranks "
                         "(slurm.start of traind.conf)");
    return slurm_check(&m->slurm_settings, e);
}

/* What is asked for by name must fit into this machine; of other hosts they say it themselves. */
static int check_binding(const struct job_manager *m, const struct job_spec *spec, struct error *e)
{
    struct placement_wish wish = placement_wish_of(spec, job_threads(spec, m->slots));
    struct placement_machine machine;
    struct error why;

    if (hosts_are_named(spec) || wish.bind == JOB_BIND_AUTO)
        return 0;
    placement_read("/sys", false, &machine);
    if (!placement_check(&machine, &wish, &why))
        return 0;
    return error_set(e, ERR_INVALID, "/cluster/bind: this machine %s", why.text);
}

int job_check_fits(const struct job_manager *m, const struct job_spec *spec, struct error *e)
{
    int64_t needed = job_slots_needed(spec, m->slots);

    if (spec->cluster.launcher == JOB_LAUNCHER_SLURM)
        return check_fits_slurm(m, spec, e);
    if (spec->cluster.nodes != 1 && !hosts_are_named(spec))
        return error_set(
            e, ERR_INVALID,
            "/cluster/nodes: launcher \"local\" needs to know which %lld machines: name "
            "them in cluster.hosts, as in [\"n1\", \"n2:16\"]",
            (long long)spec->cluster.nodes);
    if (needed <= m->slots)
        return check_binding(m, spec, e);
    return error_set(
        e, ERR_INVALID,
        "the job takes %lld x %lld = %lld slots (workers_per_node x "
        "threads_per_worker%s), but this node has %lld: use fewer workers or threads, or set "
        "slots in traind.conf",
        (long long)spec->cluster.workers_per_node, (long long)job_threads(spec, m->slots),
        (long long)needed, spec->cluster.smt ? ", hardware threads" : "", (long long)m->slots);
}

static bool says(const char *path, const char *text)
{
    char *there;
    size_t bytes;
    bool same;

    if (file_read(path, RUN_FILE_LIMIT_BYTES, &there, &bytes, NULL))
        return false;
    same = bytes == strlen(text) && memcmp(there, text, bytes) == 0;
    free(there);
    return same;
}

/* Not synced: the database has it, and it is looked at before each start. */
static int write_if_other(const char *run_dir, const char *name, const char *text, struct error *e)
{
    char path[PATH_MAX];

    if ((size_t)snprintf(path, sizeof path, "%s/%s", run_dir, name) >= sizeof path)
        return error_set(e, ERR_INVALID, "the path of the run directory is too long: %s", run_dir);
    return says(path, text) ? 0 : file_write_unsynced(path, text, strlen(text), e);
}

int job_prepare_run_dir(struct job_manager *m, const struct store_job *job, struct error *e)
{
    pthread_mutex_lock(&m->files);
    int status = run_dir_claim(m->store, job, e);
    if (!status)
        status = write_if_other(job->run_dir, "job.json", job->spec, e);
    if (!status)
        status = write_if_other(job->run_dir, "plan.json", job->plan, e);
    pthread_mutex_unlock(&m->files);
    return status;
}

char *job_json_text(json_t *value)
{
    char *text = value ? json_dumps(value, JSON_INDENT(2) | JSON_REAL_PRECISION(16)) : NULL;
    json_decref(value);
    return text;
}

struct store_job_size job_size(const struct job_manager *m, const struct job_spec *spec,
                               const struct plan *plan)
{
    bool known = plan->predicted.known;

    bool slurm = spec->cluster.launcher == JOB_LAUNCHER_SLURM;
    return (struct store_job_size){
        .launcher = slurm ? "slurm" : "local",
        .slots = slurm ? 0 : job_slots_needed(spec, m->slots),
        .train_steps = plan->train_steps,
        .global_batch = plan->global_batch,
        .evaluations = plan_evaluations(plan, spec),
        .eval_images = plan->eval_images,
        .time_limit_seconds = time_limit_seconds(spec->cluster.time_limit),
        .predicted_seconds = known ? plan->predicted.ttt_seconds.value : NAN,
        .predicted_low_seconds = known ? plan->predicted.ttt_seconds.low : NAN,
        .predicted_high_seconds = known ? plan->predicted.ttt_seconds.high : NAN,
    };
}

static int insert(struct job_manager *m, const struct job_submission *s, const char *spec,
                  const char *plan, int64_t *id, bool *existed, struct error *e)
{
    struct store_job_new row = {
        .name = s->spec->name,
        .submitted_by = s->submitted_by,
        .spec = spec,
        .plan = plan,
        .idempotency_key = s->idempotency_key,
        .request_digest = s->request_digest,
        .priority = s->spec->priority,
        .size = job_size(m, s->spec, s->plan),
        .reason = "just submitted",
        .now = clock_now(),
    };
    return store_job_insert(m->store, &row, id, existed, e);
}

int job_submit(struct job_manager *m, const struct job_submission *s, int64_t *id, bool *existed,
               struct error *e)
{
    bool before = false;
    int status = job_check_fits(m, s->spec, e);

    if (status)
        return status;
    char *spec = job_json_text(job_spec_to_json(s->spec));
    char *plan = job_json_text(plan_to_json(s->plan));
    if (!spec || !plan)
        status = error_set(e, ERR_NO_MEMORY, "no memory for the job document");
    if (!status)
        status = insert(m, s, spec, plan, id, &before, e);
    free(spec);
    free(plan);
    if (status)
        return status;
    if (existed)
        *existed = before;
    manager_wake(m);
    return 0;
}
