#include "daemon/job/hosts.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/job/size.h"
#include "daemon/launch/hosts.h"

bool job_hosts_of(const struct job_spec *spec, int64_t total, struct job_hosts *hosts)
{
    size_t count = hosts_are_named(spec) ? spec->cluster.host_count : 0;

    *hosts = (struct job_hosts){0};
    if (count == 0)
        return true;
    hosts->items = calloc(count, sizeof *hosts->items);
    if (!hosts->items)
        return false;
    for (size_t i = 0; i < count; i++)
        if (host_parse(spec->cluster.hosts[i], &hosts->items[hosts->count]))
            hosts->count++;
    hosts->slots = spec->cluster.workers_per_node * job_threads(spec, total);
    return true;
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
