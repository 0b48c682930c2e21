/* train-worker --probe: facts about a host that the launcher needs before it starts ranks there */
#pragma once

struct probe_options {
    const char *run_dir;   /* NULL: not wanted */
    int attempt;           /* processes of earlier attempts of the run are killed */
    const char *interface; /* NULL: not wanted */
};

/* Prints one JSON object: "host", "machine" (equal for two names of one machine), "version",
 * "kernels", "digest" (of this program), "mpi", "whole", "numa" and "sockets" (their number, and
 * cores and hardware threads of the smallest), "interface" and "run_dir" (whether they exist; null:
 * not wanted), "ended" (processes killed). Without MPI. Returns the exit status. */
int probe_print(const struct probe_options *options);
