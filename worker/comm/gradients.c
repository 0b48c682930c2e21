/*
 * The sum of the gradients over all ranks. A bucket is a range of the one flat buffer (Horovod's
 * tensor fusion without its copies); every rank cuts at the same places, whatever ranges backward
 * reports, as a collective must have the same count everywhere.
 *
 * Which way is taken, and why, was measured: doc/engine-log.md, "All-reduce".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/comm/internal.h"
#include "worker/comm/narrow.h"
#include "worker/comm/shared_sum.h"

#define PIECE_FLOATS      ((size_t)1 << 19) /* 2 MiB: fits the second-level cache */
#define BUCKET_BYTES      ((size_t)32 << 20)
#define BUCKET_FLOATS_MAX (PIECE_BYTES_MAX / sizeof(float))
#define SHARED_RANKS      3 /* from so many on a machine their shared memory is faster than MPI */
#define TRIAL_ROUNDS      3 /* of each kind */
#define TRIAL_GAIN        0.98 /* clearly faster */

/* Whether buckets travel behind backward or after it, which gives the same bits: the first rounds
 * do both by turns, and the fastest round of each decides. */
struct overlap_trial {
    int round; /* the next one; from TRIAL_END on it is decided */
    double since, least[2];
};
enum { TRIAL_AFTER, TRIAL_BEHIND, TRIAL_END = 2 * TRIAL_ROUNDS + 1 };

/* What is done with a bucket, one after the other; each kind has a communicator of its own, where
 * all ranks begin the buckets in the same order. */
enum exchange {
    SUM_ON_HOST,    /* its first rank, the leader, gets the sum of the machine's ranks */
    SUM_OF_ALL,     /* of all ranks, or of all leaders */
    SWAP_PARTS,     /* the same in bf16: each gets its part of all, */
    GATHER_SUMS,    /* and sends the sums to all */
    SPREAD_ON_HOST, /* the leader's to the machine's ranks */
    EXCHANGES
};

struct bucket {
    float *at;
    size_t n;
    int step; /* which of the object's exchanges is on its way */
    bool done;
    double started;
    MPI_Request request;
};

struct traincomm_gradients {
    struct traincomm *c;
    float *gradients; /* (count), borrowed */
    size_t count, bucket_floats;
    enum traincomm_way way;
    bool overlap, narrow;
    int peers, peer; /* ranks that sum between them, all or the leaders; this rank's number */
    enum exchange steps[EXCHANGES]; /* of this rank, in order */
    int step_count;
    MPI_Comm comm[EXCHANGES]; /* MPI_COMM_NULL: not one of the steps */
    struct shared_sum *shared;
    size_t ready_from;      /* gradients[ready_from..count) are complete on this rank */
    size_t sent_from;       /* gradients[sent_from..count) are on their way or done */
    struct bucket *buckets; /* of this round */
    int bucket_count;
    int finished;      /* of them, in order: all steps are done */
    double busy_since; /* buckets are on their way; 0: none is */
    double wait_since; /* traincomm_gradients_wait was called */
    struct overlap_trial trial;
    struct traincomm_stats stats;
};

/* Of one that is sent. */
static size_t gradient_bytes(const struct traincomm_gradients *g)
{
    return g->narrow ? sizeof(narrow_bf16) : sizeof *g->gradients;
}

static bool leads(const struct traincomm_gradients *g)
{
    return g->way != TRAINCOMM_WAY_LEADERS || g->c->host_rank == 0;
}

/* ---- a bucket's steps */

static void begin_swap(struct traincomm_gradients *g, struct bucket *b)
{
    size_t whole = narrow_whole(b->n, g->peers);
    int part = (int)(whole / (size_t)g->peers);

    narrow_round(b->at + whole, b->n - whole);
    narrow(b->at, whole);
    MPI_Ialltoall(narrow_sent(b->at), part, MPI_UINT16_T, narrow_received(b->at, whole), part,
                  MPI_UINT16_T, g->comm[SWAP_PARTS], &b->request);
}

static void begin_gather(struct traincomm_gradients *g, struct bucket *b)
{
    size_t whole = narrow_whole(b->n, g->peers);

    narrow_sum(b->at, whole, g->peer, g->peers);
    MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, narrow_sent(b->at),
                   (int)(whole / (size_t)g->peers), MPI_UINT16_T, g->comm[GATHER_SUMS],
                   &b->request);
}

/* Numbers too few for a part for each are in the last bucket alone, which is sent when the caller
 * waits. */
static void end_gather(struct traincomm_gradients *g, struct bucket *b)
{
    size_t whole = narrow_whole(b->n, g->peers);

    narrow_widen(b->at, whole);
    if (whole == b->n)
        return;
    MPI_Allreduce(MPI_IN_PLACE, b->at + whole, (int)(b->n - whole), MPI_FLOAT, MPI_SUM,
                  g->comm[SWAP_PARTS]);
    narrow_round(b->at + whole, b->n - whole);
}

static void begin_step(struct traincomm_gradients *g, struct bucket *b)
{
    enum exchange step = g->steps[b->step];
    MPI_Comm comm = g->comm[step];
    int n = (int)b->n;

    switch (step) {
    case SUM_ON_HOST:
        MPI_Ireduce(leads(g) ? MPI_IN_PLACE : b->at, leads(g) ? b->at : NULL, n, MPI_FLOAT, MPI_SUM,
                    0, comm, &b->request);
        break;
    case SUM_OF_ALL:
        MPI_Iallreduce(MPI_IN_PLACE, b->at, n, MPI_FLOAT, MPI_SUM, comm, &b->request);
        break;
    case SWAP_PARTS:
        begin_swap(g, b);
        break;
    case GATHER_SUMS:
        begin_gather(g, b);
        break;
    default:
        MPI_Ibcast(b->at, n, MPI_FLOAT, 0, comm, &b->request);
    }
}

/* The step has ended: the next one begins, or the bucket is done. */
static void end_step(struct traincomm_gradients *g, struct bucket *b)
{
    if (g->steps[b->step] == GATHER_SUMS)
        end_gather(g, b);
    if (b->step + 1 == g->step_count) {
        b->done = true;
        return;
    }
    b->step++;
    begin_step(g, b);
}

/* May bucket i begin its next step? The one before has, as on all ranks. */
static bool is_its_turn(const struct traincomm_gradients *g, int i)
{
    const struct bucket *b = &g->buckets[i], *before = b - 1;
    return i == g->finished || before->done || before->step > b->step ||
           b->step + 1 == g->step_count;
}

/* Moves on what can be. *moved: something was. All done? */
static bool advance_buckets(struct traincomm_gradients *g, bool *moved)
{
    for (int i = g->finished; i < g->bucket_count; i++) {
        struct bucket *b = &g->buckets[i];
        int ended = 1;
        while (!b->done && ended && is_its_turn(g, i)) {
            MPI_Test(&b->request, &ended, MPI_STATUS_IGNORE);
            if (ended)
                end_step(g, b);
            *moved = *moved || ended;
        }
    }
    while (g->finished < g->bucket_count && g->buckets[g->finished].done)
        g->finished++;
    return g->finished == g->bucket_count;
}

static void finish_sent(struct traincomm_gradients *g)
{
    for (bool moved = false; !advance_buckets(g, &moved); moved = false)
        if (!moved) /* the first is the one the others' order depends on */
            MPI_Wait(&g->buckets[g->finished].request, MPI_STATUS_IGNORE);
    g->bucket_count = g->finished = 0;
}

static void begin_bucket(struct traincomm_gradients *g, float *at, size_t n)
{
    struct bucket *b = &g->buckets[g->bucket_count++];

    *b = (struct bucket){.at = at, .n = n, .started = comm_clock()};
    begin_step(g, b);
}

/* ---- buckets */

static void send_bucket(struct traincomm_gradients *g, size_t from)
{
    begin_bucket(g, g->gradients + from, g->sent_from - from);
    double started = g->buckets[g->bucket_count - 1].started;
    if (g->busy_since == 0)
        g->busy_since = started;
    comm_span(g->c, "start bucket", g->bucket_count, started,
              (g->sent_from - from) * gradient_bytes(g));
    g->stats.buckets++;
    g->sent_from = from;
}

static void send_full_buckets(struct traincomm_gradients *g)
{
    size_t ready_from = g->ready_from;

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
    bool moved = false;

    if (g->busy_since == 0 || advance_buckets(g, &moved))
        end_hidden(g, comm_clock());
}

static void finish_buckets(struct traincomm_gradients *g)
{
    end_hidden(g, g->wait_since);
    send_rest(g);
    double start = comm_clock();
    finish_sent(g);
    comm_span(g->c, "wait for buckets", 0, start, 0);
    g->busy_since = 0;
    g->sent_from = g->ready_from = g->count;
}

/* ---- making and ending */

/* The environment's TRAINCOMM_WAY is for measurements: no program need be changed. */
static int choose_way(const struct traincomm *c, enum traincomm_way wanted, int hosts,
                      enum traincomm_way *way)
{
    static const char *const names[] = {[TRAINCOMM_WAY_AUTO] = "auto",
                                        [TRAINCOMM_WAY_PIECES] = "pieces",
                                        [TRAINCOMM_WAY_CALLS] = "calls",
                                        [TRAINCOMM_WAY_SHARED] = "shared",
                                        [TRAINCOMM_WAY_LEADERS] = "leaders"};
    const char *name = getenv("TRAINCOMM_WAY");
    int ways = (int)(sizeof names / sizeof names[0]), named = 0;

    while (name && named < ways && strcmp(name, names[named]) != 0)
        named++;
    if (named == ways)
        return -TRAINCOMM_ERROR_ARGUMENT;
    if (name && named != TRAINCOMM_WAY_AUTO)
        wanted = (enum traincomm_way)named;
    if (wanted == TRAINCOMM_WAY_AUTO && hosts == 1)
        wanted = c->size < SHARED_RANKS ? TRAINCOMM_WAY_PIECES : TRAINCOMM_WAY_SHARED;
    else if (wanted == TRAINCOMM_WAY_AUTO)
        wanted = hosts < c->size ? TRAINCOMM_WAY_LEADERS : TRAINCOMM_WAY_CALLS;
    *way = wanted;
    return wanted == TRAINCOMM_WAY_SHARED && hosts > 1 ? -TRAINCOMM_ERROR_ARGUMENT : 0;
}

static void gradients_find_steps(struct traincomm_gradients *g, int hosts)
{
    bool by_leaders = g->way == TRAINCOMM_WAY_LEADERS;

    g->peers = by_leaders ? hosts : g->c->size;
    if (by_leaders)
        g->steps[g->step_count++] = SUM_ON_HOST;
    if (leads(g) && !g->narrow)
        g->steps[g->step_count++] = SUM_OF_ALL;
    if (leads(g) && g->narrow) {
        g->steps[g->step_count++] = SWAP_PARTS;
        g->steps[g->step_count++] = GATHER_SUMS;
    }
    if (by_leaders)
        g->steps[g->step_count++] = SPREAD_ON_HOST;
}

/* Collective: the same calls on all ranks. */
static void gradients_make_comms(struct traincomm_gradients *g)
{
    MPI_Comm peers;

    comm_wait_begins(g->c);
    MPI_Comm_split(g->c->comm, leads(g) ? 0 : MPI_UNDEFINED, g->c->rank, &peers);
    for (int i = 0; i < g->step_count; i++) {
        bool on_host = g->steps[i] == SUM_ON_HOST || g->steps[i] == SPREAD_ON_HOST;
        MPI_Comm_dup(on_host ? g->c->node : peers, &g->comm[g->steps[i]]);
    }
    if (peers != MPI_COMM_NULL) {
        MPI_Comm_rank(peers, &g->peer);
        MPI_Comm_free(&peers);
    }
    comm_wait_ends(g->c);
}

static size_t gradients_bucket_floats(const struct traincomm_gradients *g, size_t bytes)
{
    size_t n = (bytes ? bytes : BUCKET_BYTES) / sizeof(float), whole;

    n = n < 1 ? 1 : n < BUCKET_FLOATS_MAX ? n : BUCKET_FLOATS_MAX;
    if (!g->narrow)
        return n;
    whole = narrow_whole(n, g->peers); /* only the last bucket has a rest */
    return whole ? whole : (size_t)g->peers;
}

static int gradients_make(struct traincomm *c, float *gradients, size_t count,
                          const struct traincomm_options *options, int hosts,
                          struct traincomm_gradients **out)
{
    struct traincomm_gradients *g = calloc(1, sizeof *g);

    *out = g;
    if (!g)
        return -TRAINCOMM_ERROR_MEMORY;
    g->c = c;
    g->gradients = gradients;
    g->count = g->sent_from = g->ready_from = count;
    g->narrow = options->dtype == TRAINCOMM_BF16;
    for (int i = 0; i < EXCHANGES; i++)
        g->comm[i] = MPI_COMM_NULL;
    int status = choose_way(c, options->way, hosts, &g->way);
    g->stats.way = g->way;
    bool blocks = g->way == TRAINCOMM_WAY_PIECES || g->way == TRAINCOMM_WAY_SHARED;
    g->overlap = c->size > 1 && !options->no_overlap && !blocks;
    g->trial.round = g->overlap ? 0 : TRIAL_END;
    gradients_find_steps(g, hosts);
    g->bucket_floats = gradients_bucket_floats(g, options->bucket_bytes);
    g->buckets = calloc(count / g->bucket_floats + 2, sizeof *g->buckets);
    if (!status && !g->buckets)
        status = -TRAINCOMM_ERROR_MEMORY;
    return status;
}

/* All ranks have made theirs: what they make together. Collective. */
static int gradients_join(struct traincomm_gradients *g)
{
    if (g->way == TRAINCOMM_WAY_SHARED)
        return shared_sum_create(g->c, g->count, &g->shared);
    gradients_make_comms(g);
    return 0;
}

static void gradients_free(struct traincomm_gradients *g)
{
    free(g->buckets);
    free(g);
}

int traincomm_gradients_create(struct traincomm *c, float *gradients, size_t count,
                               const struct traincomm_options *options,
                               struct traincomm_gradients **out)
{
    static const struct traincomm_options defaults = {0};
    struct traincomm_gradients *g;
    int hosts = c->host_rank == 0, status, worst;

    *out = NULL;
    comm_wait_begins(c);
    MPI_Allreduce(MPI_IN_PLACE, &hosts, 1, MPI_INT, MPI_SUM, c->comm);
    status = gradients_make(c, gradients, count, options ? options : &defaults, hosts, &g);
    MPI_Allreduce(&status, &worst, 1, MPI_INT, MPI_MIN, c->comm);
    comm_wait_ends(c);
    if (!worst)
        worst = gradients_join(g);
    if (!worst) {
        *out = g;
        return 0;
    }
    if (g)
        gradients_free(g);
    return worst;
}

void traincomm_gradients_destroy(struct traincomm_gradients *g)
{
    if (!g)
        return;
    shared_sum_destroy(g->shared);
    comm_wait_begins(g->c);
    for (int i = 0; i < EXCHANGES; i++)
        if (g->comm[i] != MPI_COMM_NULL)
            MPI_Comm_free(&g->comm[i]);
    comm_wait_ends(g->c);
    gradients_free(g);
}

/* ---- whether to send behind backward */

static bool sends_behind(const struct traincomm_gradients *g)
{
    return g->overlap && (g->trial.round >= TRIAL_END || g->trial.round % 2 == TRIAL_BEHIND);
}

/* A round has ended. The ranks agree: of each kind the slowest rank's fastest. */
static void trial_round(struct traincomm_gradients *g)
{
    struct overlap_trial *t = &g->trial;
    double now = comm_clock(), seconds = now - t->since, *least = &t->least[t->round % 2];

    t->since = now;
    if (t->round > 0 && (*least == 0 || seconds < *least)) /* the first warms up */
        *least = seconds;
    if (++t->round < TRIAL_END)
        return;
    MPI_Allreduce(MPI_IN_PLACE, t->least, 2, MPI_DOUBLE, MPI_MAX, g->c->comm);
    g->overlap = t->least[TRIAL_AFTER] > TRIAL_GAIN * t->least[TRIAL_BEHIND];
}

bool traincomm_gradients_describe(const struct traincomm_gradients *g, char *text, size_t bytes)
{
    static const char *const ways[] = {
        [TRAINCOMM_WAY_PIECES] = "within one machine by MPI, after backward",
        [TRAINCOMM_WAY_SHARED] = "within one machine through its shared memory, after backward",
        [TRAINCOMM_WAY_CALLS] = "by MPI",
        [TRAINCOMM_WAY_LEADERS] = "by machine, then between one of each",
    };
    const struct overlap_trial *t = &g->trial;
    bool tried = t->least[0] > 0 && t->round >= TRIAL_END;
    int n = snprintf(text, bytes, "gradients of %d ranks are summed %s", g->c->size, ways[g->way]);

    if (n < 0 || (size_t)n >= bytes || g->shared || g->way == TRAINCOMM_WAY_PIECES)
        return true;
    snprintf(text + n, bytes - (size_t)n, ", in buckets of %.3g MB, %s",
             1e-6 * (double)(g->bucket_floats * gradient_bytes(g)),
             !tried && g->overlap ? "during backward or after it as the first steps show"
             : g->overlap         ? "during backward"
                                  : "after backward");
    n = (int)strlen(text);
    if (tried)
        snprintf(text + n, bytes - (size_t)n, ": a step takes %.4g s (%.4g s %s)",
                 t->least[g->overlap ? TRIAL_BEHIND : TRIAL_AFTER],
                 t->least[g->overlap ? TRIAL_AFTER : TRIAL_BEHIND],
                 g->overlap ? "after it" : "during it");
    return tried || !g->overlap;
}

/* ---- a round */

void traincomm_gradients_ready(struct traincomm_gradients *g, size_t offset)
{
    g->ready_from = offset;
    if (!sends_behind(g))
        return;
    send_full_buckets(g);
    test_buckets(g);
}

static void reduce_pieces(struct traincomm_gradients *g)
{
    size_t step = g->narrow ? narrow_whole(PIECE_FLOATS, g->c->size) : PIECE_FLOATS;

    comm_meet(g->c->comm);
    for (size_t from = 0, n; from < g->count; from += n) {
        n = g->count - from < step ? g->count - from : step;
        double start = comm_clock();
        if (g->narrow) {
            begin_bucket(g, g->gradients + from, n);
            finish_sent(g);
        } else {
            MPI_Allreduce(MPI_IN_PLACE, g->gradients + from, (int)n, MPI_FLOAT, MPI_SUM,
                          g->comm[SUM_OF_ALL]);
        }
        comm_span(g->c, "piece", (int)(from / step) + 1, start, n * gradient_bytes(g));
        g->stats.buckets++;
    }
}

static void reduce_shared(struct traincomm_gradients *g)
{
    double start = comm_clock();

    g->stats.buckets += (uint64_t)shared_sum(g->shared, g->gradients, g->count, g->narrow);
    comm_span(g->c, "shared memory", 1, start, g->count * gradient_bytes(g));
}

double traincomm_gradients_wait(struct traincomm_gradients *g)
{
    g->wait_since = comm_clock();
    g->ready_from = 0;
    comm_wait_begins(g->c);
    if (g->c->size == 1)
        g->ready_from = g->count;
    else if (g->way == TRAINCOMM_WAY_PIECES)
        reduce_pieces(g);
    else if (g->way == TRAINCOMM_WAY_SHARED)
        reduce_shared(g);
    else
        finish_buckets(g);
    if (g->trial.round < TRIAL_END)
        trial_round(g);
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
