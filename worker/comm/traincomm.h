/*
 * libtraincomm: what a program needs of MPI to train one network on many ranks: the same weights on
 * all at the start, the sum of all gradients in every step, agreement on errors and on the end.
 *
 * Gradients lie in one flat buffer, in the order of the layers; backward completes it from the end
 * to the beginning. The library sums it over all ranks in buckets that travel while backward goes
 * on:
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
 * Sums are the same bits on all ranks, and again the same with the same number of ranks on each
 * machine, whatever MPI library carries the messages.
 *
 * "Collective": every rank calls it, at the same point of the program. Functions that return int
 * return 0 or a negative TRAINCOMM_ERROR_...; what MPI itself finds wrong (a rank or the network is
 * gone) ends all ranks, as is usual in MPI. One thread calls the library. See traincomm(3).
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

/* What MPI library the program runs with, in its own words ("Open MPI v4.1.4, ..."), cut to bytes;
 * also before it is started. */
void traincomm_mpi_version(char *text, size_t bytes);

/* ---- beginning and end */

struct traincomm; /* the ranks that train together */

/* All ranks that mpirun started. Starts MPI if the program has not, and then traincomm_finalize
 * ends it. Collective. */
int traincomm_init(struct traincomm **out);

#ifdef MPI_VERSION /* <mpi.h> comes before this header */
/* The ranks of a communicator, which is duplicated. Collective over it. */
int traincomm_init_from(MPI_Comm comm, struct traincomm **out);
#endif

void traincomm_finalize(struct traincomm *c); /* NULL is fine. Collective */

/* Ends all ranks at once, for an error that cannot be agreed on. Does not return. */
void traincomm_abort(struct traincomm *c, int exit_status);

/* ---- who is where */

int traincomm_rank(const struct traincomm *c); /* from 0 */
int traincomm_size(const struct traincomm *c); /* how many ranks */

/* Of this rank's machine: its number among the ranks there, and how many they are. */
int traincomm_host_rank(const struct traincomm *c);
int traincomm_host_size(const struct traincomm *c);

const char *traincomm_host(const struct traincomm *c, int rank); /* a rank's machine, by name */

/* ---- small things between ranks; all collective */

void traincomm_barrier(struct traincomm *c);

/* The root's bytes to all; any number of them. */
void traincomm_broadcast(struct traincomm *c, void *data, size_t bytes, int root);

enum traincomm_op { TRAINCOMM_SUM, TRAINCOMM_MIN, TRAINCOMM_MAX };

/* values (count) of each rank become the sum (least, largest) over all ranks. */
void traincomm_reduce(struct traincomm *c, enum traincomm_op op, double *values, size_t count);

/* Each rank's bytes, at most 1 GiB, to all: all is (size, bytes). */
void traincomm_all_gather(struct traincomm *c, const void *mine, size_t bytes, void *all);

/* Bytes of different length of each rank to rank 0, one behind the other. There *all, which the
 * caller frees with free(), has *all_bytes; on the others they become NULL and 0. An error is the
 * same on every rank. */
int traincomm_gather(struct traincomm *c, const void *mine, size_t bytes, void **all,
                     size_t *all_bytes);

/* This rank's CLOCK_MONOTONIC less rank 0's, and how wrong that can be, in seconds: the fastest of
 * many answers is right to half its time (Cristian, 1989). */
void traincomm_clock_offset(struct traincomm *c, double *offset, double *error);

/* Memory that the ranks of one machine share: each has a part of `bytes` (zeroed). Collective. */
struct traincomm_shared;
int traincomm_shared_create(struct traincomm *c, size_t bytes, struct traincomm_shared **out);
void *traincomm_shared_part(const struct traincomm_shared *s, int host_rank);
void traincomm_shared_destroy(struct traincomm_shared *s); /* NULL is fine */

/* ---- agreement */

/* What went wrong on a rank. */
struct traincomm_failure {
    int code; /* the program's own; 0: nothing */
    int rank;
    char host[TRAINCOMM_HOST_BYTES];
    char text[TRAINCOMM_TEXT_BYTES];
};

/* In: this rank's code and text. Out, on all ranks: the failure of the lowest rank that has one;
 * *stop (NULL is fine) becomes true if it was on any rank. Returns the code. So a rank that cannot
 * read its data does not leave the others waiting. One small all-reduce when all is well.
 * Collective. */
int traincomm_agree(struct traincomm *c, bool *stop, struct traincomm_failure *failure);

/* ---- gradients */

struct traincomm_gradients;

/* What moves buckets on. All give the same bits. */
enum traincomm_drive {
    TRAINCOMM_DRIVE_WAIT,  /* traincomm_gradients_wait alone: after backward */
    TRAINCOMM_DRIVE_CALLS, /* traincomm_gradients_ready, too: during backward */
    TRAINCOMM_DRIVE_THREAD /* a thread of the library's own, during backward */
};

enum traincomm_dtype {
    TRAINCOMM_FP32,
    TRAINCOMM_BF16 /* half the bytes: each rank's gradients are rounded to bf16, added up in fp32 in
                      the order of the ranks, and the sum is rounded. It is off by 2^-8 of itself,
                      and by 2^-8 of the gradients where they cancel each other */
};

struct traincomm_options {
    size_t bucket_bytes;        /* 0: 8 MiB; on one machine it is chosen by the cache */
    bool no_overlap;            /* TRAINCOMM_DRIVE_WAIT; otherwise, between machines, the first
                                   rounds try all, and the fastest stays */
    enum traincomm_dtype dtype; /* of what is sent; on all ranks the same */
    int threads;                /* of OpenMP that the calls share additions among; 0: none */
    bool thread;                /* TRAINCOMM_DRIVE_THREAD may be tried; it spins, on a core that
                                   the program leaves free */
    int thread_cpu;             /* which it is bound to; below 0: none */
};

/* gradients (count) stays the caller's, and stays where it is. options may be NULL. A program may
 * have several. Collective. */
int traincomm_gradients_create(struct traincomm *c, float *gradients, size_t count,
                               const struct traincomm_options *options,
                               struct traincomm_gradients **out);
void traincomm_gradients_destroy(struct traincomm_gradients *g); /* NULL is fine. Collective */

/* gradients[offset..count) of this rank are complete. Each call's offset is at most that of the one
 * before; ranks may cut differently. Never waits for another rank. */
void traincomm_gradients_ready(struct traincomm_gradients *g, size_t offset);

/* Sends what is left and waits for all of it: then gradients are the sum of all ranks', and the
 * next round begins. Returns the seconds this took: the part that was not hidden. Collective. */
double traincomm_gradients_wait(struct traincomm_gradients *g);

/* Since traincomm_gradients_create, on this rank. */
struct traincomm_stats {
    uint64_t rounds; /* calls of traincomm_gradients_wait */
    uint64_t buckets;
    uint64_t late_buckets;   /* of them, not summed yet when traincomm_gradients_wait was called */
    uint64_t bytes;          /* of gradients summed, as they are sent */
    double hidden_seconds;   /* buckets were on their way while the caller computed */
    double unhidden_seconds; /* in traincomm_gradients_wait */
    int machines;            /* that sum between them */
    int leaders;             /* ranks of each that do */
    int exchanges;           /* messages one behind the other, from machine to machine */
    enum traincomm_drive drive;
};
void traincomm_gradients_stats(const struct traincomm_gradients *g, struct traincomm_stats *out);

/* In words for a log: "gradients of 4 ranks are summed ...". False: what drives buckets is not
 * decided yet, and is after the first rounds. */
bool traincomm_gradients_describe(const struct traincomm_gradients *g, char *text, size_t bytes);

/* ---- tracing */

/* Something that took from start to end (CLOCK_MONOTONIC, seconds): "agree", "bucket",
 * "wait for buckets"; number counts from 1 in a round, bytes of it; 0: none. Called from the thread
 * that did it. */
typedef void traincomm_span(void *context, const char *what, int number, double start, double end,
                            size_t bytes);
void traincomm_on_span(struct traincomm *c, traincomm_span *span, void *context);

/* A call begins (waits: true) or ends to wait for other ranks, for whoever watches over them.
 * Called from the thread that called the library; such calls do not nest. */
typedef void traincomm_wait(void *context, bool waits);
void traincomm_on_wait(struct traincomm *c, traincomm_wait *wait, void *context);

/* MPI has found an error on this rank, in MPI's words: the last call before all ranks are ended.
 * Without such a function MPI itself prints a message. */
typedef void traincomm_error_call(void *context, const char *words);
void traincomm_on_error(struct traincomm *c, traincomm_error_call *call, void *context);

#ifdef __cplusplus
}
#endif

#endif
