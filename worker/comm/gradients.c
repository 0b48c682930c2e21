/*
 * The sum of the gradients over all ranks. A bucket is a range of the one flat buffer (Horovod's
 * tensor fusion without its copies); every rank cuts at the same places, whatever ranges backward
 * reports, as a collective must have the same count everywhere.
 *
 * Which way is taken, and why, was measured: doc/engine-log.md, "All-reduce".
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "worker/comm/internal.h"
#include "worker/comm/narrow.h"

#define PIECE_FLOATS      ((size_t)1 << 19) /* 2 MiB: fits the second-level cache */
#define BUCKET_BYTES      ((size_t)32 << 20)
#define BUCKET_FLOATS_MAX (PIECE_BYTES_MAX / sizeof(float))
#define POLL_SECONDS      1e-3

/* A range on its way in bf16. */
struct narrow_bucket {
    float *at;
    size_t n; /* that are narrow: narrow_whole */
    MPI_Request gather;
};

struct traincomm_gradients {
    struct traincomm *c;
    MPI_Comm comm;    /* buckets meet only those of the same object */
    MPI_Comm gather;  /* of bf16's second exchange, so that each has an order of its own */
    float *gradients; /* (count), borrowed */
    size_t count, bucket_floats;
    enum traincomm_way way;
    bool overlap, narrow;
    _Atomic size_t ready_from; /* gradients[ready_from..count) are complete on this rank */
    size_t sent_from;          /* gradients[sent_from..count) are on their way or done */
    MPI_Request *requests;     /* of this round */
    double *started;
    int request_count;
    struct narrow_bucket *buckets; /* of bf16: one for each request */
    int gathered;                  /* of them, in order: the second exchange has begun */
    float *rest;                   /* (rest_count): too few for a part for each rank */
    size_t rest_count;
    double busy_since; /* buckets are on their way; 0: none is */
    double wait_since; /* traincomm_gradients_wait was called */
    struct traincomm_stats stats;

    /* TRAINCOMM_WAY_THREAD: between the first ready and the end of a wait the thread alone calls
     * MPI for this object. */
    pthread_t thread;
    sem_t wake, done;
    atomic_bool waits, ends;
    size_t told_from; /* ready_from when the thread was last woken */
};

/* Of one that is sent. */
static size_t gradient_bytes(const struct traincomm_gradients *g)
{
    return g->narrow ? sizeof(narrow_bf16) : sizeof *g->gradients;
}

/* ---- buckets in bf16 */

static void begin_narrow(struct traincomm_gradients *g, int i, float *at, size_t n)
{
    size_t whole = narrow_whole(n, g->c->size);
    int part = (int)(whole / (size_t)g->c->size);

    g->buckets[i] = (struct narrow_bucket){at, whole, MPI_REQUEST_NULL};
    if (whole < n) {
        narrow_round(at + whole, n - whole);
        g->rest = at + whole;
        g->rest_count = n - whole;
    }
    narrow(at, whole);
    MPI_Ialltoall(narrow_sent(at), part, MPI_UINT16_T, narrow_received(at, whole), part,
                  MPI_UINT16_T, g->comm, &g->requests[i]);
}

/* All ranks' parts of the next bucket are here: its sums go to all. */
static void gather_next(struct traincomm_gradients *g)
{
    struct narrow_bucket *b = &g->buckets[g->gathered++];

    narrow_sum(b->at, b->n, g->c->rank, g->c->size);
    MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, narrow_sent(b->at),
                   (int)(b->n / (size_t)g->c->size), MPI_UINT16_T, g->gather, &b->gather);
}

/* Moves on what is on its way. All of it done? */
static bool test_narrow(struct traincomm_gradients *g)
{
    int done = 1, all = 1;

    while (g->gathered < g->request_count) {
        MPI_Test(&g->requests[g->gathered], &done, MPI_STATUS_IGNORE);
        if (!done)
            break;
        gather_next(g);
    }
    for (int i = 0; i < g->gathered; i++) {
        MPI_Test(&g->buckets[i].gather, &done, MPI_STATUS_IGNORE);
        all = all && done;
    }
    return all && g->gathered == g->request_count;
}

static void sum_rest(struct traincomm_gradients *g)
{
    if (g->rest_count == 0)
        return;
    MPI_Allreduce(MPI_IN_PLACE, g->rest, (int)g->rest_count, MPI_FLOAT, MPI_SUM, g->comm);
    narrow_round(g->rest, g->rest_count);
    g->rest_count = 0;
}

static void finish_narrow(struct traincomm_gradients *g)
{
    while (g->gathered < g->request_count) {
        MPI_Wait(&g->requests[g->gathered], MPI_STATUS_IGNORE);
        gather_next(g);
    }
    for (int i = 0; i < g->gathered; i++) {
        MPI_Wait(&g->buckets[i].gather, MPI_STATUS_IGNORE);
        narrow_widen(g->buckets[i].at, g->buckets[i].n);
    }
    g->gathered = 0;
    sum_rest(g);
}

static void reduce_narrow_piece(struct traincomm_gradients *g, float *at, size_t n)
{
    begin_narrow(g, 0, at, n);
    g->request_count = 1;
    finish_narrow(g);
    g->request_count = 0;
}

/* ---- buckets */

static void send_bucket(struct traincomm_gradients *g, size_t from)
{
    int i = g->request_count++;

    g->started[i] = comm_clock();
    if (g->busy_since == 0)
        g->busy_since = g->started[i];
    if (g->narrow)
        begin_narrow(g, i, g->gradients + from, g->sent_from - from);
    else
        MPI_Iallreduce(MPI_IN_PLACE, g->gradients + from, (int)(g->sent_from - from), MPI_FLOAT,
                       MPI_SUM, g->comm, &g->requests[i]);
    comm_span(g->c, "start bucket", i + 1, g->started[i],
              (g->sent_from - from) * gradient_bytes(g));
    g->stats.buckets++;
    g->sent_from = from;
}

static void send_full_buckets(struct traincomm_gradients *g)
{
    size_t ready_from = atomic_load(&g->ready_from);

    while (g->sent_from - ready_from >= g->bucket_floats)
        send_bucket(g, g->sent_from - g->bucket_floats);
}

static void send_rest(struct traincomm_gradients *g)
{
    send_full_buckets(g);
    if (g->sent_from > 0)
        send_bucket(g, 0);
}

/* What was on its way until now was hidden behind the caller's work. */
static void end_hidden(struct traincomm_gradients *g, double now)
{
    if (g->busy_since > 0)
        g->stats.hidden_seconds += now - g->busy_since;
    g->busy_since = 0;
}

static void test_buckets(struct traincomm_gradients *g)
{
    int done = 1;

    if (g->busy_since > 0 && g->narrow)
        done = test_narrow(g);
    else if (g->busy_since > 0)
        MPI_Testall(g->request_count, g->requests, &done, MPI_STATUSES_IGNORE);
    if (done)
        end_hidden(g, comm_clock());
}

static void finish_buckets(struct traincomm_gradients *g)
{
    end_hidden(g, g->wait_since);
    send_rest(g);
    double start = comm_clock();
    if (g->narrow)
        finish_narrow(g);
    else
        MPI_Waitall(g->request_count, g->requests, MPI_STATUSES_IGNORE);
    comm_span(g->c, "wait for buckets", 0, start, 0);
    g->request_count = 0;
    g->busy_since = 0;
    /* before the caller goes on: the thread may wake up once more for a bucket that has gone */
    g->sent_from = g->count;
    atomic_store(&g->ready_from, g->count);
}

/* ---- the thread */

static void sleep_until_woken(struct traincomm_gradients *g)
{
    if (g->busy_since == 0) {
        while (sem_wait(&g->wake) && errno == EINTR)
            ;
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(POLL_SECONDS * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (sem_clockwait(&g->wake, CLOCK_MONOTONIC, &until) && errno == EINTR)
        ;
}

static void *move_on(void *argument)
{
    struct traincomm_gradients *g = argument;

    for (;;) {
        sleep_until_woken(g);
        if (atomic_load(&g->ends))
            return NULL;
        if (atomic_exchange(&g->waits, false)) {
            finish_buckets(g);
            sem_post(&g->done);
        } else {
            send_full_buckets(g);
            test_buckets(g);
        }
    }
}

static int gradients_start_thread(struct traincomm_gradients *g)
{
    sigset_t all, before;

    sem_init(&g->wake, 0, 0);
    sem_init(&g->done, 0, 0);
    sigfillset(&all); /* signals are for the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int reason = pthread_create(&g->thread, NULL, move_on, g);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return reason ? -TRAINCOMM_ERROR_THREAD : 0;
}

static void gradients_end_thread(struct traincomm_gradients *g)
{
    atomic_store(&g->ends, true);
    sem_post(&g->wake);
    pthread_join(g->thread, NULL);
    sem_destroy(&g->wake);
    sem_destroy(&g->done);
}

/* ---- making and ending */

/* The environment's TRAINCOMM_WAY is for measurements: no program need be changed. */
static int choose_way(const struct traincomm *c, enum traincomm_way wanted, int all_here,
                      enum traincomm_way *way)
{
    const char *name = getenv("TRAINCOMM_WAY");

    if (name && !strcmp(name, "pieces"))
        wanted = TRAINCOMM_WAY_PIECES;
    else if (name && !strcmp(name, "thread"))
        wanted = TRAINCOMM_WAY_THREAD;
    else if (name && !strcmp(name, "calls"))
        wanted = TRAINCOMM_WAY_CALLS;
    else if (name && strcmp(name, "auto") != 0)
        return -TRAINCOMM_ERROR_ARGUMENT;
    if (wanted == TRAINCOMM_WAY_AUTO)
        wanted = all_here ? TRAINCOMM_WAY_PIECES : TRAINCOMM_WAY_CALLS;
    *way = wanted;
    return wanted == TRAINCOMM_WAY_THREAD && !c->many_threads ? -TRAINCOMM_ERROR_THREAD : 0;
}

static int gradients_make(struct traincomm *c, float *gradients, size_t count,
                          const struct traincomm_options *options, int all_here,
                          struct traincomm_gradients **out)
{
    struct traincomm_gradients *g = calloc(1, sizeof *g);
    size_t bucket_bytes = options->bucket_bytes ? options->bucket_bytes : BUCKET_BYTES;

    *out = g;
    if (!g)
        return -TRAINCOMM_ERROR_MEMORY;
    g->c = c;
    g->gradients = gradients;
    g->count = g->sent_from = g->told_from = count;
    atomic_init(&g->ready_from, count);
    g->overlap = !options->no_overlap;
    g->bucket_floats = bucket_bytes / sizeof(float);
    if (g->bucket_floats < 1)
        g->bucket_floats = 1;
    if (g->bucket_floats > BUCKET_FLOATS_MAX)
        g->bucket_floats = BUCKET_FLOATS_MAX;
    g->narrow = options->dtype == TRAINCOMM_BF16;
    if (g->narrow) { /* only the last bucket has a rest */
        size_t ranks = (size_t)c->size, whole = narrow_whole(g->bucket_floats, c->size);
        g->bucket_floats = whole ? whole : ranks;
    }
    size_t room = count / g->bucket_floats + 2;
    g->requests = malloc(room * sizeof(MPI_Request));
    g->started = malloc(room * sizeof *g->started);
    g->buckets = calloc(room, sizeof *g->buckets);
    if (!g->requests || !g->started || !g->buckets)
        return -TRAINCOMM_ERROR_MEMORY;
    int status = choose_way(c, options->way, all_here, &g->way);
    g->stats.way = g->way;
    if (!status && c->size > 1 && g->way == TRAINCOMM_WAY_THREAD)
        status = gradients_start_thread(g);
    return status;
}

int traincomm_gradients_create(struct traincomm *c, float *gradients, size_t count,
                               const struct traincomm_options *options,
                               struct traincomm_gradients **out)
{
    static const struct traincomm_options defaults = {0};
    int all_here = c->host_size == c->size;
    struct traincomm_gradients *g;

    *out = NULL;
    int status = gradients_make(c, gradients, count, options ? options : &defaults, all_here, &g);
    int worst = status;
    comm_wait_begins(c);
    MPI_Allreduce(&status, &worst, 1, MPI_INT, MPI_MIN, c->comm);
    if (!worst) {
        MPI_Comm_dup(c->comm, &g->comm);
        if (g->narrow)
            MPI_Comm_dup(c->comm, &g->gather);
    }
    comm_wait_ends(c);
    if (!worst) {
        *out = g;
        return 0;
    }
    if (g && !status && c->size > 1 && g->way == TRAINCOMM_WAY_THREAD)
        gradients_end_thread(g);
    if (g) {
        free(g->buckets);
        free(g->started);
        free(g->requests);
    }
    free(g);
    return worst;
}

void traincomm_gradients_destroy(struct traincomm_gradients *g)
{
    if (!g)
        return;
    if (g->c->size > 1 && g->way == TRAINCOMM_WAY_THREAD)
        gradients_end_thread(g);
    comm_wait_begins(g->c);
    if (g->narrow)
        MPI_Comm_free(&g->gather);
    MPI_Comm_free(&g->comm);
    comm_wait_ends(g->c);
    free(g->buckets);
    free(g->started);
    free(g->requests);
    free(g);
}

/* ---- a round */

void traincomm_gradients_ready(struct traincomm_gradients *g, size_t offset)
{
    atomic_store(&g->ready_from, offset);
    if (g->c->size == 1 || g->way == TRAINCOMM_WAY_PIECES || !g->overlap)
        return;
    if (g->way == TRAINCOMM_WAY_CALLS) {
        send_full_buckets(g);
        test_buckets(g);
    } else if (g->told_from - offset >= g->bucket_floats) {
        g->told_from -= (g->told_from - offset) / g->bucket_floats * g->bucket_floats;
        sem_post(&g->wake);
    }
}

static void reduce_pieces(struct traincomm_gradients *g)
{
    size_t step = g->narrow ? narrow_whole(PIECE_FLOATS, g->c->size) : PIECE_FLOATS;

    for (size_t from = 0, n; from < g->count; from += n) {
        n = g->count - from < step ? g->count - from : step;
        double start = comm_clock();
        if (g->narrow)
            reduce_narrow_piece(g, g->gradients + from, n);
        else
            MPI_Allreduce(MPI_IN_PLACE, g->gradients + from, (int)n, MPI_FLOAT, MPI_SUM, g->comm);
        comm_span(g->c, "piece", (int)(from / step) + 1, start, n * gradient_bytes(g));
        g->stats.buckets++;
    }
}

static void wait_for_thread(struct traincomm_gradients *g)
{
    atomic_store(&g->waits, true);
    sem_post(&g->wake);
    while (sem_wait(&g->done) && errno == EINTR)
        ;
    g->told_from = g->count;
}

double traincomm_gradients_wait(struct traincomm_gradients *g)
{
    g->wait_since = comm_clock();
    atomic_store(&g->ready_from, 0);
    comm_wait_begins(g->c);
    if (g->c->size == 1)
        atomic_store(&g->ready_from, g->count);
    else if (g->way == TRAINCOMM_WAY_PIECES)
        reduce_pieces(g);
    else if (g->way == TRAINCOMM_WAY_CALLS)
        finish_buckets(g);
    else
        wait_for_thread(g);
    comm_wait_ends(g->c);
    g->stats.rounds++;
    g->stats.bytes += g->c->size > 1 ? g->count * gradient_bytes(g) : 0;
    double seconds = comm_clock() - g->wait_since;
    g->stats.unhidden_seconds += seconds;
    return seconds;
}

void traincomm_gradients_stats(const struct traincomm_gradients *g, struct traincomm_stats *out)
{
    *out = g->stats;
}
