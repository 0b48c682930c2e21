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

#define PIECE_FLOATS      ((size_t)1 << 19) /* 2 MiB: fits the second-level cache */
#define BUCKET_BYTES      ((size_t)32 << 20)
#define BUCKET_FLOATS_MAX (PIECE_BYTES_MAX / sizeof(float))
#define POLL_SECONDS      1e-3

struct traincomm_gradients {
    struct traincomm *c;
    MPI_Comm comm;    /* buckets meet only those of the same object */
    float *gradients; /* (count), borrowed */
    size_t count, bucket_floats;
    enum traincomm_way way;
    bool overlap;
    _Atomic size_t ready_from; /* gradients[ready_from..count) are complete on this rank */
    size_t sent_from;          /* gradients[sent_from..count) are on their way or done */
    MPI_Request *requests;     /* of this round */
    double *started;
    int request_count;
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

/* ---- buckets */

static void send_bucket(struct traincomm_gradients *g, size_t from)
{
    int i = g->request_count++;

    g->started[i] = comm_clock();
    if (g->busy_since == 0)
        g->busy_since = g->started[i];
    MPI_Iallreduce(MPI_IN_PLACE, g->gradients + from, (int)(g->sent_from - from), MPI_FLOAT,
                   MPI_SUM, g->comm, &g->requests[i]);
    comm_span(g->c, "start bucket", i + 1, g->started[i],
              (g->sent_from - from) * sizeof *g->gradients);
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

    if (g->busy_since > 0)
        MPI_Testall(g->request_count, g->requests, &done, MPI_STATUSES_IGNORE);
    if (done)
        end_hidden(g, comm_clock());
}

static void finish_buckets(struct traincomm_gradients *g)
{
    end_hidden(g, g->wait_since);
    send_rest(g);
    double start = comm_clock();
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
    size_t room = count / g->bucket_floats + 2;
    g->requests = malloc(room * sizeof(MPI_Request));
    g->started = malloc(room * sizeof *g->started);
    if (!g->requests || !g->started)
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
    if (!worst)
        MPI_Comm_dup(c->comm, &g->comm);
    comm_wait_ends(c);
    if (!worst) {
        *out = g;
        return 0;
    }
    if (g && !status && c->size > 1 && g->way == TRAINCOMM_WAY_THREAD)
        gradients_end_thread(g);
    if (g) {
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
    MPI_Comm_free(&g->comm);
    comm_wait_ends(g->c);
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
    for (size_t from = 0; from < g->count; from += PIECE_FLOATS) {
        size_t n = g->count - from < PIECE_FLOATS ? g->count - from : PIECE_FLOATS;
        double start = comm_clock();
        MPI_Allreduce(MPI_IN_PLACE, g->gradients + from, (int)n, MPI_FLOAT, MPI_SUM, g->comm);
        comm_span(g->c, "piece", (int)(from / PIECE_FLOATS) + 1, start, n * sizeof *g->gradients);
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
    g->stats.bytes += g->c->size > 1 ? g->count * sizeof *g->gradients : 0;
    double seconds = comm_clock() - g->wait_since;
    g->stats.unhidden_seconds += seconds;
    return seconds;
}

void traincomm_gradients_stats(const struct traincomm_gradients *g, struct traincomm_stats *out)
{
    *out = g->stats;
}
