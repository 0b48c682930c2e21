/* What a job of a caller may name: folders below data_roots, and arguments of mpirun that start
 * nothing. */
#ifndef TRAIND_DAEMON_HTTP_PERMIT_H
#define TRAIND_DAEMON_HTTP_PERMIT_H

#include <stdbool.h>

#include "common/job_spec.h"
#include "common/problem.h"

/* roots: "/a:/b", NULL: any folder. A path is followed through its symbolic links; one that is not
 * there is judged by its letters, and must not hold "..". */
bool permit_path(const char *roots, const char *path);

/* Adds a problem for each path of the document outside the roots and, unless any_mpi_arg, for each
 * of cluster.mpi_args that could start a program, load a library or read a file: "--mca NAME VALUE"
 * of the network's, placement's and collectives' parameters pass, and so do mpirun's reports. */
void permit_spec(const struct job_spec *spec, const char *roots, bool any_mpi_arg,
                 struct problems *problems);

/* Adds a problem if the file of model.init is not there, not sound, or of another network; where it
 * is not there and Slurm's nodes may see more than this machine, none. */
void permit_weights(const struct job_spec *spec, struct problems *problems);

/* The same as permit_spec for the arguments alone. */
void permit_mpi_args(char *const *args, size_t count, struct problems *problems);

#endif
