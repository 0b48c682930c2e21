/* The hosts of a job that runs on others than this machine. attempt-N/hosts.json holds what they
 * are asked and their answers; attempt-N/hostfile those that are used. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "launch/launch.h"

/* Writes attempt-N/hosts.json for hosts_launch. */
int hosts_write(const struct launch_request *request, const char *attempt_dir, struct error *e);

/* Program traind --launch-hosts ATTEMPT_DIR MPIRUN ARGUMENT..., which the gated process becomes.
 * Runs train-worker --probe on every host of hosts.json through the agent, in parallel and with a
 * time limit: it checks that the host answers, has the same worker and Open MPI, the network
 * interface and enough cores, and ends what an earlier attempt left there. With as many usable
 * hosts as the job has nodes it writes the hostfile and execs mpirun. Otherwise it prints the
 * problem of each host and returns the exit status. */
int hosts_launch(char **argv);

#define HOSTS_MISSING_EXIT 3 /* of hosts_launch: fewer usable hosts than nodes */

/* What hosts_launch found. */
struct hosts_found {
    char **usable; /* entries of cluster.hosts, NULL-terminated */
    size_t usable_count, problem_count;
    char *problems; /* "host n2 does not answer: ...; host n3 has ..." */
};

/* False if there is nothing to read, as for a job without hosts. Free with hosts_found_clear. */
bool hosts_read(const char *attempt_dir, struct hosts_found *found);
void hosts_found_clear(struct hosts_found *found);

/* The hosts that the attempt runs on: as the job names them, and their own names. */
struct hosts_taken {
    char **names, **machines; /* (count) */
    size_t count;
};

/* False: it runs on this machine alone. Free with hosts_taken_clear. */
bool hosts_read_taken(const char *attempt_dir, struct hosts_taken *taken);
void hosts_taken_clear(struct hosts_taken *taken);

/* The job's entry of the machine with this own name; NULL: none. The caller frees it. */
char *hosts_name_of(const char *attempt_dir, const char *machine_host);
