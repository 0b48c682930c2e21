#include "daemon/job/job_drain.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/system/host.h"
#include "daemon/job/job_manager_internal.h"
#include "daemon/node/node.h"
#include "daemon/store/event.h"

/* Of a thread of its own: the command may take two seconds, for which the loop does not wait. */
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

static bool drain_start(struct drain *d)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, drain_run, d))
        return false;
    pthread_detach(thread);
    return true;
}

/* One of the machines of its document, or that Slurm gave it: files of the attempt are the
 * workers'. */
static bool drain_is_of_job(const struct active_job *a, const char *host)
{
    int count;

    if (a->machine.slurm)
        return host_list_place(a->slurm.nodes, host, &count) >= 0;
    return a->hosts.count ? job_hosts_find(&a->hosts, host) != NULL : host_is_here(host, false);
}

/* "" for none. */
static void drain_choose(const struct active_job *a, char node[NODE_NAME_BYTES])
{
    const struct verdict *v = &a->verdict;
    const char *host = *v->bad_node ? v->bad_node
                       : v->drain == FAILURE_DRAIN_LOG && drain_is_of_job(a, v->who.host)
                           ? v->who.host
                           : "";

    snprintf(node, NODE_NAME_BYTES, "%.*s", (int)strcspn(host, "."), host);
    if (!node_name_is_valid(node))
        node[0] = '\0';
}

static void drain_say(struct job_manager *m, const struct active_job *a, const struct drain *d)
{
    json_t *fields = json_pack("{s:s, s:o}", "host", d->node, "message",
                               json_sprintf("node %s is drained: %s", d->node, d->reason));
    struct error e;

    log_warning("node %s is drained: %s", d->node, d->reason);
    if (fields && store_event_add(m->store, a->id, a->attempt, "warning", fields, clock_now(), &e))
        log_warning("job %lld: %s", (long long)a->id, e.text);
    json_decref(fields);
}

void drain_bad_node(struct job_manager *m, const struct active_job *a)
{
    char node[NODE_NAME_BYTES];

    if (a->verdict.drain == FAILURE_NO_DRAIN || !m->drain_command)
        return;
    drain_choose(a, node);
    struct drain *d = *node ? calloc(1, sizeof *d) : NULL;
    if (!d)
        return;
    memcpy(d->node, node, sizeof d->node);
    snprintf(d->reason, sizeof d->reason, "job %lld, %s: %.600s", (long long)a->id,
             a->verdict.label, a->verdict.reason);
    d->command = strdup(m->drain_command);
    drain_say(m, a, d);
    if (d->command && drain_start(d))
        return;
    log_warning("node %s could not be drained: no memory", d->node);
    free(d->command);
    free(d);
}
