/*
 * MPI_Iallreduce of a few numbers and MPI_Ibarrier, as Open MPI's libnbc has them: binomial trees
 * and a dissemination, which get on only while their rank looks at them.
 */
#define SCALE_SHIM_C
#include "tests/scale/shim.h"

#include <simgrid/actor.h>
#include <stdio.h>

#define POLL_SECONDS 1e-6 /* a look that finds nothing */
#define ROUNDS_MAX   96
#define FIRST_TAG    20000
#define TAGS         1000

/* Of a round: at most two messages. What is received is added up before the next round. */
struct round {
    int to, from; /* -1: none */
    bool adds;
};

struct small {
    struct small *next; /* of the same rank */
    MPI_Comm comm;
    struct round *rounds;
    int count, at, tag;
    bool posted;
    MPI_Request requests[2];
    void *value, *other; /* (bytes): */
    int n;
    size_t bytes;
    MPI_Datatype type;
    MPI_Op op;
};

static struct small *smalls[SCALE_RANKS_MAX]; /* of each rank, those under way */
static int small_tags[SCALE_RANKS_MAX];

static void small_round(struct small *s, int to, int from, bool adds)
{
    s->rounds[s->count++] = (struct round){to, from, adds};
}

/* Binomial: libnbc's sum of what is short, or in place. Room for 32 rounds each way. */
static void small_find_sum(struct small *s, int rank, int size)
{
    int bit = 1, top = 1;

    for (; bit < size && !(rank & bit); bit *= 2)
        if (rank + bit < size)
            small_round(s, -1, rank + bit, true);
    if (bit < size)
        small_round(s, rank - bit, -1, false);
    if (rank > 0)
        small_round(s, -1, rank & (rank - 1), false);
    while (top < size)
        top *= 2;
    for (int b = rank > 0 ? (rank & -rank) / 2 : top / 2; b > 0; b /= 2)
        if (rank + b < size)
            small_round(s, rank + b, -1, false);
}

static void small_find_barrier(struct small *s, int rank, int size)
{
    for (int far = 1; far < size; far *= 2)
        small_round(s, (rank + far) % size, (rank - far + size) % size, false);
}

static void small_post(struct small *s)
{
    const struct round *r = &s->rounds[s->at];
    int n = (int)s->bytes;

    s->requests[0] = s->requests[1] = MPI_REQUEST_NULL;
    if (r->from >= 0)
        MPI_Irecv(r->adds ? s->other : s->value, n, MPI_BYTE, r->from, s->tag, s->comm,
                  &s->requests[0]);
    if (r->to >= 0)
        MPI_Isend(s->value, n, MPI_BYTE, r->to, s->tag, s->comm, &s->requests[1]);
    s->posted = true;
}

/* As far as it can get. All done? */
static bool small_advance(struct small *s)
{
    for (int ended; s->at < s->count; s->at++) {
        if (!s->posted)
            small_post(s);
        scale_testall(2, s->requests, &ended, MPI_STATUSES_IGNORE);
        if (!ended)
            return false;
        if (s->rounds[s->at].adds)
            MPI_Reduce_local(s->other, s->value, s->n, s->type, s->op);
        s->posted = false;
    }
    return true;
}

static struct small **small_first(void)
{
    return &smalls[scale_me()];
}

static void small_free(struct small **at)
{
    struct small *s = *at;

    *at = s->next;
    free(s->rounds);
    free(s->other);
    free(s);
}

static struct small *small_begin(MPI_Comm comm, void *value, int n, MPI_Datatype type, MPI_Op op,
                                 MPI_Request *request)
{
    struct small *s = calloc(1, sizeof *s);
    int size = 1;

    if (type != MPI_DATATYPE_NULL)
        MPI_Type_size(type, &size);
    s->comm = comm;
    s->n = n;
    s->bytes = (size_t)n * (size_t)size;
    s->type = type;
    s->op = op;
    s->value = value;
    s->other = calloc(1, s->bytes + 1);
    s->rounds = calloc(ROUNDS_MAX, sizeof *s->rounds);
    s->tag = FIRST_TAG + small_tags[scale_me()]++ % TAGS;
    s->next = *small_first();
    *small_first() = s;
    *request = (MPI_Request)s;
    return s;
}

int scale_iallreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
                     MPI_Comm comm, MPI_Request *request)
{
    struct small *s = small_begin(comm, to, count, type, op, request);
    int rank, size;

    if (s->bytes >= FOLD_BYTES) {
        fputs("MPI_Iallreduce of gradients is not simulated\n", stderr);
        abort();
    }
    if (from != MPI_IN_PLACE)
        memcpy(to, from, s->bytes);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    small_find_sum(s, rank, size);
    small_advance(s);
    return MPI_SUCCESS;
}

int scale_ibarrier(MPI_Comm comm, MPI_Request *request)
{
    struct small *s;
    int rank, size;

    s = small_begin(comm, NULL, 0, MPI_DATATYPE_NULL, MPI_OP_NULL, request);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    small_find_barrier(s, rank, size);
    small_advance(s);
    return MPI_SUCCESS;
}

/* ---- looking at them */

int scale_test(MPI_Request *request, int *ended, MPI_Status *status)
{
    struct small **at = small_first();

    while (*at && (MPI_Request)*at != *request)
        at = &(*at)->next;
    if (*at) {
        *ended = small_advance(*at);
        if (*ended) {
            small_free(at);
            *request = MPI_REQUEST_NULL;
        }
    } else {
        MPI_Test(request, ended, status);
    }
    if (!*ended)
        sg_actor_sleep_for(scale_turn(POLL_SECONDS));
    return MPI_SUCCESS;
}

int scale_wait(MPI_Request *request, MPI_Status *status)
{
    for (struct small *s = *small_first(); s; s = s->next)
        if ((MPI_Request)s == *request) {
            for (int ended = 0; !ended;)
                scale_test(request, &ended, status);
            return MPI_SUCCESS;
        }
    return MPI_Wait(request, status);
}
