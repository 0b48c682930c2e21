/*
 * libtraincomm: the communication needed to train one network on many ranks: equal weights at the
 * start, the sum of all gradients in every step, agreement on errors and on the end.
 *
 * Gradients are in one flat buffer, in the order of the layers; backward completes it from the end
 * to the beginning. The library sums it over all ranks in buckets, while backward continues:
 *
 *     struct traincomm *comm;
 *     struct traincomm_gradients *sum;
 *     traincomm_init(&comm);
 *     traincomm_broadcast(comm, weights, count * sizeof *weights, 0);
 *     traincomm_gradients_create(comm, gradients, count, NULL, &sum);
 *     for each step:
 *         for each layer, the last first:
 *             ... its gradients, at gradients[offset] ...
 *             traincomm_gradients_ready(sum, offset);
 *         traincomm_gradients_wait(sum);           // now they are the sum over all ranks
 *     traincomm_gradients_destroy(sum);
 *     traincomm_finalize(comm);
 *
 * All ranks get the same bits, and get them again in every run with the same number of ranks per
 * machine, whatever the MPI library.
 *
 * "Collective": every rank calls it, at the same point of the program. Functions that return int
 * return 0 or a negative TRAINCOMM_ERROR_...; errors found by MPI (a lost rank or network) end all
 * ranks, as is usual in MPI. Only one thread may call the library. See traincomm(3).
 */
#ifndef TRAINCOMM_H
#define TRAINCOMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRAINCOMM_HOST_BYTES 64
#define TRAINCOMM_TEXT_BYTES 2048

enum traincomm_error {
    TRAINCOMM_ERROR_MEMORY = 1,
    TRAINCOMM_ERROR_ARGUMENT, /* a number or pointer that makes no sense */
    TRAINCOMM_ERROR_MPI       /* MPI could not be started, or has ended */
};

const char *traincomm_strerror(int error); /* of a return value, in words */
const char *traincomm_version(void);       /* "3.0.0" */

/* The MPI library in use, in its own words ("Open MPI v4.1.4, ..."), truncated to bytes. May be
 * called before MPI is started. */
void traincomm_mpi_version(char *text, size_t bytes);

/* ---- beginning and end */

struct traincomm; /* the ranks that train together */

/* All ranks that mpirun started. Starts MPI if necessary; traincomm_finalize then ends it.
 * Collective. */
int traincomm_init(struct traincomm **out);

#ifdef MPI_VERSION /* <mpi.h> comes before this header */
/* The ranks of a communicator, which is duplicated. Collective over it. */
int traincomm_init_from(MPI_Comm comm, struct traincomm **out);
#endif

void traincomm_finalize(struct traincomm *c); /* NULL is fine. Collective */

/* Ends all ranks at once, for an error that cannot be agreed on. Does not return. */
void traincomm_abort(struct traincomm *c, int exit_status);

/* ---- ranks and machines */

int traincomm_rank(const struct traincomm *c); /* from 0 */
int traincomm_size(const struct traincomm *c); /* number of ranks */

/* This rank's number among the ranks of its machine, and their number. */
int traincomm_host_rank(const struct traincomm *c);
int traincomm_host_size(const struct traincomm *c);

const char *traincomm_host(const struct traincomm *c, int rank); /* name of a rank's machine */

/* ---- small data between ranks; all collective */

void traincomm_barrier(struct traincomm *c);

/* Sends the root's bytes, any number, to all. */
void traincomm_broadcast(struct traincomm *c, void *data, size_t bytes, int root);

enum traincomm_op { TRAINCOMM_SUM, TRAINCOMM_MIN, TRAINCOMM_MAX };

/* Replaces values (count) by their sum (minimum, maximum) over all ranks. */
void traincomm_reduce(struct traincomm *c, enum traincomm_op op, double *values, size_t count);

/* Collects `bytes` bytes of each rank, at most 1 GiB, on all: all is (size, bytes). */
void traincomm_all_gather(struct traincomm *c, const void *mine, size_t bytes, void *all);

/* Concatenates the bytes of all ranks, of different lengths, on rank 0. There *all has *all_bytes
 * and is freed by the caller with free(); on the others they become NULL and 0. An error is the
 * same on every rank. */
int traincomm_gather(struct traincomm *c, const void *mine, size_t bytes, void **all,
                     size_t *all_bytes);

/* This rank's CLOCK_MONOTONIC minus rank 0's, and the error bound, in seconds: half the time of the
 * fastest of many round trips (Cristian, 1989). */
void traincomm_clock_offset(struct traincomm *c, double *offset, double *error);

/* Shared memory of the ranks of one machine, a zeroed part of `bytes` each. Collective. */
struct traincomm_shared;
int traincomm_shared_create(struct traincomm *c, size_t bytes, struct traincomm_shared **out);
void *traincomm_shared_part(const struct traincomm_shared *s, int host_rank);
void traincomm_shared_destroy(struct traincomm_shared *s); /* NULL is fine */

/* ---- agreement */

/* A failure of a rank */
struct traincomm_failure {
    int code; /* the program's own; 0: none */
    int rank;
    char host[TRAINCOMM_HOST_BYTES];
    char text[TRAINCOMM_TEXT_BYTES];
};

/* In: this rank's code and text. Out, on all ranks: the failure of the lowest rank that has one;
 * *stop (may be NULL) becomes true if it is on any rank. Returns the code. So a rank that fails
 * does not leave the others waiting. A single small all-reduce if none fails. Collective. */
int traincomm_agree(struct traincomm *c, bool *stop, struct traincomm_failure *failure);

/* ---- gradients */

struct traincomm_gradients;

/* What advances the buckets; the bits are the same */
enum traincomm_drive {
    TRAINCOMM_DRIVE_WAIT,  /* only traincomm_gradients_wait: after backward */
    TRAINCOMM_DRIVE_CALLS, /* also traincomm_gradients_ready: during backward */
    TRAINCOMM_DRIVE_THREAD /* a thread of the library, during backward */
};

enum traincomm_dtype {
    TRAINCOMM_FP32,
    TRAINCOMM_BF16 /* half the bytes: each rank's gradients are rounded to bf16, added in fp32 in
                      the order of the ranks, and the sum is rounded. Its error is 2^-8 of itself,
                      and 2^-8 of the gradients where they cancel */
};

struct traincomm_options {
    size_t bucket_bytes; /* 0: 8 MiB; on one machine the caches decide */
    bool no_overlap; /* TRAINCOMM_DRIVE_WAIT; otherwise, between machines, the first rounds try all
                        and the fastest stays */
    enum traincomm_dtype dtype; /* of what is sent; the same on all ranks */
    int threads;                /* OpenMP threads that share additions; 0: none */
    bool thread; /* TRAINCOMM_DRIVE_THREAD may be tried; it spins, on a core that the program leaves
                    free */
    int thread_cpu; /* it is bound to this; below 0: not bound */
};

/* Borrows gradients (count), which must not move. options may be NULL. A program may have several.
 * Collective. */
int traincomm_gradients_create(struct traincomm *c, float *gradients, size_t count,
                               const struct traincomm_options *options,
                               struct traincomm_gradients **out);
void traincomm_gradients_destroy(struct traincomm_gradients *g); /* NULL is fine. Collective */

/* gradients[offset..count) of this rank are complete. Offsets must not increase from call to call;
 * ranks may cut differently. Never waits for another rank. */
void traincomm_gradients_ready(struct traincomm_gradients *g, size_t offset);

/* Sends the rest and waits for all buckets; gradients are then the sums over all ranks, and the
 * next round begins. Returns the seconds it took, which were not overlapped. Collective. */
double traincomm_gradients_wait(struct traincomm_gradients *g);

/* On this rank since traincomm_gradients_create */
struct traincomm_stats {
    uint64_t rounds; /* calls of traincomm_gradients_wait */
    uint64_t buckets;
    uint64_t late_buckets;   /* of them, not yet summed when traincomm_gradients_wait was called */
    uint64_t bytes;          /* of gradients, as sent */
    double hidden_seconds;   /* buckets under way while the caller computed */
    double unhidden_seconds; /* in traincomm_gradients_wait */
    int machines;            /* number of machines */
    int leaders;             /* ranks per machine that exchange between them */
    int exchanges;           /* consecutive messages from machine to machine */
    enum traincomm_drive drive;
};
void traincomm_gradients_stats(const struct traincomm_gradients *g, struct traincomm_stats *out);

/* Describes the sum for a log: "gradients of 4 ranks are summed ...". Returns false until the first
 * rounds have decided what advances the buckets. */
bool traincomm_gradients_describe(const struct traincomm_gradients *g, char *text, size_t bytes);

/* ---- tracing */

/* A span from start to end (CLOCK_MONOTONIC, seconds): "agree", "bucket", "wait for buckets";
 * number counts from 1 in a round, or is 0; bytes or 0. Called by the thread that did it. */
typedef void traincomm_span(void *context, const char *what, int number, double start, double end,
                            size_t bytes);
void traincomm_on_span(struct traincomm *c, traincomm_span *span, void *context);

/* A call starts (waits: true) or stops waiting for other ranks. Called by the thread that called
 * the library; not nested. */
typedef void traincomm_wait(void *context, bool waits);
void traincomm_on_wait(struct traincomm *c, traincomm_wait *wait, void *context);

/* MPI detected an error on this rank: the last call before all ranks are ended. Without this
 * callback MPI itself prints a message. */
typedef void traincomm_error_call(void *context, const char *words);
void traincomm_on_error(struct traincomm *c, traincomm_error_call *call, void *context);

#ifdef __cplusplus
}
#endif

#endif
