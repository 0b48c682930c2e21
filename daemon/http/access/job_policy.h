/* Restrictions on job documents: folders must be below data_roots, mpirun arguments must not start
 * programs, and environment variables must be allowed by the administrator. */
#pragma once

#include <stdbool.h>

#include "common/job/job_spec.h"
#include "common/problem.h"
#include "daemon/config.h"

/* Adds a problem for each path of the document outside config's data_roots and for everything the
 * checks below reject. any_mpi_arg: skip the check of cluster.mpi_args. */
void job_policy_check(const struct job_spec *spec, const struct config *config, bool any_mpi_arg,
                      struct problems *problems);

/* Adds a problem if the file of model.init is missing, damaged or for another network, so that the
 * user learns this at submission. A missing file is not a problem if Slurm's nodes may see it. */
void job_policy_check_weights(const struct job_spec *spec, struct problems *problems);

/* Adds a problem if the notice target is a mail address outside config's notify_mail_domains. */
void job_policy_check_target(const char *to, const char *pointer, const struct config *config,
                             struct problems *problems);

/* Adds a problem for the first argument that could start a program, load a library or read a file.
 * Allows "--mca NAME VALUE" for parameters of network, placement and collectives, and mpirun's
 * reports. */
void job_policy_check_mpi_args(char *const *args, size_t count, struct problems *problems);

/* Adds a problem if the folder is not listed in config's mpi_prefixes. NULL-safe. */
void job_policy_check_mpi_prefix(const char *prefix, const struct config *config,
                                 struct problems *problems);

/* Adds a problem if the variable's name begins with none of config's job_env_prefixes, or if it is
 * an Open MPI parameter (OMPI_MCA_...) that job_policy_check_mpi_args would reject. */
void job_policy_check_env(const char *name, const char *value, const struct config *config,
                          struct problems *problems);
