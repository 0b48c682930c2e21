#include "worker/comm/host_sum.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "worker/comm/sums.h"

#define LINE_FLOATS 16 /* parts are whole cache lines of 64 bytes */

/* Number of buckets for which a rank has completed each step; only that rank writes it */
struct rank_progress {
    _Alignas(64) atomic_uint exposed;
    atomic_uint published, collected;
};

struct host_sum_events {
    _Alignas(64) atomic_uint count;
    _Alignas(64) atomic_uint sleepers;
};

struct part_header {
    struct rank_progress progress;
    struct host_sum_events events; /* only that of the machine's first rank is used */
};

struct host_sum {
    struct traincomm *c;
    struct traincomm_shared *memory;
    struct host_sum_events *events;
    struct rank_progress **progress; /* (host_size) */
    float **slots;                   /* (host_size), each (HOST_SUM_SLOTS, floats) */
    size_t *bounds;                  /* (HOST_SUM_SLOTS, leaders + 1), of the parts of a bucket */
    const void **from;               /* (host_size), scratch: the operands of a sum */
    size_t floats;
    int leaders;
    bool narrow;
};

static void host_sum_free(struct host_sum *h)
{
    free(h->progress);
    free(h->slots);
    free(h->bounds);
    free(h->from);
    free(h);
}

static struct host_sum *host_sum_new(struct traincomm *c, size_t floats, int leaders, bool narrow)
{
    struct host_sum *h = calloc(1, sizeof *h);
    size_t ranks = (size_t)c->host_size;

    if (!h)
        return NULL;
    h->c = c;
    h->floats = (floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
    h->leaders = leaders;
    h->narrow = narrow;
    h->progress = calloc(ranks, sizeof(struct rank_progress *));
    h->slots = calloc(ranks, sizeof *h->slots);
    h->from = calloc(ranks, sizeof *h->from);
    h->bounds = calloc(HOST_SUM_SLOTS * ((size_t)leaders + 1), sizeof *h->bounds);
    if (h->progress && h->slots && h->from && h->bounds)
        return h;
    host_sum_free(h);
    return NULL;
}

int host_sum_create(struct traincomm *c, size_t floats, int leaders, bool narrow,
                    struct host_sum **out)
{
    struct host_sum *h = host_sum_new(c, floats, leaders, narrow);
    int ready = h != NULL;

    *out = NULL;
    comm_wait_begins(c);
    MPI_Allreduce(MPI_IN_PLACE, &ready, 1, MPI_INT, MPI_MIN, c->comm);
    comm_wait_ends(c);
    int status = ready ? traincomm_shared_create(c,
                                                 sizeof(struct part_header) +
                                                     HOST_SUM_SLOTS * h->floats * sizeof(float),
                                                 &h->memory)
                       : -TRAINCOMM_ERROR_MEMORY;
    if (status) {
        if (h)
            host_sum_free(h);
        return status;
    }
    for (int r = 0; r < c->host_size; r++) {
        struct part_header *part = traincomm_shared_part(h->memory, r);
        h->progress[r] = &part->progress;
        h->slots[r] = (float *)(part + 1);
    }
    h->events = &((struct part_header *)traincomm_shared_part(h->memory, 0))->events;
    *out = h;
    return 0;
}

void host_sum_destroy(struct host_sum *h)
{
    if (!h)
        return;
    traincomm_shared_destroy(h->memory);
    host_sum_free(h);
}

unsigned host_sum_events(const struct host_sum *h)
{
    return atomic_load(&h->events->count);
}

void host_sum_wait(const struct host_sum *h, unsigned events)
{
    for (int i = 0; h->c->spins && i < COMM_SPINS; i++) {
        if (host_sum_events(h) != events)
            return;
        comm_pause();
    }
    atomic_fetch_add(&h->events->sleepers, 1);
    while (host_sum_events(h) == events)
        syscall(SYS_futex, &h->events->count, FUTEX_WAIT, events, NULL, NULL, 0);
    atomic_fetch_sub(&h->events->sleepers, 1);
}

/* Publishes the completion of a step, and with it what this rank wrote before. */
static void host_sum_publish_step(const struct host_sum *h, atomic_uint *step, unsigned done)
{
    atomic_store(step, done);
    atomic_fetch_add(&h->events->count, 1);
    if (atomic_load(&h->events->sleepers) > 0)
        syscall(SYS_futex, &h->events->count, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static struct rank_progress *host_sum_own(const struct host_sum *h)
{
    return h->progress[h->c->host_rank];
}

static bool host_sum_is_past(const atomic_uint *step, unsigned bucket)
{
    return (int)(atomic_load_explicit(step, memory_order_acquire) - bucket) > 0;
}

static float *host_sum_slot_of(const struct host_sum *h, unsigned bucket, int rank)
{
    return h->slots[rank] + bucket % HOST_SUM_SLOTS * h->floats;
}

float *host_sum_slot(const struct host_sum *h, unsigned bucket)
{
    return host_sum_slot_of(h, bucket, h->c->host_rank);
}

/* (leaders + 1): part r is bounds[r] up to bounds[r + 1]. */
static size_t *host_sum_bounds(const struct host_sum *h, unsigned bucket)
{
    return h->bounds + bucket % HOST_SUM_SLOTS * ((size_t)h->leaders + 1);
}

void host_sum_begin(struct host_sum *h, unsigned bucket, size_t n,
                    const struct traincomm_update *how, size_t offset)
{
    size_t *bounds = host_sum_bounds(h, bucket), lines = (n + LINE_FLOATS - 1) / LINE_FLOATS;

    comm_assert(n <= h->floats);
    for (int r = 0; r < h->leaders; r++) {
        size_t first = lines * (size_t)r / (size_t)h->leaders * LINE_FLOATS;
        first = first < n ? first : n;
        bounds[r] = how && r > 0 ? how->cut(how->context, offset + first) - offset : first;
    }
    bounds[h->leaders] = n;
}

void host_sum_mine(const struct host_sum *h, unsigned bucket, size_t *first, size_t *end)
{
    const size_t *bounds = host_sum_bounds(h, bucket);
    int rank = h->c->host_rank < h->leaders ? h->c->host_rank : h->leaders;

    *first = bounds[rank];
    *end = bounds[rank < h->leaders ? rank + 1 : rank];
}

bool host_sum_expose(struct host_sum *h, unsigned bucket, const float *at)
{
    float *slot = host_sum_slot(h, bucket);
    size_t first, end, n = host_sum_bounds(h, bucket)[h->leaders];

    if (!host_sum_is_past(&host_sum_own(h)->exposed, bucket - 1))
        return false;
    for (int r = 0; r < h->c->host_size; r++)
        if (!host_sum_is_past(&h->progress[r]->collected, bucket - HOST_SUM_SLOTS))
            return false;
    host_sum_mine(h, bucket, &first, &end);
    if (at && h->narrow) {
        sums_round(at, (sums_bf16_t *)slot, n);
    } else if (at) {
        sums_copy(at, slot, first);
        sums_copy(at + end, slot + end, n - end);
    }
    host_sum_publish_step(h, &host_sum_own(h)->exposed, bucket + 1);
    return true;
}

bool host_sum_add(struct host_sum *h, unsigned bucket, const float *at, float *to)
{
    size_t first, end;

    for (int r = 0; r < h->c->host_size; r++)
        if (!host_sum_is_past(&h->progress[r]->exposed, bucket))
            return false;
    host_sum_mine(h, bucket, &first, &end);
    for (int r = 0; r < h->c->host_size; r++) {
        float *slot = host_sum_slot_of(h, bucket, r);
        if (h->narrow)
            h->from[r] = (sums_bf16_t *)slot + first;
        else
            h->from[r] = (r == h->c->host_rank ? at : slot) + first;
    }
    if (h->narrow)
        sums_bf16((const sums_bf16_t *const *)h->from, h->c->host_size, end - first,
                  (sums_bf16_t *)host_sum_slot(h, bucket) + first);
    else
        sums_fp32((const float *const *)h->from, h->c->host_size, end - first, to + first);
    return true;
}

bool host_sum_publish(struct host_sum *h, unsigned bucket, const float *at)
{
    struct rank_progress *own = host_sum_own(h);
    size_t first, end;

    if (!host_sum_is_past(&own->published, bucket - 1))
        return false;
    host_sum_mine(h, bucket, &first, &end);
    if (!h->narrow) /* in bf16, host_sum_add has written the sum there */
        sums_copy(at + first, host_sum_slot(h, bucket) + first, end - first);
    host_sum_publish_step(h, &own->published, bucket + 1);
    return true;
}

bool host_sum_collect(struct host_sum *h, unsigned bucket, float *at)
{
    const size_t *bounds = host_sum_bounds(h, bucket);
    struct rank_progress *own = host_sum_own(h);

    if (!host_sum_is_past(&own->collected, bucket - 1))
        return false;
    for (int r = 0; r < h->leaders; r++)
        if (!host_sum_is_past(&h->progress[r]->published, bucket))
            return false;
    for (int r = 0; r < h->leaders; r++) {
        size_t first = bounds[r], end = bounds[r + 1];
        const float *slot = host_sum_slot_of(h, bucket, r);
        if (h->narrow)
            sums_widen((const sums_bf16_t *)slot + first, at + first, end - first);
        else if (r != h->c->host_rank)
            sums_copy(slot + first, at + first, end - first);
    }
    host_sum_publish_step(h, &own->collected, bucket + 1);
    return true;
}
