/* Builds the command line of mpirun, its environment and its hostfile. Pure functions; no shell is
 * involved. Lists of strings are NULL-terminated; free them with command_free. */
#pragma once

#include <stdbool.h>

#include "common/run/attempt.h"
#include "launch/launch.h"

char **command_argv(const struct launch_request *request, const char *attempt_dir, bool as_root);

/* Returns the same command, to be run by traind --launch-hosts (hosts.h). */
char **command_on_hosts(char *const *argv, const char *attempt_dir);

char **command_network(const struct launch_request *request);

/* Returns the agent's command with cluster.ssh_port; NULL: no agent. The caller frees it. */
char *command_agent(const struct launch_request *request);

/* Returns "-x", "NAME=value" for each variable in cluster.env; NULL if there are none. */
char **command_variables(const struct job_spec *spec);

/* Returns the environment for mpirun: the inherited one without the variables of an outer Open MPI,
 * PMIx or Slurm step, plus ATTEMPT_MARK and the thread counts. shared: the folder for the ranks'
 * shared memory and Open MPI's files, unless the environment names one; NULL: Open MPI's choice. */
char **command_environment(char *const *inherited, const struct launch_request *request,
                           const char *attempt_dir, const char *shared);

bool command_has_prefix(const char *variable, const char *const *prefixes, size_t count);

/* Returns a line that a POSIX shell parses into the same arguments. The caller frees it. */
char *command_quote(char *const *argv);

/*
 * Returns "localhost slots=2
 * ", the hostfile of a job without hosts. The caller frees it.
 */
char *command_hostfile(const struct launch_request *request);

void command_free(char **strings);
