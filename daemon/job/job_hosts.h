/*
 * Which hosts the jobs of launcher local take. Slots are counted for each host by its name: a job
 * that says a host's slots ("n1:16") shares them with others that do, one that does not has the
 * host to itself. Of this machine's own slots (traind.conf) a job takes its part only where it
 * names this machine, or no hosts at all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job/job_spec.h"
#include "common/system/host.h"

/* What a job takes of its hosts. */
struct job_hosts {
    struct host *items;
    size_t count;
    int64_t slots; /* of each */
};

/* slots: that it takes of each host. All zero for a job that names no hosts. False: no memory. Free
 * with job_hosts_clear. */
bool job_hosts_of(const struct job_spec *spec, int64_t slots, struct job_hosts *hosts);
void job_hosts_clear(struct job_hosts *hosts);

/* NULL: the job does not name it. */
const struct host *job_hosts_find(const struct job_hosts *hosts, const char *name);
