/* What the launcher asks of a host before it trusts it with ranks: train-worker --probe. */
#pragma once

struct probe_options {
    const char *run_dir;   /* NULL: not asked for */
    int attempt;           /* processes of the run's earlier attempts are ended here */
    const char *interface; /* NULL: not asked for */
};

/* Prints one JSON object: "host", "machine" (the same for two names of one machine), "version",
 * "kernels", "digest" (of this program), "mpi", "whole", "numa" and "sockets" (how
 * many, cores and hardware threads of the smallest), "interface" and "run_dir" (whether they
 * are here; null: not asked for), "ended" (left-over processes). Starts no MPI. Returns the exit
 * status. */
int probe_print(const struct probe_options *options);
