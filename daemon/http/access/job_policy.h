/* What a job may name: folders below data_roots, arguments of mpirun that start nothing, and
 * environment variables the administrator has listed. */
#pragma once

#include <stdbool.h>

#include "common/job/job_spec.h"
#include "common/problem.h"
#include "daemon/config.h"

/* Adds a problem for each path of the document outside config's data_roots and for whatever the
 * checks below refuse; those of cluster.mpi_args only unless any_mpi_arg. */
void job_policy_check(const struct job_spec *spec, const struct config *config, bool any_mpi_arg,
                      struct problems *problems);

/* Adds a problem if the file of model.init is missing, damaged or of another network, so that this
 * is known before the job has waited. A missing file is none if Slurm's nodes may see it. */
void job_policy_check_weights(const struct job_spec *spec, struct problems *problems);

/* Adds a problem if the target of notices is a mail outside config's notify_mail_domains. */
void job_policy_check_target(const char *to, const char *pointer, const struct config *config,
                             struct problems *problems);

/* Adds a problem for the first argument that could start a program, load a library or read a file.
 * "--mca NAME VALUE" of parameters of network, placement and collectives is allowed, and so are
 * mpirun's reports. */
void job_policy_check_mpi_args(char *const *args, size_t count, struct problems *problems);

/* Adds a problem if the folder is none of config's mpi_prefixes. NULL is fine. */
void job_policy_check_mpi_prefix(const char *prefix, const struct config *config,
                                 struct problems *problems);

/* Adds a problem if the variable's name has none of config's job_env_prefixes, or is a parameter of
 * Open MPI (OMPI_MCA_...) that job_policy_check_mpi_args would refuse. */
void job_policy_check_env(const char *name, const char *value, const struct config *config,
                          struct problems *problems);
