#include "daemon/job/job_grow.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "common/run/attempt.h"
#include "common/system/file.h"
#include "common/xalloc.h"
#include "daemon/job/job_estimate.h"
#include "daemon/job/job_manager_internal.h"
#include "daemon/job/job_queue.h"
#include "daemon/job/job_replan.h"
#include "launch/hosts.h"

#define ASK_SECONDS 30.0 /* between two questions to the hosts; restart.grow_seconds if less */

/* ---------------------------------------------------------------- asking the hosts */

static void grow_folder(const struct active_job *a, char path[PATH_MAX])
{
    file_path(path, NULL, "%s/hosts-to-grow", a->attempt_dir);
}

/* The job with the hosts that it wants, and one node more than it has. The caller frees *hosts. */
static struct job_spec grow_spec(const struct active_job *a, char ***hosts)
{
    struct job_spec spec = *a->spec;

    spec.cluster.host_count = json_array_size(a->grow.hosts);
    spec.cluster.hosts = *hosts = xcalloc(spec.cluster.host_count + 1, sizeof **hosts);
    for (size_t i = 0; i < spec.cluster.host_count; i++)
        spec.cluster.hosts[i] = (char *)json_string_value(json_array_get(a->grow.hosts, i));
    spec.cluster.nodes++;
    return spec;
}

/* Probes end processes of earlier attempts only, so the hosts of this one can be asked too. */
static int grow_ask(struct job_manager *m, struct active_job *a, struct error *e)
{
    char folder[PATH_MAX], **hosts, *worker = NULL;
    struct job_spec spec = grow_spec(a, &hosts);
    struct launch_request request = {.attempt = a->attempt,
                                     .run_dir = a->run_dir,
                                     .spec = &spec,
                                     .threads = job_threads(a->spec, m->slots),
                                     .bind = spec.cluster.bind,
                                     .agent = m->agent};
    char *argv[] = {"/proc/self/exe", HOSTS_LAUNCH, folder, NULL};
    struct spawn_request run = {
        .argv = argv, .stream = {SPAWN_MUTE, SPAWN_MUTE}
    };

    grow_folder(a, folder);
    int status = launch_find_program(m->worker, &worker, e);
    request.worker = worker;
    if (!status)
        status = file_make_dirs_unsynced(folder, e);
    if (!status)
        status = hosts_write(&request, folder, e);
    if (!status)
        status = spawn_begin(&run, &a->grow.asking, e);
    a->grow.asked = !status;
    json_decref(a->grow.changes); /* could not be written */
    a->grow.changes = NULL;
    free(worker);
    free(hosts);
    return status;
}

/* ---------------------------------------------------------------- their answers */

static void grow_decide(struct job_manager *m, struct active_job *a, json_t *hosts)
{
    json_int_t wanted = json_integer_value(json_get_at(a->grow.wanted, "/cluster/nodes"));
    json_int_t nodes = (json_int_t)json_array_size(hosts), had = a->spec->cluster.nodes;
    struct error e;

    nodes = nodes < wanted ? nodes : wanted;
    json_t *changes =
        must_alloc(json_pack("{s:{s:I, s:O}}", "cluster", "nodes", nodes, "hosts", hosts));
    if (nodes > had && job_replan_grow(m, a->id, changes, false, &e)) {
        if (a->grow.refused != nodes)
            log_info("job %lld does not grow to %lld nodes: %s", (long long)a->id, nodes, e.text);
        a->grow.refused = nodes;
    } else if (nodes > had) {
        log_info("job %lld: %lld of %lld nodes; grows to %lld", (long long)a->id, had, wanted,
                 nodes);
        a->grow.changes = json_incref(changes);
    }
    json_decref(changes);
}

static void grow_conclude(struct job_manager *m, struct active_job *a)
{
    struct hosts_found found;
    struct store_job job;
    char folder[PATH_MAX], **wanted;
    struct error e;

    grow_folder(a, folder);
    if (!hosts_read(folder, &found))
        return;
    json_t *hosts = json_array();
    struct job_spec spec = grow_spec(a, &wanted);
    for (size_t i = 0; i < found.usable_count; i++)
        json_array_append_new(hosts, json_string(found.usable[i]));
    if (store_job_get(m->store, a->id, &job, &e) == 0) {
        double left = job_estimate_end(m->store, &job, launch_elapsed_seconds(&a->process)).likely;
        if (left > (double)spec.restart.grow_seconds && /* otherwise not worth it */
            job_queue_would_start(m, a, &job, job_slots_needed(&spec, m->slots), hosts))
            grow_decide(m, a, hosts);
        store_job_clear(&job);
    }
    free(wanted);
    json_decref(hosts);
    hosts_found_clear(&found);
}

bool job_grow_is_due(struct job_manager *m, struct active_job *a)
{
    struct job_growth *g = &a->grow;
    double now = clock_monotonic();
    struct error e;

    if (!g->wanted || a->machine.phase != PHASE_RUNNING || a->machine.stop != STOP_NONE)
        return false;
    if (attempt_flag_is_set(a->attempt_dir, ATTEMPT_FLAG_GROW))
        return true;
    if (now < g->ask_at || !a->spec || !a->spec->restart.grow ||
        (g->asking.pid > 0 && !spawn_look(&g->asking, 0)))
        return false;
    double at_least = (double)a->spec->restart.grow_seconds;
    double early = at_least - launch_elapsed_seconds(&a->process);
    g->ask_at = now + (early > 0 ? early : g->asked ? fmin(ASK_SECONDS, fmax(at_least, 1)) : 0);
    if (g->asked) {
        g->asked = false;
        spawn_clear(&g->asking);
        grow_conclude(m, a);
    } else if (early <= 0 && grow_ask(m, a, &e)) {
        log_warning("job %lld: cannot ask its hosts: %s", (long long)a->id, e.text);
        g->ask_at = now + ASK_SECONDS;
    }
    return g->changes != NULL;
}
