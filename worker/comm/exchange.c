#include "worker/comm/exchange.h"

#include <stdlib.h>

#include "worker/comm/comm.h"
#include "worker/comm/sums.h"

struct extent {
    size_t first, n;
};

struct exchange_group {
    struct extent whole;
    int count, mine;
    int stride;  /* difference between the rank numbers of neighbouring members */
    bool direct; /* there is only this level: each member gets its final part */
};

int exchange_create(struct exchange *x, MPI_Comm comm, bool narrow)
{
    *x = (struct exchange){.comm = comm, .narrow = narrow};
    MPI_Comm_rank(comm, &x->rank);
    MPI_Comm_size(comm, &x->size);
    x->levels = sum_levels_find(x->size, x->digit);
    x->from = calloc((size_t)x->size, sizeof *x->from);
    return x->from ? 0 : -1;
}

void exchange_free(struct exchange *x)
{
    if (x->size > 0)
        MPI_Comm_free(&x->comm);
    free(x->from);
}

/* Space for received data, and in bf16 for sent data. Each level may round its parts up. */
size_t exchange_scratch(const struct exchange *x, size_t n)
{
    return n + (size_t)x->size * (size_t)(x->levels + 1);
}

int exchange_rounds(const struct exchange *x)
{
    return sum_levels_rounds(x->size, x->narrow);
}

static struct extent exchange_split(struct extent whole, int parts, int part)
{
    size_t n = (size_t)parts, i = (size_t)part;
    size_t first = whole.n * i / n, end = whole.n * (i + 1) / n;

    return (struct extent){whole.first + first, end - first};
}

/* The range that a rank has summed after `levels` levels of the reduce-scatter. */
static struct extent exchange_block(const struct exchange *x, size_t n, int levels, int rank)
{
    struct extent block = {0, n};

    for (int i = 0; i < levels; i++) {
        block = exchange_split(block, x->digit[i], rank % x->digit[i]);
        rank /= x->digit[i];
    }
    return block;
}

static struct exchange_group exchange_group(const struct exchange *x,
                                            const struct exchange_transfer *t)
{
    struct exchange_group g = {
        .whole = {0, t->n},
          .count = x->size, .mine = x->rank, .stride = 1
    };

    g.direct = x->narrow && !t->gathers;
    if (g.direct)
        return g;
    g.whole = exchange_block(x, t->n, t->level, x->rank);
    g.count = x->digit[t->level];
    for (int i = 0; i < t->level; i++)
        g.stride *= x->digit[i];
    g.mine = x->rank / g.stride % g.count;
    return g;
}

static struct extent exchange_part(const struct exchange *x, const struct exchange_transfer *t,
                                   const struct exchange_group *g, int member)
{
    return g->direct ? exchange_block(x, t->n, x->levels, member)
                     : exchange_split(g->whole, g->count, member);
}

/* ---- memory: in bf16, scratch holds the whole range followed by the received data */

static size_t exchange_width(const struct exchange *x)
{
    return x->narrow ? sizeof(sums_bf16_t) : sizeof(float);
}

static char *exchange_data(const struct exchange *x, const struct exchange_transfer *t)
{
    return (char *)(x->narrow ? t->scratch : t->at);
}

static char *exchange_received(const struct exchange *x, const struct exchange_transfer *t,
                               const struct exchange_group *g, int member, size_t n)
{
    size_t place = (size_t)(member < g->mine ? member : member - 1) * n;

    return (char *)t->scratch + exchange_width(x) * (place + (x->narrow ? t->n : 0));
}

static MPI_Request *exchange_next(struct exchange_transfer *t)
{
    comm_assert(t->open < 2 * SUM_LEVELS_WINDOW);
    return &t->requests[t->open++];
}

/* Starts with the next member, so that the members send to different receivers at the same time. */
static void exchange_send_some(const struct exchange *x, struct exchange_transfer *t,
                               const struct exchange_group *g)
{
    struct extent mine = exchange_part(x, t, g, g->mine);
    size_t width = exchange_width(x);
    char *data = exchange_data(x, t);
    int tag = t->tag + t->level + (t->gathers ? SUM_LEVELS_MAX : 0);

    for (int i = 0; i < SUM_LEVELS_WINDOW && t->begun < g->count - 1; i++) {
        int step = ++t->begun, to = (g->mine + step) % g->count;
        int from = (g->mine - step + g->count) % g->count;
        struct extent there = exchange_part(x, t, g, to), back = exchange_part(x, t, g, from);
        struct extent sent = t->gathers ? mine : there, got = t->gathers ? back : mine;
        char *received =
            t->gathers ? data + width * got.first : exchange_received(x, t, g, from, got.n);
        if (got.n > 0)
            MPI_Irecv(received, (int)(width * got.n), MPI_BYTE,
                      x->rank + (from - g->mine) * g->stride, tag, x->comm, exchange_next(t));
        if (sent.n > 0)
            MPI_Isend(data + width * sent.first, (int)(width * sent.n), MPI_BYTE,
                      x->rank + (to - g->mine) * g->stride, tag, x->comm, exchange_next(t));
    }
}

static void exchange_add(const struct exchange *x, struct exchange_transfer *t,
                         const struct exchange_group *g)
{
    struct extent mine = exchange_part(x, t, g, g->mine);
    char *own = exchange_data(x, t) + exchange_width(x) * mine.first;

    for (int i = 0; i < g->count; i++)
        x->from[i] = i == g->mine ? own : exchange_received(x, t, g, i, mine.n);
    if (x->narrow)
        sums_bf16((const sums_bf16_t *const *)x->from, g->count, mine.n, (sums_bf16_t *)own);
    else
        sums_fp32((const float *const *)x->from, g->count, mine.n, (float *)own);
}

static void exchange_end_level(const struct exchange *x, struct exchange_transfer *t,
                               const struct exchange_group *g)
{
    t->begun = 0;
    if (t->gathers) {
        if (--t->level < 0 && x->narrow)
            sums_widen((const sums_bf16_t *)t->scratch, t->at, t->n);
        return;
    }
    exchange_add(x, t, g);
    t->gathers = x->narrow || t->level + 1 == x->levels;
    t->level = t->gathers ? x->levels - 1 : t->level + 1;
}

void exchange_begin(const struct exchange *x, struct exchange_transfer *t)
{
    t->level = t->begun = t->open = 0;
    t->gathers = false;
    if (x->narrow)
        sums_round(t->at, (sums_bf16_t *)t->scratch, t->n);
}

bool exchange_advance(const struct exchange *x, struct exchange_transfer *t)
{
    int ended = 1;

    if (exchange_done(t))
        return false;
    if (t->open > 0)
        MPI_Testall(t->open, t->requests, &ended, MPI_STATUSES_IGNORE);
    if (!ended)
        return false;
    t->open = 0;
    struct exchange_group g = exchange_group(x, t);
    if (t->begun < g.count - 1)
        exchange_send_some(x, t, &g);
    else
        exchange_end_level(x, t, &g);
    return true;
}
