/*
 * Sums the gradients over all ranks. A bucket is a range of the flat gradient buffer (Horovod's
 * tensor fusion without copies). All ranks use the same bucket boundaries, whatever ranges backward
 * reports. The ranks of a machine add through shared memory (host_sum.h), the leaders of the
 * machines by messages (exchange.h). Only traincomm_gradients_wait blocks; all other functions
 * advance the buckets that are ready and return.
 *
 * Measurements: doc/engine-log.md, "All-reduce".
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/comm/exchange.h"
#include "worker/comm/host_sum.h"
#include "worker/comm/comm.h"
#include "worker/comm/sums.h"

#define SLOTS             HOST_SUM_SLOTS /* buckets in progress at a time */
#define BUCKET_BYTES      ((size_t)8 << 20)
#define BUCKET_FLOATS_MAX (PIECE_BYTES_MAX / sizeof(float))
/* On one machine a thread's part of a bucket fits its L2 cache, and all ranks' buckets the L3. */
#define THREAD_FLOATS ((size_t)1 << 17)
#define ALL_FLOATS    ((size_t)1 << 21)
#define TAGGED        (4 * SLOTS) /* buckets with distinct tags; MPI guarantees 32767 tags */
#define TRIAL_ROUNDS  3           /* per driver */
#define TRIAL_GAIN    0.98 /* a driver replaces a simpler one if its time is below this share */

enum stage { EXPOSE, ADD, UPDATE, EXCHANGE, PUBLISH, COLLECT, DONE };

struct bucket {
    float *at;
    size_t n;
    float *sums, *values; /* get the sums; are shared by the ranks then */
    enum stage stage;
    struct exchange_transfer transfer;
};

/* Choice of the driver, which does not affect the result. The first rounds try each driver in turn;
 * the fastest round of each counts. */
enum { DRIVES = TRAINCOMM_DRIVE_THREAD + 1 };
struct drive_trial {
    int drives; /* the first `drives` values of enum traincomm_drive are tried */
    int round;  /* number of the next round */
    double since, least[DRIVES];
};

/* The library's thread. Any thread that advances buckets holds the lock. */
struct driver {
    bool runs;
    pthread_t thread;
    int cpu;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_bool asleep, paused; /* paused: traincomm_gradients_wait advances the buckets */
    bool ends;
};

#define GRADIENTS_MAGIC 0x47524144
struct traincomm_gradients {
    unsigned magic;
    struct traincomm *c;
    float *gradients; /* (count), borrowed */
    size_t count, bucket_floats;
    bool narrow;
    int machines, leaders, threads;
    enum traincomm_drive drive;
    struct host_sum *host;   /* NULL: the only rank of its machine */
    struct exchange between; /* used by leaders if there are several machines */
    float *scratch;          /* (SLOTS, scratch_floats), for exchange */
    size_t scratch_floats;
    atomic_size_t ready_from; /* gradients[ready_from..count) are complete on this rank */
    size_t sent_from;         /* gradients[sent_from..count) belong to buckets that were begun */
    bool all;                 /* also send the last, partial bucket */
    const struct traincomm_update *update; /* of this round; NULL: share the sums themselves */
    double update_seconds;                 /* of this round */
    unsigned begun, finished;              /* counters; the buckets between them are in progress */
    struct bucket buckets[SLOTS];
    double busy_since; /* 0: no bucket is in progress */
    struct drive_trial trial;
    struct driver driver;
    struct traincomm_stats stats;
};

static size_t gradient_bytes(const struct traincomm_gradients *g)
{
    return g->narrow ? sizeof(uint16_t) : sizeof *g->gradients;
}

static bool gradients_leads(const struct traincomm_gradients *g)
{
    return g->c->host_rank < g->leaders;
}

static void gradients_begin_exchange(struct traincomm_gradients *g, struct bucket *b,
                                     unsigned number)
{
    size_t first = 0, end = b->n;

    if (g->host)
        host_sum_mine(g->host, number, &first, &end);
    b->transfer.at = b->at + first;
    b->transfer.n = end - first;
    b->transfer.scratch = g->scratch + number % SLOTS * g->scratch_floats;
    b->transfer.tag = (int)(number % TAGGED * EXCHANGE_TAGS);
    exchange_begin(&g->between, &b->transfer);
    b->stage = EXCHANGE;
}

static bool gradients_only_shares(const struct traincomm_gradients *g)
{
    return g->update && !g->update->update;
}

static void gradients_update(struct traincomm_gradients *g, struct bucket *b, unsigned number)
{
    const struct traincomm_update *how = g->update;
    size_t offset = (size_t)(b->at - g->gradients), first, end;
    double start = comm_clock();

    host_sum_mine(g->host, number, &first, &end);
    if (how->update && first < end)
        how->update(how->context, offset + first, offset + end, b->sums + first);
    g->update_seconds += comm_clock() - start;
}

static bool gradients_advance_bucket(struct traincomm_gradients *g, unsigned number)
{
    struct bucket *b = &g->buckets[number % SLOTS];

    switch (b->stage) {
    case EXPOSE:
        if (!host_sum_expose(g->host, number, gradients_only_shares(g) ? NULL : b->at))
            return false;
        b->stage = !gradients_leads(g) ? COLLECT : gradients_only_shares(g) ? UPDATE : ADD;
        return true;
    case ADD:
        if (!host_sum_add(g->host, number, b->at, b->sums))
            return false;
        if (g->machines > 1)
            gradients_begin_exchange(g, b, number);
        else
            b->stage = g->update ? UPDATE : PUBLISH;
        return true;
    case UPDATE:
        gradients_update(g, b, number);
        b->stage = PUBLISH;
        return true;
    case EXCHANGE:
        if (!exchange_advance(&g->between, &b->transfer))
            return false;
        if (exchange_done(&b->transfer))
            b->stage = g->host ? PUBLISH : DONE;
        return true;
    case PUBLISH:
        if (!host_sum_publish(g->host, number, b->values))
            return false;
        b->stage = COLLECT;
        return true;
    case COLLECT:
        if (!host_sum_collect(g->host, number, b->values))
            return false;
        b->stage = DONE;
        return true;
    default:
        return false;
    }
}

static bool gradients_under_way(const struct traincomm_gradients *g)
{
    return g->begun != g->finished;
}

static bool gradients_begin_bucket(struct traincomm_gradients *g)
{
    size_t ready_from = atomic_load(&g->ready_from), n = g->sent_from - ready_from;
    struct bucket *b = &g->buckets[g->begun % SLOTS];
    const struct traincomm_update *how = g->update;

    comm_assert(ready_from <= g->sent_from && g->begun - g->finished <= SLOTS);
    if (g->begun - g->finished == SLOTS || n == 0 || (n < g->bucket_floats && !g->all))
        return false;
    n = n < g->bucket_floats ? n : g->bucket_floats;
    if (how)
        n = g->sent_from - how->cut(how->context, g->sent_from - n);
    comm_assert(n > 0);
    g->sent_from -= n;
    *b = (struct bucket){.at = g->gradients + g->sent_from, .n = n};
    b->sums = how ? host_sum_slot(g->host, g->begun) : b->at;
    b->values = how ? how->values + g->sent_from : b->at;
    if (g->host)
        host_sum_begin(g->host, g->begun, n, how, g->sent_from);
    else
        gradients_begin_exchange(g, b, g->begun);
    g->begun++;
    g->stats.buckets++;
    if (g->busy_since == 0)
        g->busy_since = comm_clock();
    return true;
}

/* Adds the time up to now, in which the caller computed, to hidden_seconds. */
static void gradients_end_hidden(struct traincomm_gradients *g, double now)
{
    if (g->busy_since > 0)
        g->stats.hidden_seconds += now - g->busy_since;
    g->busy_since = 0;
}

static bool gradients_advance(struct traincomm_gradients *g)
{
    bool moved = false;

    while (gradients_begin_bucket(g))
        moved = true;
    for (unsigned i = g->finished; i != g->begun; i++)
        while (gradients_advance_bucket(g, i))
            moved = true;
    while (gradients_under_way(g) && g->buckets[g->finished % SLOTS].stage == DONE)
        g->finished++;
    return moved;
}

static bool gradients_advance_hidden(struct traincomm_gradients *g)
{
    bool moved = false;

    while (gradients_advance(g))
        moved = true;
    if (!gradients_under_way(g) && g->busy_since > 0)
        gradients_end_hidden(g, comm_clock());
    return moved;
}

/* Messages between machines only progress during MPI calls, so the caller must not sleep. */
static bool gradients_is_exchanging(const struct traincomm_gradients *g)
{
    for (unsigned i = g->finished; i != g->begun; i++)
        if (g->buckets[i % SLOTS].stage == EXCHANGE)
            return true;
    return false;
}

static void gradients_finish_buckets(struct traincomm_gradients *g)
{
    uint64_t summed = g->stats.buckets - (g->begun - g->finished);

    g->all = true;
    atomic_store(&g->ready_from, 0);
    for (int polls = 0;; polls++) {
        unsigned events = g->host ? host_sum_events(g->host) : 0;
        if (gradients_advance(g))
            polls = 0;
        else if (!gradients_under_way(g) && g->sent_from == 0)
            break;
        else if (g->host && !gradients_is_exchanging(g))
            host_sum_wait(g->host, events);
        else
            comm_back_off(g->c, polls);
    }
    comm_assert(g->begun == g->finished && g->sent_from == 0);
    g->stats.late_buckets += g->stats.buckets - summed;
    g->all = false;
    g->busy_since = 0;
    g->sent_from = g->count;
    atomic_store(&g->ready_from, g->count);
}

static bool gradients_has_work(const struct traincomm_gradients *g)
{
    return g->drive == TRAINCOMM_DRIVE_THREAD && !atomic_load(&g->driver.paused) &&
           (gradients_under_way(g) ||
            g->sent_from - atomic_load(&g->ready_from) >= g->bucket_floats);
}

static void *gradients_driver_main(void *context)
{
    struct traincomm_gradients *g = context;
    struct driver *d = &g->driver;
    int polls = 0;
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    if (d->cpu >= 0 && d->cpu < CPU_SETSIZE) {
        CPU_SET(d->cpu, &cpus);
        pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
    }
    pthread_mutex_lock(&d->lock);
    while (!d->ends) {
        atomic_store(&d->asleep, !gradients_has_work(g));
        if (!gradients_has_work(g)) {
            if (atomic_load(&d->asleep))
                pthread_cond_wait(&d->wake, &d->lock);
            continue;
        }
        polls = gradients_advance_hidden(g) ? 0 : polls + 1;
        pthread_mutex_unlock(&d->lock);
        comm_back_off(g->c, polls);
        pthread_mutex_lock(&d->lock);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* Requires MPI_THREAD_MULTIPLE, because two threads call MPI. */
static void gradients_driver_start(struct traincomm_gradients *g, int cpu)
{
    struct driver *d = &g->driver;
    int level;

    d->cpu = cpu;
    if (MPI_Query_thread(&level) || level < MPI_THREAD_MULTIPLE)
        return;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->wake, NULL);
    d->runs = pthread_create(&d->thread, NULL, gradients_driver_main, g) == 0;
}

static void gradients_driver_end(struct driver *d)
{
    if (!d->runs)
        return;
    pthread_mutex_lock(&d->lock);
    d->ends = true;
    pthread_cond_signal(&d->wake);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->wake);
}

/* Values of which the minimum over all ranks applies */
enum { LEAST_RANKS, LEAST_THREADS, LEAST_STATUS, LEAST_DRIVER, LEAST };

static size_t gradients_bucket_floats(const struct traincomm_gradients *g, size_t bytes)
{
    size_t n = (bytes ? bytes : BUCKET_BYTES) / sizeof(float);

    if (g->machines == 1) {
        size_t limit = ALL_FLOATS / (size_t)g->c->host_size,
               wanted = (size_t)g->threads * THREAD_FLOATS;
        n = wanted < limit ? wanted : limit;
    }
    n = n < BUCKET_FLOATS_MAX ? n : BUCKET_FLOATS_MAX;
    n = n < g->count ? n : g->count;
    return n > 0 ? n : 1;
}

static int gradients_make_exchange(struct traincomm_gradients *g, MPI_Comm peers)
{
    size_t part =
        g->bucket_floats / (size_t)g->leaders + 32; /* parts are rounded up to whole cache lines */

    if (peers == MPI_COMM_NULL)
        return 0;
    if (exchange_create(&g->between, peers, g->narrow))
        return -TRAINCOMM_ERROR_MEMORY;
    part = part < g->bucket_floats ? part : g->bucket_floats;
    g->scratch_floats = exchange_scratch(&g->between, part);
    g->scratch = malloc(SLOTS * g->scratch_floats * sizeof *g->scratch);
    return g->scratch ? 0 : -TRAINCOMM_ERROR_MEMORY;
}

/* Creates what the ranks share. An error is the same on all ranks. Collective. */
static int gradients_join(struct traincomm_gradients *g, const struct traincomm_options *options,
                          const int least[LEAST])
{
    struct traincomm *c = g->c;
    MPI_Comm peers = MPI_COMM_NULL;
    int mine[LEAST] = {0}, all[LEAST], status;

    g->leaders = least[LEAST_RANKS];
    g->threads = least[LEAST_THREADS];
    g->bucket_floats = gradients_bucket_floats(g, options->bucket_bytes);
    if (g->machines < c->size) {
        status = host_sum_create(c, g->bucket_floats, g->leaders, g->narrow && g->machines == 1,
                                 &g->host);
        if (status)
            return status;
    }
    if (g->machines == 1)
        return 0;
    comm_wait_begins(c);
    MPI_Comm_split(c->comm, gradients_leads(g) ? c->host_rank : MPI_UNDEFINED, c->rank, &peers);
    mine[LEAST_STATUS] = gradients_make_exchange(g, peers);
    if (options->thread && !options->no_overlap)
        gradients_driver_start(g, options->thread_cpu);
    mine[LEAST_DRIVER] = g->driver.runs;
    MPI_Allreduce(mine, all, LEAST, MPI_INT, MPI_MIN, c->comm);
    comm_wait_ends(c);
    g->trial.drives = options->no_overlap ? 1 : all[LEAST_DRIVER] ? DRIVES : DRIVES - 1;
    return all[LEAST_STATUS];
}

static struct traincomm_gradients *gradients_new(struct traincomm *c, float *gradients,
                                                 size_t count, enum traincomm_dtype dtype,
                                                 int machines)
{
    struct traincomm_gradients *g = calloc(1, sizeof *g);

    if (!g)
        return NULL;
    g->magic = GRADIENTS_MAGIC;
    g->c = c;
    g->gradients = gradients;
    g->count = g->sent_from = count;
    atomic_init(&g->ready_from, count);
    g->narrow = dtype == TRAINCOMM_BF16;
    g->machines = machines;
    g->trial.drives = 1;
    return g;
}

int traincomm_gradients_create(struct traincomm *c, float *gradients, size_t count,
                               const struct traincomm_options *options,
                               struct traincomm_gradients **out)
{
    static const struct traincomm_options defaults = {0};
    struct traincomm_gradients *g;
    int machines = c->host_rank == 0, mine[LEAST], least[LEAST], status;

    *out = NULL;
    options = options ? options : &defaults;
    comm_wait_begins(c);
    MPI_Allreduce(MPI_IN_PLACE, &machines, 1, MPI_INT, MPI_SUM, c->comm);
    g = gradients_new(c, gradients, count, options->dtype, machines);
    mine[LEAST_RANKS] = c->host_size;
    mine[LEAST_THREADS] = options->threads > 0 ? options->threads : 1;
    mine[LEAST_STATUS] = g ? 0 : -TRAINCOMM_ERROR_MEMORY;
    mine[LEAST_DRIVER] = 0;
    MPI_Allreduce(mine, least, LEAST, MPI_INT, MPI_MIN, c->comm);
    comm_wait_ends(c);
    status = least[LEAST_STATUS];
    if (!status)
        status = gradients_join(g, options, least);
    if (status)
        traincomm_gradients_destroy(g);
    else
        *out = g;
    return status;
}

void traincomm_gradients_destroy(struct traincomm_gradients *g)
{
    if (!g)
        return;
    comm_assert(g->magic == GRADIENTS_MAGIC);
    *(volatile unsigned *)&g->magic = 0;
    gradients_driver_end(&g->driver);
    host_sum_destroy(g->host);
    comm_wait_begins(g->c);
    exchange_free(&g->between);
    comm_wait_ends(g->c);
    free(g->scratch);
    free(g);
}

static bool gradients_trial_ended(const struct drive_trial *t)
{
    return t->drives == 1 || t->round > t->drives * TRIAL_ROUNDS;
}

static enum traincomm_drive gradients_trial_best(const struct drive_trial *t)
{
    const double *least = t->least;
    enum traincomm_drive best =
        least[TRAINCOMM_DRIVE_WAIT] > TRIAL_GAIN * least[TRAINCOMM_DRIVE_CALLS]
            ? TRAINCOMM_DRIVE_CALLS
            : TRAINCOMM_DRIVE_WAIT;

    if (t->drives == DRIVES && least[TRAINCOMM_DRIVE_THREAD] < TRIAL_GAIN * least[best])
        return TRAINCOMM_DRIVE_THREAD;
    return best;
}

/* Ends a round of the trial. The ranks agree on each driver's best time on the slowest rank. */
static void gradients_trial_round(struct traincomm_gradients *g)
{
    struct drive_trial *t = &g->trial;
    double now = comm_clock(), seconds = now - t->since;

    t->since = now;
    if (t->round > 0 && (t->least[g->drive] == 0 || seconds < t->least[g->drive]))
        t->least[g->drive] = seconds; /* round 0 is a warm-up */
    g->drive = (enum traincomm_drive)(t->round++ % t->drives);
    if (!gradients_trial_ended(t))
        return;
    MPI_Allreduce(MPI_IN_PLACE, t->least, DRIVES, MPI_DOUBLE, MPI_MAX, g->c->comm);
    g->drive = gradients_trial_best(t);
}

/* Appends ": a step takes 1.2 s (1.3 s by calls)"; returns the number of characters. */
static int gradients_describe_trial(const struct traincomm_gradients *g, char *text, size_t bytes)
{
    static const char *const other[DRIVES] = {"after backward", "by calls", "by a thread"};
    const struct drive_trial *t = &g->trial;
    int n = snprintf(text, bytes, ": a step takes %.4g s (", t->least[g->drive]);

    for (int i = 0, more = 0; i < t->drives && i < DRIVES; i++)
        if (i != (int)g->drive)
            n += snprintf(text + n, bytes - (size_t)n, "%s%.4g s %s", more++ ? ", " : "",
                          t->least[i], other[i]);
    return n + snprintf(text + n, bytes - (size_t)n, ")");
}

bool traincomm_gradients_describe(const struct traincomm_gradients *g, char *text, size_t bytes)
{
    static const char *const drives[DRIVES] = {"after backward", "during backward, driven by calls",
                                               "during backward, driven by a thread"};
    bool decided = gradients_trial_ended(&g->trial);
    char line[512];
    int n = snprintf(line, sizeof line, "gradients of %d ranks are summed", g->c->size);

    if (g->host)
        n += snprintf(line + n, sizeof line - (size_t)n, "%s",
                      g->machines > 1 ? " on each machine through shared memory, then"
                                      : " through shared memory");
    if (g->machines > 1)
        n += snprintf(line + n, sizeof line - (size_t)n,
                      " between %d machines by %d rank%s of each, in buckets of %.3g MB",
                      g->machines, g->leaders, g->leaders > 1 ? "s" : "",
                      1e-6 * (double)(g->bucket_floats * gradient_bytes(g)));
    n += snprintf(line + n, sizeof line - (size_t)n, ", %s",
                  decided ? drives[g->drive]
                          : "during or after backward, depending on the first steps");
    if (decided && g->trial.drives > 1)
        gradients_describe_trial(g, line + n, sizeof line - (size_t)n);
    snprintf(text, bytes, "%s", line);
    return decided;
}

void traincomm_gradients_ready(struct traincomm_gradients *g, size_t offset)
{
    comm_assert(g && g->magic == GRADIENTS_MAGIC);
    if (g->drive == TRAINCOMM_DRIVE_WAIT)
        return;
    comm_assert(offset <= atomic_load(&g->ready_from));
    atomic_store(&g->ready_from, offset);
    sums_use_threads(g->threads);
    if (g->drive == TRAINCOMM_DRIVE_CALLS) {
        gradients_advance_hidden(g);
    } else if (atomic_load(&g->driver.asleep)) {
        pthread_mutex_lock(&g->driver.lock);
        pthread_cond_signal(&g->driver.wake);
        pthread_mutex_unlock(&g->driver.lock);
    }
}

static void gradients_round(struct traincomm_gradients *g, double start)
{
    struct driver *d = &g->driver;

    atomic_store(&d->paused, true);
    if (d->runs)
        pthread_mutex_lock(&d->lock);
    sums_use_threads(g->threads);
    gradients_end_hidden(g, start);
    gradients_finish_buckets(g);
    comm_span(g->c, "wait for buckets", 0, start, g->count * gradient_bytes(g));
    if (!gradients_trial_ended(&g->trial))
        gradients_trial_round(g);
    if (d->runs)
        pthread_mutex_unlock(&d->lock);
    atomic_store(&d->paused, false);
}

bool traincomm_gradients_can_update(const struct traincomm_gradients *g)
{
    comm_assert(g && g->magic == GRADIENTS_MAGIC);
    return g->host && g->machines == 1 && !g->narrow &&
           g->bucket_floats / (size_t)g->leaders >= 2 * TRAINCOMM_CUT_FLOATS;
}

double traincomm_gradients_update(struct traincomm_gradients *g,
                                  const struct traincomm_update *update)
{
    double start = comm_clock(), seconds;

    comm_assert(g && g->magic == GRADIENTS_MAGIC);
    comm_assert(!update || traincomm_gradients_can_update(g));
    g->update = update;
    g->update_seconds = 0;
    comm_wait_begins(g->c);
    if (g->c->size > 1) {
        gradients_round(g, start);
        g->stats.bytes += g->count * gradient_bytes(g);
    }
    comm_wait_ends(g->c);
    g->stats.rounds++;
    g->update = NULL;
    seconds = comm_clock() - start - g->update_seconds;
    g->stats.unhidden_seconds += seconds;
    return seconds;
}

double traincomm_gradients_wait(struct traincomm_gradients *g)
{
    return traincomm_gradients_update(g, NULL);
}

void traincomm_gradients_stats(const struct traincomm_gradients *g, struct traincomm_stats *out)
{
    comm_assert(g && g->magic == GRADIENTS_MAGIC);
    *out = g->stats;
    out->machines = g->machines;
    out->leaders = g->leaders;
    out->exchanges = exchange_rounds(&g->between);
    out->drive = g->drive;
}
