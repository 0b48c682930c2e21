/*
 * libtraincomm: the communication needed to train one network on many ranks: equal weights at the
 * start, the sum of all gradients in every step, agreement on errors and on the end.
 *
 * Gradients are in one flat buffer, in the order of the layers; backward completes it from the end
 * to the beginning. The library sums it over all ranks in buckets while backward continues:
 *
 *     struct traincomm *comm;
 *     struct traincomm_gradients *sum;
 *     traincomm_init(&comm);
 *     traincomm_broadcast(comm, weights, count * sizeof *weights, 0);
 *     traincomm_gradients_create(comm, gradients, count, NULL, &sum);
 *     for each step:
 *         for each layer, the last first:
 *             ... compute its gradients, at gradients[offset] ...
 *             traincomm_gradients_ready(sum, offset);
 *         traincomm_gradients_wait(sum);           // now they are the sum over all ranks
 *     traincomm_gradients_destroy(sum);
 *     traincomm_finalize(comm);
 *
 * All ranks get the same bits. So does every run with the same number of ranks per machine,
 * whatever the MPI library.
 *
 * "Collective": every rank calls the function, at the same point of the program. Functions that
 * return int return 0 or a negative TRAINCOMM_ERROR_... code. Errors found by MPI (a lost rank or
 * network) end all ranks, as is usual in MPI. Only one thread may call the library. See
 * traincomm(3).
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
    TRAINCOMM_ERROR_ARGUMENT, /* invalid number or pointer */
    TRAINCOMM_ERROR_MPI       /* MPI could not be started, or was finalized before */
};

const char *traincomm_strerror(int error); /* description of a return value */
const char *traincomm_version(void);       /* "3.1.0" */

/* Writes the MPI library's version string ("Open MPI v4.1.4, ..."), truncated to bytes. May be
 * called before MPI is started. */
void traincomm_mpi_version(char *text, size_t bytes);

/* ---- start and end */

struct traincomm; /* the ranks that train together */

/* Joins all ranks started by mpirun. Starts MPI if necessary; traincomm_finalize ends it then.
 * Collective. */
int traincomm_init(struct traincomm **out);

#ifdef MPI_VERSION /* declared only if <mpi.h> is included before */
/* Joins the ranks of a communicator, which is duplicated. Collective over it. */
int traincomm_init_from(MPI_Comm comm, struct traincomm **out);
#endif

void traincomm_finalize(struct traincomm *c); /* accepts NULL. Collective */

/* Ends all ranks immediately, for an error on which the ranks cannot agree. Does not return. */
void traincomm_abort(struct traincomm *c, int exit_status);

/* ---- ranks and machines */

int traincomm_rank(const struct traincomm *c); /* from 0 */
int traincomm_size(const struct traincomm *c); /* number of ranks */

/* This rank's number among the ranks of its machine, and the number of those ranks. */
int traincomm_host_rank(const struct traincomm *c);
int traincomm_host_size(const struct traincomm *c);

const char *traincomm_host(const struct traincomm *c, int rank); /* name of a rank's machine */

/* ---- small data between ranks; all collective */

void traincomm_barrier(struct traincomm *c);

/* Sends any number of bytes from the root to all ranks. */
void traincomm_broadcast(struct traincomm *c, void *data, size_t bytes, int root);

enum traincomm_op { TRAINCOMM_SUM, TRAINCOMM_MIN, TRAINCOMM_MAX };

/* Replaces each of `count` values by its sum (minimum, maximum) over all ranks. */
void traincomm_reduce(struct traincomm *c, enum traincomm_op op, double *values, size_t count);

/* Collects `bytes` bytes (at most 1 GiB) of each rank on all ranks, in all: (size, bytes). */
void traincomm_all_gather(struct traincomm *c, const void *mine, size_t bytes, void *all);

/* Concatenates the bytes of all ranks, whose numbers may differ, on rank 0, where the caller frees
 * *all with free(); on other ranks *all and *all_bytes become NULL and 0. An error is the same on
 * every rank. */
int traincomm_gather(struct traincomm *c, const void *mine, size_t bytes, void **all,
                     size_t *all_bytes);

/* Measures this rank's CLOCK_MONOTONIC minus rank 0's, and the bound of its error, in seconds: half
 * the time of the fastest of many round trips (Cristian, 1989). */
void traincomm_clock_offset(struct traincomm *c, double *offset, double *error);

/* Shared memory of the ranks of one machine, with a zeroed part of `bytes` for each, at
 * a multiple of 64 bytes. Collective. */
struct traincomm_shared;
int traincomm_shared_create(struct traincomm *c, size_t bytes, struct traincomm_shared **out);
void *traincomm_shared_part(const struct traincomm_shared *s, int host_rank);
void traincomm_shared_destroy(struct traincomm_shared *s); /* accepts NULL */

/* ---- agreement */

struct traincomm_failure {
    int code; /* chosen by the program; 0: no failure */
    int rank;
    char host[TRAINCOMM_HOST_BYTES];
    char text[TRAINCOMM_TEXT_BYTES];
};

/* Lets all ranks stop if one of them fails or wants to stop, so that none waits for it. On entry
 * *failure holds this rank's code and text; on return it holds, on all ranks, the failure of the
 * lowest rank that failed. *stop (may be NULL) becomes true if it is true on any rank. Returns the
 * code. Costs one small all-reduce if no rank failed. Collective. */
int traincomm_agree(struct traincomm *c, bool *stop, struct traincomm_failure *failure);

/* ---- gradients */

struct traincomm_gradients;

/* Who advances the buckets; the resulting bits are the same. */
enum traincomm_drive {
    TRAINCOMM_DRIVE_WAIT,  /* only traincomm_gradients_wait: after backward */
    TRAINCOMM_DRIVE_CALLS, /* traincomm_gradients_ready too: during backward */
    TRAINCOMM_DRIVE_THREAD /* a thread of the library: during backward */
};

enum traincomm_dtype {
    TRAINCOMM_FP32,
    TRAINCOMM_BF16 /* half the bytes: each rank's gradients are rounded to bf16 and added in fp32 in
                      the order of the ranks, and the sum is rounded. Its error is 2^-8 of the sum,
                      or 2^-8 of the gradients where they cancel */
};

struct traincomm_options {
    size_t bucket_bytes; /* 0: 8 MiB; ignored on one machine, where the cache sizes decide */
    bool no_overlap;     /* always TRAINCOMM_DRIVE_WAIT; otherwise, with several machines, the first
                            rounds try all drivers and the fastest is used from then on */
    enum traincomm_dtype dtype; /* of the messages; the same on all ranks */
    int threads;                /* OpenMP threads for the additions; 0: none */
    bool
        thread; /* also try TRAINCOMM_DRIVE_THREAD; the thread spins, so leave a core free for it */
    int thread_cpu; /* CPU to bind that thread to; negative: do not bind */
};

/* Prepares the sum of gradients (count), a borrowed buffer that must not move. options may be NULL.
 * Several may exist at a time. Collective. */
int traincomm_gradients_create(struct traincomm *c, float *gradients, size_t count,
                               const struct traincomm_options *options,
                               struct traincomm_gradients **out);
void traincomm_gradients_destroy(struct traincomm_gradients *g); /* accepts NULL. Collective */

/* Reports that gradients[offset..count) of this rank are complete. Offsets must not increase from
 * call to call; they may differ between ranks. Never waits for another rank. */
void traincomm_gradients_ready(struct traincomm_gradients *g, size_t offset);

/* Sends the rest, and returns when gradients hold the sums over all ranks; the next round begins.
 * Returns the seconds spent in this call, which were not overlapped. Collective. */
double traincomm_gradients_wait(struct traincomm_gradients *g);

/* An update of weights that the ranks of one machine share: each gets the sums of some ranges of
 * the gradients, updates these, and receives the other values. */
#define TRAINCOMM_CUT_FLOATS 4096
struct traincomm_update {
    float *values; /* (count) */
    /* Updates values[first..end) from sums[0..end - first), which it may overwrite. NULL: gradients
     * are not summed, only the values sent that this rank changed, such as its momenta. */
    void (*update)(void *context, size_t first, size_t end, float *sums);
    /* The lowest offset >= at, by less than TRAINCOMM_CUT_FLOATS, where a range may begin or end;
     * the same on all ranks. With the same cuts each rank has the same ranges in each round. */
    size_t (*cut)(void *context, size_t at);
    void *context;
};

/* False if each rank must update all after traincomm_gradients_wait. */
bool traincomm_gradients_can_update(const struct traincomm_gradients *g);

/* Sums, updates, and returns when all ranks have all values; the gradients remain this rank's.
 * Returns the seconds spent outside of `update`. Collective. */
double traincomm_gradients_update(struct traincomm_gradients *g,
                                  const struct traincomm_update *update);

/* Statistics of this rank since traincomm_gradients_create */
struct traincomm_stats {
    uint64_t rounds; /* calls of traincomm_gradients_wait and _update */
    uint64_t buckets;
    uint64_t late_buckets;   /* buckets not yet summed when traincomm_gradients_wait was called */
    uint64_t bytes;          /* bytes of gradients in the precision of the messages */
    double hidden_seconds;   /* time in which buckets were in progress while the caller computed */
    double unhidden_seconds; /* time in these calls, without updates */
    int machines;            /* number of machines */
    int leaders;             /* ranks per machine that exchange messages with other machines */
    int exchanges;           /* consecutive rounds of messages between machines */
    enum traincomm_drive drive;
};
void traincomm_gradients_stats(const struct traincomm_gradients *g, struct traincomm_stats *out);

/* Describes the sum for a log ("gradients of 4 ranks are summed ..."). Returns false until the
 * first rounds have decided on the driver. */
bool traincomm_gradients_describe(const struct traincomm_gradients *g, char *text, size_t bytes);

/* ---- tracing */

/* Reports a span from start to end (CLOCK_MONOTONIC, seconds). what: "agree", "bucket" or "wait for
 * buckets". number: counts from 1 in each round, or 0. bytes: 0 if there are none. Called by the
 * thread that did the work. */
typedef void traincomm_span(void *context, const char *what, int number, double start, double end,
                            size_t bytes);
void traincomm_on_span(struct traincomm *c, traincomm_span *span, void *context);

/* Called when a call of the library starts (waits: true) or stops waiting for other ranks, on the
 * calling thread. Not nested. */
typedef void traincomm_wait(void *context, bool waits);
void traincomm_on_wait(struct traincomm *c, traincomm_wait *wait, void *context);

/* Called when MPI detects an error on this rank, before all ranks are ended. Without this callback
 * MPI itself prints a message. */
typedef void traincomm_error_call(void *context, const char *text);
void traincomm_on_error(struct traincomm *c, traincomm_error_call *call, void *context);

#ifdef __cplusplus
}
#endif

#endif
