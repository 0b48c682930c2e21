/*
 * Where the workers of a machine go. mpirun's --map-by slot packs them core by core, so that on two
 * sockets of 24 cores the second of two workers with 22 threads would get two cores of the first
 * socket: workers are dealt out over NUMA domains wherever each fits into one, else over sockets.
 */
#ifndef TRAIND_COMMON_PLACEMENT_H
#define TRAIND_COMMON_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#define PLACEMENT_BYTES 48

/* Parts of a machine, and the cores (not hardware threads) of the smallest one. parts 0: not known.
 */
struct placement_parts {
    int64_t parts, cores;
};

struct placement_machine {
    struct placement_parts numa, sockets;
};

/* This machine, as far as this process may use it, or the whole of it. sys: "/sys", or a copy for
 * tests. */
void placement_read(const char *sys, bool whole, struct placement_machine *machine);

/* What fits on both. */
struct placement_machine placement_least(struct placement_machine a, struct placement_machine b);

/* "numa", "socket" or "slot": what so many workers of a machine are dealt out over. */
const char *placement_level(const struct placement_machine *machine, int64_t workers,
                            int64_t threads);

/* For mpirun's --map-by: "numa:PE=22". */
void placement_words(const struct placement_machine *machine, int64_t workers, int64_t threads,
                     char words[PLACEMENT_BYTES]);

#endif
