/*
 * Included before each source of libtraincomm, and of step.c, when they are compiled for SimGrid's
 * SMPI: what they do beside sending takes simulated time, which SMPI knows nothing of, and memory
 * of their size is not there for a thousand ranks. The sources stay as they are.
 *
 * - Memory from FOLD_BYTES on is folded: all ranks' lies on the same few pages, and what is in it
 *   means nothing (scale_folds; otherwise it is real, and so are the sums).
 * - A turn of a loop that waits takes time.
 * - The small non-blocking collectives are as in Open MPI's libnbc: they get on only while their
 *   rank looks at them. SMPI's own are a flat exchange of all with all.
 */
#pragma once

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
#include <mpi.h>

#define FOLD_BYTES ((size_t)1 << 16)

extern bool scale_folds;
extern struct scale_memory { /* bytes per second of a rank */
    double core, team;
} scale_memory;

#define SCALE_RANKS_MAX 8192

/* The calling rank's number below SCALE_RANKS_MAX, not from 0. */
int scale_me(void);
/* This rank is busy for so long. */
void scale_charge(double seconds);
/* A turn of a loop that waits: the longer it has, the longer. */
void scale_relax(void);
/* How long that turn is, at least `least`. */
double scale_turn(double least);

void *scale_allocate(size_t bytes, size_t alignment);
void scale_free(void *memory);
void *scale_memset(void *memory, int value, size_t bytes);

int scale_isend(const void *from, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                MPI_Request *request);
int scale_irecv(void *to, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                MPI_Request *request);
int scale_test(MPI_Request *request, int *ended, MPI_Status *status);
int scale_wait(MPI_Request *request, MPI_Status *status);
int scale_testall(int n, MPI_Request *requests, int *ended, MPI_Status *statuses);
int scale_iallreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
                     MPI_Comm comm, MPI_Request *request);
int scale_ibarrier(MPI_Comm comm, MPI_Request *request);
int scale_win_allocate_shared(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void *base,
                              MPI_Win *window);
int scale_win_shared_query(MPI_Win window, int rank, MPI_Aint *bytes, int *unit, void *base);
int scale_win_free(MPI_Win *window);
long scale_futex(void);

#ifndef SCALE_SHIM_C
#define malloc(n)                   scale_allocate(n, 64)
#define calloc(n, size)             scale_allocate((n) * (size), 64)
#define aligned_alloc(alignment, n) scale_allocate(n, alignment)
#define free(memory)                scale_free(memory)
#define memset(memory, value, n)    scale_memset(memory, value, n)
#define MPI_Isend                   scale_isend
#define MPI_Irecv                   scale_irecv
#define MPI_Test                    scale_test
#define MPI_Wait                    scale_wait
#define MPI_Testall                 scale_testall
#define MPI_Iallreduce              scale_iallreduce
#define MPI_Ibarrier                scale_ibarrier
#define MPI_Win_allocate_shared     scale_win_allocate_shared
#define MPI_Win_shared_query        scale_win_shared_query
#define MPI_Win_free                scale_win_free
#define __builtin_ia32_pause()      scale_relax()
#define syscall(...)                scale_futex()
#define sched_yield()               scale_relax()
#endif
