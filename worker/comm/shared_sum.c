#include "worker/comm/shared_sum.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "worker/comm/narrow.h"

/* A piece of all ranks stays in the third-level cache, a rank's own in the second. */
#define PIECE_FLOATS_MAX ((size_t)1 << 17)
#define ALL_FLOATS       ((size_t)1 << 21)
#define LINE_FLOATS      16 /* a rank's part of a piece begins with a cache line */
#define BLOCK_FLOATS     512
#define SPINS            2000
/* While a rank copies the next piece in, others still add this one up or copy the last one out. */
#define PLACES 3

/* Where the ranks of a machine meet: counts those that are here, and how often all have been. */
struct meeting {
    _Alignas(64) atomic_uint here;
    _Alignas(64) atomic_uint times;
};

struct shared_sum {
    struct traincomm *c;
    struct traincomm_shared *memory;
    struct meeting *meeting; /* in rank 0's part */
    float **slots;           /* (host_size): pieces of each rank, (PLACES, piece) */
    size_t piece;
    bool spins; /* every rank has a core to wait on */
};

static size_t shared_sum_piece(size_t count, int ranks)
{
    size_t most = ALL_FLOATS / (size_t)ranks, line = (size_t)ranks * LINE_FLOATS;

    most = most < PIECE_FLOATS_MAX ? most : PIECE_FLOATS_MAX;
    most = most < count ? most : count;
    return (most + line - 1) / line * line;
}

int shared_sum_create(struct traincomm *c, size_t count, struct shared_sum **out)
{
    struct shared_sum *s = calloc(1, sizeof *s);
    float **slots = calloc((size_t)c->host_size, sizeof *slots);
    size_t piece = shared_sum_piece(count, c->host_size);
    struct traincomm_shared *memory = NULL;
    int ready = s && slots;

    *out = NULL;
    comm_wait_begins(c);
    MPI_Allreduce(MPI_IN_PLACE, &ready, 1, MPI_INT, MPI_MIN, c->comm);
    comm_wait_ends(c);
    int status = ready ? traincomm_shared_create(
                             c, sizeof(struct meeting) + PLACES * piece * sizeof(float), &memory)
                       : -TRAINCOMM_ERROR_MEMORY;
    if (status) {
        free(slots);
        free(s);
        return status;
    }
    for (int r = 0; r < c->host_size; r++)
        slots[r] = (float *)((char *)traincomm_shared_part(memory, r) + sizeof(struct meeting));
    *s = (struct shared_sum){.c = c,
                             .memory = memory,
                             .meeting = traincomm_shared_part(memory, 0),
                             .slots = slots,
                             .piece = piece,
                             .spins = c->host_size <= sysconf(_SC_NPROCESSORS_ONLN)};
    *out = s;
    return 0;
}

void shared_sum_destroy(struct shared_sum *s)
{
    if (!s)
        return;
    traincomm_shared_destroy(s->memory);
    free(s->slots);
    free(s);
}

/* ---- meeting */

static void spin_once(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#endif
}

/* Sleeps rather than spins where ranks are more than cores: the core is for those that are late. */
static void wait_for_others(const struct shared_sum *s, unsigned times)
{
    struct meeting *m = s->meeting;

    for (int i = 0; s->spins && i < SPINS; i++) {
        if (atomic_load_explicit(&m->times, memory_order_acquire) != times)
            return;
        spin_once();
    }
    while (atomic_load_explicit(&m->times, memory_order_acquire) == times)
        syscall(SYS_futex, &m->times, FUTEX_WAIT, times, NULL, NULL, 0);
}

/* What each rank wrote before, all read behind. */
static void meet(const struct shared_sum *s)
{
    struct meeting *m = s->meeting;
    unsigned times = atomic_load(&m->times);

    if (atomic_fetch_add(&m->here, 1) + 1 < (unsigned)s->c->host_size) {
        wait_for_others(s, times);
        return;
    }
    atomic_store(&m->here, 0);
    atomic_fetch_add(&m->times, 1);
    syscall(SYS_futex, &m->times, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- a piece */

struct piece {
    float *at; /* the caller's */
    size_t n, place;
    bool narrow;
};

struct part {
    size_t first, end;
};

static struct part part_of(const struct shared_sum *s, const struct piece *p, int rank)
{
    size_t ranks = (size_t)s->c->host_size, lines = (p->n + LINE_FLOATS - 1) / LINE_FLOATS;
    size_t first = lines * (size_t)rank / ranks * LINE_FLOATS;
    size_t end = lines * ((size_t)rank + 1) / ranks * LINE_FLOATS;

    return (struct part){first < p->n ? first : p->n, end < p->n ? end : p->n};
}

static float *slot_of(const struct shared_sum *s, const struct piece *p, int rank)
{
    return s->slots[rank] + p->place * s->piece;
}

static void copy_in(const struct shared_sum *s, const struct piece *p)
{
    float *slot = slot_of(s, p, s->c->host_rank);

    if (p->narrow)
        narrow_copy(p->at, narrow_sent(slot), p->n);
    else
        memcpy(slot, p->at, p->n * sizeof *slot);
}

/* Of ranks [first, first + n): the first power of two of them, and the others. */
static void add_pairs(const struct shared_sum *s, const struct piece *p, int first, int n,
                      size_t from, size_t count, float *sum)
{
    float other[BLOCK_FLOATS];
    int half = 1;

    if (n == 1) {
        memcpy(sum, slot_of(s, p, first) + from, count * sizeof *sum);
        return;
    }
    while (2 * half < n)
        half *= 2;
    add_pairs(s, p, first, half, from, count, sum);
    const float *more = slot_of(s, p, first + half) + from;
    if (n - half > 1) {
        add_pairs(s, p, first + half, n - half, from, count, other);
        more = other;
    }
    for (size_t i = 0; i < count; i++)
        sum[i] += more[i];
}

static void add_narrow(const struct shared_sum *s, const struct piece *p, size_t from, size_t count,
                       float *sum)
{
    memset(sum, 0, count * sizeof *sum);
    for (int r = 0; r < s->c->host_size; r++)
        narrow_add(narrow_sent(slot_of(s, p, r)) + from, sum, count);
}

/* This rank's part, over its own numbers, which no other rank reads. */
static void add_up(const struct shared_sum *s, const struct piece *p)
{
    struct part mine = part_of(s, p, s->c->host_rank);
    float *slot = slot_of(s, p, s->c->host_rank), sum[BLOCK_FLOATS];

    for (size_t from = mine.first, n; from < mine.end; from += n) {
        n = mine.end - from < BLOCK_FLOATS ? mine.end - from : BLOCK_FLOATS;
        if (p->narrow) {
            add_narrow(s, p, from, n, sum);
            narrow_copy(sum, narrow_sent(slot) + from, n);
        } else {
            add_pairs(s, p, 0, s->c->host_size, from, n, sum);
            memcpy(slot + from, sum, n * sizeof *sum);
        }
    }
}

static void copy_out(const struct shared_sum *s, const struct piece *p)
{
    for (int r = 0; r < s->c->host_size; r++) {
        struct part part = part_of(s, p, r);
        const float *slot = slot_of(s, p, r);
        if (p->narrow)
            narrow_widen_copy(narrow_sent((float *)slot) + part.first, p->at + part.first,
                              part.end - part.first);
        else
            memcpy(p->at + part.first, slot + part.first, (part.end - part.first) * sizeof *slot);
    }
}

int shared_sum(struct shared_sum *s, float *gradients, size_t count, bool narrow)
{
    struct piece last = {.n = 0};
    int pieces = 0;

    for (size_t from = 0; from < count; from += last.n) {
        struct piece p = {.at = gradients + from,
                          .n = count - from < s->piece ? count - from : s->piece,
                          .place = (size_t)pieces++ % PLACES,
                          .narrow = narrow};
        copy_in(s, &p);
        meet(s);
        add_up(s, &p);
        if (last.n)
            copy_out(s, &last);
        last = p;
    }
    meet(s);
    copy_out(s, &last);
    meet(s); /* before a place is used again */
    return pieces;
}
