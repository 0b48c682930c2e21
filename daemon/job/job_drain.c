#include "daemon/job/job_drain.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/system/host.h"
#include "common/xalloc.h"
#include "daemon/job/job_manager_internal.h"
#include "daemon/node/node.h"
#include "daemon/store/event.h"

/* Runs on its own thread: the command may take two seconds and must not block the loop. */
struct drain {
    char *command;
    char node[NODE_NAME_BYTES];
    char reason[NODE_REASON_BYTES];
};

static void *drain_run(void *context)
{
    struct drain *d = context;
    struct error e;

    if (node_tell(d->command, d->node, d->reason, &e))
        log_warning("node %s could not be drained: %s", d->node, e.text);
    free(d->command);
    free(d);
    return NULL;
}

/* One of the machines in its document, or that Slurm gave it. */
static bool drain_is_of_job(const struct active_job *a, const char *host)
{
    int count;

    if (a->machine.slurm)
        return host_list_place(a->slurm.nodes, host, &count) >= 0;
    return a->hosts.count ? job_hosts_find(&a->hosts, host) != NULL : host_is_here(host, false);
}

void drain_bad_node(struct job_manager *m, const struct active_job *a)
{
    const struct verdict *v = &a->verdict;
    const char *host = *v->bad_node ? v->bad_node
                       : v->drain == FAILURE_DRAIN_LOG && drain_is_of_job(a, v->who.host)
                           ? v->who.host
                           : "";
    char node[NODE_NAME_BYTES];
    pthread_t thread;
    struct error e;

    snprintf(node, sizeof node, "%.*s", (int)strcspn(host, "."), host);
    if (v->drain == FAILURE_NO_DRAIN || !m->drain_command || !node_name_is_valid(node))
        return;
    struct drain *d = xcalloc(1, sizeof *d);
    memcpy(d->node, node, sizeof d->node);
    snprintf(d->reason, sizeof d->reason, "job %lld, %s: %.600s", (long long)a->id, v->label,
             v->reason);
    d->command = xstrdup(m->drain_command);
    json_t *fields =
        must_alloc(json_pack("{s:s, s:o}", "host", d->node, "message",
                             json_sprintf("node %s is drained: %s", d->node, d->reason)));
    log_warning("node %s is drained: %s", d->node, d->reason);
    if (store_event_add(m->store, a->id, a->attempt, "warning", fields, clock_now(), &e))
        log_warning("job %lld: %s", (long long)a->id, e.text);
    json_decref(fields);
    if (pthread_create(&thread, NULL, drain_run, d) == 0) {
        pthread_detach(thread);
        return;
    }
    log_warning("node %s could not be drained: no memory", d->node);
    free(d->command);
    free(d);
}
