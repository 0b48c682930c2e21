/* The command line of mpirun, its environment and its hostfile. Pure; no shell is involved.
 * Vectors of strings are NULL-terminated; free them with command_free. */
#pragma once

#include <stdbool.h>

#include "common/run/attempt.h"
#include "launch/launch.h"

char **command_argv(const struct launch_request *request, const char *attempt_dir, bool as_root);

/* The same, run by traind --launch-hosts (hosts.h). */
char **command_on_hosts(char *const *argv, const char *attempt_dir);

/* The network parameters of every mpirun that spans hosts. */
char **command_network(const struct launch_request *request);

/* The agent's command with cluster.ssh_port; NULL: there is no agent. The caller frees it. */
char *command_agent(const struct launch_request *request);

/* "-x", "NAME=value" for each of cluster.env; NULL if there are none. */
char **command_variables(const struct job_spec *spec);

/* The environment for mpirun: the inherited one without the variables of an outer Open MPI, PMIx or
 * Slurm step, with ATTEMPT_MARK and the thread counts. shared: the folder for the ranks' shared
 * memory and Open MPI's files, unless the inherited one names one; NULL: Open MPI chooses. */
char **command_environment(char *const *inherited, const struct launch_request *request,
                           const char *attempt_dir, const char *shared);

/* Whether "NAME=value" begins with one of these. */
bool command_has_prefix(const char *variable, const char *const *prefixes, size_t count);

/* One line that a POSIX shell parses into the same arguments. The caller frees it. */
char *command_quote(char *const *argv);

/* "localhost slots=2\n", for a job that names no hosts. The caller frees it. */
char *command_hostfile(const struct launch_request *request);

void command_free(char **strings);
