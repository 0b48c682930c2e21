/* The command line of mpirun and what it reads: argument vector, environment, hostfile. Pure but
 * for the two files; no shell is involved anywhere. */
#pragma once

#include <stdbool.h>

#include "common/run/attempt.h"
#include "launch/launch.h"

/* A NULL-terminated vector of strings; free with command_free. */
char **command_argv(const struct launch_request *request, const char *attempt_dir, bool as_root);

/* The same behind traind --launch-hosts, which asks the hosts first. */
char **command_on_hosts(char *const *argv, const char *attempt_dir);

/* What every mpirun that spans hosts is told of the network: a vector, as above. */
char **command_network(const struct launch_request *request);

/* The agent's words for this job, with cluster.ssh_port: a new string, NULL where there is no
 * agent. */
char *command_agent(const struct launch_request *request);

/* "-x NAME=value" for each of cluster.env: a vector, as above; NULL also where there are none. */
char **command_variables(const struct job_spec *spec);

/* The environment for mpirun: the given one (environ) without what an outer Open MPI, PMIx or Slurm
 * step left in it, with ATTEMPT_MARK and the thread counts. shared: the folder for the memory that
 * ranks share and for Open MPI's own files, unless that names one; NULL: Open MPI chooses. */
char **command_environment(char *const *inherited, const struct launch_request *request,
                           const char *attempt_dir, const char *shared);

/* Whether "NAME=value" begins with one of these. */
bool command_has_prefix(const char *variable, const char *const *prefixes, size_t count);

/* One line that a POSIX shell reads back as the same arguments. The caller frees it. */
char *command_quote(char *const *argv);

/* "localhost slots=2\n", for a job that names no hosts. The caller frees it. */
char *command_hostfile(const struct launch_request *request);

void command_free(char **strings);
