/* TAP from an MPI program: a check holds only if it holds on every rank; rank 0 prints. */
#pragma once

#include <mpi.h>
#include <stdio.h>

static int tap_count, tap_failed;

static inline void tap_check(int holds, const char *what)
{
    int all, rank;
    MPI_Allreduce(&holds, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    tap_count++;
    tap_failed += !all;
    if (rank == 0)
        printf("%s %d - %s\n", all ? "ok" : "not ok", tap_count, what);
}

static inline int tap_done(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("1..%d\n", tap_count);
    fflush(stdout);
    return tap_failed != 0;
}
