#include "daemon/job/job_hosts.h"

#include <stdlib.h>
#include <string.h>

bool job_hosts_of(const struct job_spec *spec, int64_t slots, struct job_hosts *hosts)
{
    size_t count = job_spec_names_hosts(spec) ? spec->cluster.host_count : 0;

    *hosts = (struct job_hosts){0};
    if (count == 0)
        return true;
    hosts->items = calloc(count, sizeof *hosts->items);
    if (!hosts->items)
        return false;
    for (size_t i = 0; i < count; i++)
        if (host_parse(spec->cluster.hosts[i], &hosts->items[hosts->count]))
            hosts->count++;
    hosts->slots = slots;
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
