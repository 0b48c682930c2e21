/* What a job of a caller may name: folders below data_roots, arguments of mpirun that start
 * nothing, and environment variables that the administrator has listed. */
#pragma once

#include <stdbool.h>

#include "common/job/job_spec.h"
#include "common/problem.h"
#include "daemon/config.h"

/* Adds a problem for each path of the document outside config's data_roots, for what permit_env,
 * permit_target and permit_mpi_prefix refuse, and, unless any_mpi_arg, for each of cluster.mpi_args
 * that could start a program, load a library or read a file: "--mca NAME VALUE" of the network's,
 * placement's and collectives' parameters pass, and so do mpirun's reports. */
void permit_spec(const struct job_spec *spec, const struct config *config, bool any_mpi_arg,
                 struct problems *problems);

/* Adds a problem if the file of model.init is not there, not sound, or of another network; where it
 * is not there and Slurm's nodes may see more than this machine, none. */
void permit_weights(const struct job_spec *spec, struct problems *problems);

/* Adds a problem if this target of notices is a mail outside config's notify_mail_domains. */
void permit_target(const char *to, const char *pointer, const struct config *config,
                   struct problems *problems);

/* The same as permit_spec for the arguments alone. */
void permit_mpi_args(char *const *args, size_t count, struct problems *problems);

/* Adds a problem if the folder is none of config's mpi_prefixes. NULL is right. */
void permit_mpi_prefix(const char *prefix, const struct config *config, struct problems *problems);

/* Adds a problem if a variable's name begins with none of config's job_env_prefixes, or if it is a
 * parameter of Open MPI's (OMPI_MCA_...) that permit_mpi_args would refuse. */
void permit_env(const char *name, const char *value, const struct config *config,
                struct problems *problems);
