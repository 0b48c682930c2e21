#include <stdlib.h>
#include <string.h>

#include "worker/comm/internal.h"

#define BROADCAST_BYTES ((size_t)1 << 24) /* in pieces a broadcast is pipelined */
#define REDUCE_COUNT    ((size_t)1 << 24)
#define TREE_BYTES      ((size_t)4096) /* a rank in the tree of a gather holds those below it */
#define TAG             1

void traincomm_barrier(struct traincomm *c)
{
    comm_wait_begins(c);
    comm_meet(c->comm);
    comm_wait_ends(c);
}

void traincomm_broadcast(struct traincomm *c, void *data, size_t bytes, int root)
{
    comm_wait_begins(c);
    comm_meet(c->comm);
    for (size_t from = 0; from < bytes; from += BROADCAST_BYTES) {
        size_t n = bytes - from < BROADCAST_BYTES ? bytes - from : BROADCAST_BYTES;
        MPI_Bcast((char *)data + from, (int)n, MPI_BYTE, root, c->comm);
    }
    comm_wait_ends(c);
}

void traincomm_reduce(struct traincomm *c, enum traincomm_op op, double *values, size_t count)
{
    MPI_Op how = op == TRAINCOMM_MIN ? MPI_MIN : op == TRAINCOMM_MAX ? MPI_MAX : MPI_SUM;

    comm_wait_begins(c);
    comm_meet(c->comm);
    for (size_t from = 0; from < count; from += REDUCE_COUNT) {
        size_t n = count - from < REDUCE_COUNT ? count - from : REDUCE_COUNT;
        MPI_Allreduce(MPI_IN_PLACE, values + from, (int)n, MPI_DOUBLE, how, c->comm);
    }
    comm_wait_ends(c);
}

void traincomm_all_gather(struct traincomm *c, const void *mine, size_t bytes, void *all)
{
    comm_wait_begins(c);
    comm_meet(c->comm);
    MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, c->comm);
    comm_wait_ends(c);
}

static void collect_send_to_root(struct traincomm *c, const char *data, size_t bytes)
{
    for (size_t from = 0; from < bytes; from += PIECE_BYTES_MAX) {
        size_t n = bytes - from < PIECE_BYTES_MAX ? bytes - from : PIECE_BYTES_MAX;
        MPI_Send(data + from, (int)n, MPI_BYTE, 0, TAG, c->comm);
    }
}

static void collect_receive(struct traincomm *c, int rank, char *data, size_t bytes)
{
    for (size_t from = 0; from < bytes; from += PIECE_BYTES_MAX) {
        size_t n = bytes - from < PIECE_BYTES_MAX ? bytes - from : PIECE_BYTES_MAX;
        MPI_Recv(data + from, (int)n, MPI_BYTE, rank, TAG, c->comm, MPI_STATUS_IGNORE);
    }
}

/* Rank 0's memory for all of it, or the same error on every rank. *same: all have as many bytes,
 * and few. */
static int collect_make_room(struct traincomm *c, uint64_t bytes, uint64_t **sizes, char **all,
                             bool *same)
{
    uint64_t total = 0;
    int status = 0, news[2];

    *same = bytes <= TREE_BYTES;

    *sizes = c->rank == 0 ? calloc((size_t)c->size, sizeof **sizes) : NULL;
    if (c->rank == 0 && !*sizes)
        status = -TRAINCOMM_ERROR_MEMORY;
    MPI_Bcast(&status, 1, MPI_INT, 0, c->comm);
    if (status)
        return status;
    MPI_Gather(&bytes, 1, MPI_UINT64_T, *sizes, 1, MPI_UINT64_T, 0, c->comm);
    for (int i = 0; c->rank == 0 && i < c->size; i++) {
        total += (*sizes)[i];
        *same = *same && (*sizes)[i] == bytes;
    }
    *all = c->rank == 0 ? malloc(total + 1) : NULL;
    if (c->rank == 0 && !*all)
        status = -TRAINCOMM_ERROR_MEMORY;
    news[0] = status;
    news[1] = *same;
    MPI_Bcast(news, 2, MPI_INT, 0, c->comm);
    *same = news[1] != 0;
    return news[0];
}

/* One call for each rank. */
static void collect_gather_each(struct traincomm *c, const void *mine, size_t bytes,
                                const uint64_t *sizes, char *to)
{
    size_t used = bytes;

    if (c->rank != 0) {
        collect_send_to_root(c, mine, bytes);
        return;
    }
    if (bytes > 0)
        memcpy(to, mine, bytes);
    for (int i = 1; i < c->size; i++) {
        collect_receive(c, i, to + used, sizes[i]);
        used += sizes[i];
    }
}

int traincomm_gather(struct traincomm *c, const void *mine, size_t bytes, void **all,
                     size_t *all_bytes)
{
    uint64_t *sizes;
    char *to = NULL;
    bool same;

    comm_wait_begins(c);
    comm_meet(c->comm);
    int status = collect_make_room(c, bytes, &sizes, &to, &same);

    *all_bytes = 0;
    for (int i = 0; !status && c->rank == 0 && i < c->size; i++)
        *all_bytes += sizes[i];
    if (!status && same) /* MPI does this in a tree */
        MPI_Gather(mine, (int)bytes, MPI_BYTE, to, (int)bytes, MPI_BYTE, 0, c->comm);
    else if (!status)
        collect_gather_each(c, mine, bytes, sizes, to);
    comm_wait_ends(c);
    free(sizes);
    *all = to;
    return status;
}
