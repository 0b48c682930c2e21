/*
 * The hosts of a job that runs on others than this one: what is asked of them before mpirun is let
 * loose, and what came of it. Both stand in attempt-N/hosts.json; the hosts that are taken are in
 * attempt-N/hostfile.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "launch/launch.h"

/* Writes attempt-N/hosts.json for hosts_launch. */
int hosts_write(const struct launch_request *request, const char *attempt_dir, struct error *e);

/*
 * Program: traind --launch-hosts ATTEMPT_DIR MPIRUN ARGUMENT... What the gated process becomes.
 * Asks every host of hosts.json by train-worker --probe, over the agent, all at once and with a
 * limit: that it answers, has the same worker and Open MPI, the network interface, and cores
 * enough; what an earlier attempt left there is ended. With as many hosts as the job has nodes it
 * writes the hostfile and becomes mpirun. Otherwise it says which host has what problem and returns
 * the exit status.
 */
int hosts_launch(char **argv);

#define HOSTS_MISSING_EXIT 3 /* of hosts_launch: fewer hosts than nodes */

/* What hosts_launch found. */
struct hosts_found {
    char **usable; /* entries of cluster.hosts, NULL-terminated */
    size_t usable_count, problem_count;
    char *problems; /* "host n2 does not answer: ...; host n3 has ..." */
};

/* False: there is nothing to be read, as for a job without hosts. Free with hosts_found_clear. */
bool hosts_read(const char *attempt_dir, struct hosts_found *found);
void hosts_found_clear(struct hosts_found *found);

/* The hosts that the attempt runs on: as the job names them, and as they call themselves. */
struct hosts_taken {
    char **names, **machines; /* (count) */
    size_t count;
};

/* False: it runs on this machine alone. Free with hosts_taken_clear. */
bool hosts_read_taken(const char *attempt_dir, struct hosts_taken *taken);
void hosts_taken_clear(struct hosts_taken *taken);

/* The job's entry of that machine, which calls itself so; NULL: it is none. A new string. */
char *hosts_name_of(const char *attempt_dir, const char *machine_host);
