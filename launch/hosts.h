/* The hosts of a job that does not only run on this machine. attempt-N/hosts.json contains the
 * questions for the hosts and their answers, attempt-N/hostfile the hosts that are used. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "launch/launch.h"

int hosts_write(const struct launch_request *request, const char *attempt_dir, struct error *e);

/* Implements traind --launch-hosts ATTEMPT_DIR MPIRUN ARGUMENT..., which the gated process
 * executes. Runs train-worker --probe on each host in hosts.json through the agent, in parallel and
 * with a time limit. The probe checks that the host answers and has the same worker and Open MPI,
 * the network interface and enough cores, and ends processes of earlier attempts. If there are as
 * many usable hosts as the job has nodes, writes the hostfile and executes mpirun. Otherwise prints
 * the problem of each host and returns the exit status. Without MPIRUN it only asks. */
int hosts_launch(char **argv);

#define HOSTS_MISSING_EXIT 3 /* exit status of hosts_launch: fewer usable hosts than nodes */

struct hosts_found {
    char **usable; /* entries of cluster.hosts, NULL-terminated */
    size_t usable_count, problem_count;
    char *problems; /* for example "host n2 does not answer: ...; host n3 has ..." */
};

/* Returns false if there is nothing to read (no hosts). Free it with hosts_found_clear. */
bool hosts_read(const char *attempt_dir, struct hosts_found *found);
void hosts_found_clear(struct hosts_found *found);

/* The hosts that an attempt uses: their names in the job, and the names they report themselves */
struct hosts_taken {
    char **names, **machines; /* (count) */
    size_t count;
};

/* Returns false if the attempt uses only this machine. Free the result with hosts_taken_clear. */
bool hosts_read_taken(const char *attempt_dir, struct hosts_taken *taken);
void hosts_taken_clear(struct hosts_taken *taken);

/* Returns the job's entry for the machine that reports this name, or NULL. The caller frees it. */
char *hosts_name_of(const char *attempt_dir, const char *machine_host);
