/* What needs a closer look at the machines: their clocks, and memory shared by the ranks of one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker/comm/internal.h"

#define PINGS 50 /* the fastest of them says the offset */
#define TAG   2

/* Rank 0's side. */
static void host_ping(MPI_Comm comm, int other, double answer[2])
{
    double fastest = INFINITY, there;

    for (int i = 0; i < PINGS; i++) {
        double sent = comm_clock();
        MPI_Send(&sent, 1, MPI_DOUBLE, other, TAG, comm);
        MPI_Recv(&there, 1, MPI_DOUBLE, other, TAG, comm, MPI_STATUS_IGNORE);
        double back = comm_clock();
        if (back - sent < fastest) {
            fastest = back - sent;
            answer[0] = there - (sent + back) / 2;
            answer[1] = fastest / 2;
        }
    }
    MPI_Send(answer, 2, MPI_DOUBLE, other, TAG, comm);
}

static void host_answer_pings(MPI_Comm comm, double result[2])
{
    for (int i = 0; i < PINGS; i++) {
        double sent, now;
        MPI_Recv(&sent, 1, MPI_DOUBLE, 0, TAG, comm, MPI_STATUS_IGNORE);
        now = comm_clock();
        MPI_Send(&now, 1, MPI_DOUBLE, 0, TAG, comm);
    }
    MPI_Recv(result, 2, MPI_DOUBLE, 0, TAG, comm, MPI_STATUS_IGNORE);
}

void traincomm_clock_offset(struct traincomm *c, double *offset, double *error)
{
    double mine[2] = {0, 0}, other[2];

    comm_wait_begins(c);
    if (c->rank != 0)
        host_answer_pings(c->comm, mine);
    else
        for (int i = 1; i < c->size; i++)
            host_ping(c->comm, i, other);
    comm_wait_ends(c);
    *offset = mine[0];
    *error = mine[1];
}

struct traincomm_shared {
    const struct traincomm *c;
    MPI_Win window;
    void **parts; /* (host_size) */
};

int traincomm_shared_create(struct traincomm *c, size_t bytes, struct traincomm_shared **out)
{
    struct traincomm_shared *s = calloc(1, sizeof *s);
    void **parts = calloc((size_t)c->host_size, sizeof *parts);
    void *own;
    int ready = s && parts, unit;

    *out = NULL;
    comm_wait_begins(c);
    MPI_Allreduce(MPI_IN_PLACE, &ready, 1, MPI_INT, MPI_MIN, c->comm);
    if (!ready) {
        comm_wait_ends(c);
        free(parts);
        free(s);
        return -TRAINCOMM_ERROR_MEMORY;
    }
    MPI_Win_allocate_shared((MPI_Aint)bytes, 1, MPI_INFO_NULL, c->node, &own, &s->window);
    memset(own, 0, bytes);
    for (int i = 0; i < c->host_size; i++) {
        MPI_Aint size;
        MPI_Win_shared_query(s->window, i, &size, &unit, &parts[i]);
    }
    MPI_Barrier(c->node); /* nobody's part is used before it is zeroed */
    comm_wait_ends(c);
    s->c = c;
    s->parts = parts;
    *out = s;
    return 0;
}

void *traincomm_shared_part(const struct traincomm_shared *s, int host_rank)
{
    return s->parts[host_rank];
}

void traincomm_shared_destroy(struct traincomm_shared *s)
{
    if (!s)
        return;
    comm_wait_begins(s->c);
    MPI_Win_free(&s->window);
    comm_wait_ends(s->c);
    free(s->parts);
    free(s);
}
