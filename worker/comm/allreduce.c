#include "worker/comm/allreduce.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/trace.h"

#define PIECE_FLOATS ((size_t)1 << 19) /* 2 MiB: fits the L2 cache */

struct allreduce {
    MPI_Comm comm;
    int world;
    bool same_machine; /* all ranks: blocking pieces instead of non-blocking buckets */
    float *gradients;  /* (count), borrowed */
    size_t count;
    size_t bucket_floats;
    bool overlap;
    size_t sent_from;  /* gradients[sent_from..count) are on their way or done */
    size_t ready_from; /* gradients[ready_from..count) are complete on this rank */
    MPI_Request *requests;
    int request_count, request_room;
};

static bool all_on_one_machine(MPI_Comm comm, int world)
{
    MPI_Comm node;
    int here;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &here);
    MPI_Comm_free(&node);
    /* the smallest node decides, so that all ranks take the same way */
    MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_INT, MPI_MIN, comm);
    return here == world;
}

int allreduce_create(MPI_Comm comm, float *gradients, size_t count, int64_t fusion_bytes,
                     bool overlap, struct allreduce **out, struct error *e)
{
    struct allreduce *a = calloc(1, sizeof *a);
    if (!a)
        return error_set(e, ERR_NO_MEMORY, "no memory for the all-reduce");
    a->comm = comm;
    MPI_Comm_size(comm, &a->world);
    a->same_machine = all_on_one_machine(comm, a->world);
    a->gradients = gradients;
    a->count = count;
    a->overlap = overlap;
    a->bucket_floats = (size_t)fusion_bytes / sizeof(float);
    if (a->bucket_floats < 1)
        a->bucket_floats = 1;
    if (a->bucket_floats > INT32_MAX / 2)
        a->bucket_floats = INT32_MAX / 2; /* MPI counts are int */
    a->sent_from = a->ready_from = count;
    a->request_room = (int)(count / a->bucket_floats) + 2;
    a->requests = malloc((size_t)a->request_room * sizeof *a->requests);
    if (!a->requests) {
        free(a);
        return error_set(e, ERR_NO_MEMORY, "no memory for the all-reduce");
    }
    *out = a;
    return 0;
}

void allreduce_destroy(struct allreduce *a)
{
    if (!a)
        return;
    free(a->requests);
    free(a);
}

void allreduce_assume_network(struct allreduce *a)
{
    a->same_machine = false;
}

static void trace_bytes(double span, const char *what, int number, size_t floats)
{
    char name[40];
    if (!(span > 0))
        return;
    snprintf(name, sizeof name, "%s %d", what, number);
    trace_end(span, "all-reduce", name, (double)(floats * sizeof(float)));
}

static void send_bucket(struct allreduce *a, size_t from)
{
    double span = trace_begin();
    MPI_Iallreduce(MPI_IN_PLACE, a->gradients + from, (int)(a->sent_from - from), MPI_FLOAT,
                   MPI_SUM, a->comm, &a->requests[a->request_count++]);
    trace_bytes(span, "start bucket", a->request_count, a->sent_from - from);
    a->sent_from = from;
}

/* Every rank cuts the buffer at the same places, whatever ranges backward reports: a collective
 * must have the same count everywhere. */
static void send_full_buckets(struct allreduce *a)
{
    while (a->sent_from - a->ready_from >= a->bucket_floats)
        send_bucket(a, a->sent_from - a->bucket_floats);
}

void allreduce_ready(size_t offset, size_t count, void *context)
{
    struct allreduce *a = context;
    int done;

    (void)count;
    a->ready_from = offset;
    if (a->world == 1 || a->same_machine || !a->overlap)
        return;
    send_full_buckets(a);
    if (a->request_count > 0)
        MPI_Testall(a->request_count, a->requests, &done, MPI_STATUSES_IGNORE);
}

static void reduce_pieces(struct allreduce *a)
{
    for (size_t from = 0; from < a->count; from += PIECE_FLOATS) {
        size_t n = a->count - from < PIECE_FLOATS ? a->count - from : PIECE_FLOATS;
        double span = trace_begin();
        MPI_Allreduce(MPI_IN_PLACE, a->gradients + from, (int)n, MPI_FLOAT, MPI_SUM, a->comm);
        trace_bytes(span, "piece", (int)(from / PIECE_FLOATS) + 1, n);
    }
}

double allreduce_finish(struct allreduce *a)
{
    double start = clock_monotonic();

    a->ready_from = 0;
    if (a->world > 1 && a->same_machine) {
        reduce_pieces(a);
    } else if (a->world > 1) {
        send_full_buckets(a);
        if (a->sent_from > 0)
            send_bucket(a, 0);
        double span = trace_begin();
        MPI_Waitall(a->request_count, a->requests, MPI_STATUSES_IGNORE);
        trace_end(span, "all-reduce", "wait for buckets", 0);
    }
    a->request_count = 0;
    a->sent_from = a->ready_from = a->count;
    return clock_monotonic() - start;
}
