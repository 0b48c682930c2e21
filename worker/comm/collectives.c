#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "worker/comm/comm.h"

#define BROADCAST_BYTES ((size_t)1 << 24) /* size of a piece; MPI pipelines pieces */
#define REDUCE_COUNT    ((size_t)1 << 24)
/* Limit for MPI_Gather, in whose tree a rank holds the data of its whole subtree. */
#define TREE_BYTES ((size_t)4096)
#define TAG        1

void traincomm_barrier(struct traincomm *c)
{
    comm_wait_begins(c);
    comm_barrier(c->comm);
    comm_wait_ends(c);
}

void traincomm_broadcast(struct traincomm *c, void *data, size_t bytes, int root)
{
    comm_wait_begins(c);
    comm_barrier(c->comm);
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
    comm_barrier(c->comm);
    for (size_t from = 0; from < count; from += REDUCE_COUNT) {
        size_t n = count - from < REDUCE_COUNT ? count - from : REDUCE_COUNT;
        MPI_Allreduce(MPI_IN_PLACE, values + from, (int)n, MPI_DOUBLE, how, c->comm);
    }
    comm_wait_ends(c);
}

void traincomm_all_gather(struct traincomm *c, const void *mine, size_t bytes, void *all)
{
    comm_wait_begins(c);
    comm_barrier(c->comm);
    MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, c->comm);
    comm_wait_ends(c);
}

static void collectives_transfer(struct traincomm *c, int rank, char *data, size_t bytes)
{
    for (size_t from = 0; from < bytes; from += PIECE_BYTES_MAX) {
        int n = (int)(bytes - from < PIECE_BYTES_MAX ? bytes - from : PIECE_BYTES_MAX);
        if (c->rank == 0)
            MPI_Recv(data + from, n, MPI_BYTE, rank, TAG, c->comm, MPI_STATUS_IGNORE);
        else
            MPI_Send(data + from, n, MPI_BYTE, 0, TAG, c->comm);
    }
}

/* Collects the sizes and allocates the result. Sets *same if all ranks have the same number of
 * bytes and it is at most TREE_BYTES. An error is the same on every rank. */
static int collectives_allocate(struct traincomm *c, uint64_t bytes, uint64_t **sizes, char **all,
                                bool *same)
{
    uint64_t total = 0;
    int status = 0, result[2];

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
    result[0] = status;
    result[1] = *same;
    MPI_Bcast(result, 2, MPI_INT, 0, c->comm);
    *same = result[1] != 0;
    return result[0];
}

static void collectives_gather_each(struct traincomm *c, const void *mine, size_t bytes,
                                    const uint64_t *sizes, char *to)
{
    size_t used = bytes;

    if (c->rank != 0)
        collectives_transfer(c, 0, (char *)mine, bytes);
    else if (bytes > 0)
        memcpy(to, mine, bytes);
    for (int i = 1; c->rank == 0 && i < c->size; i++) {
        collectives_transfer(c, i, to + used, sizes[i]);
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
    comm_barrier(c->comm);
    int status = collectives_allocate(c, bytes, &sizes, &to, &same);

    *all_bytes = 0;
    for (int i = 0; !status && c->rank == 0 && i < c->size; i++)
        *all_bytes += sizes[i];
    if (!status && same) /* MPI gathers along a tree */
        MPI_Gather(mine, (int)bytes, MPI_BYTE, to, (int)bytes, MPI_BYTE, 0, c->comm);
    else if (!status)
        collectives_gather_each(c, mine, bytes, sizes, to);
    comm_wait_ends(c);
    free(sizes);
    *all = to;
    return status;
}

int traincomm_agree(struct traincomm *c, bool *stop, struct traincomm_failure *failure)
{
    int mine[2] = {failure->code ? c->rank : INT_MAX, stop && *stop ? 0 : 1};
    int all[2];
    double start = comm_clock();
    MPI_Request request;

    comm_wait_begins(c);
    MPI_Iallreduce(mine, all, 2, MPI_INT, MPI_MIN, c->comm, &request);
    comm_wait_request(&request);
    comm_span(c, "agree", 0, start, 0);
    comm_wait_ends(c);
    if (stop)
        *stop = all[1] == 0;
    if (all[0] == INT_MAX)
        return 0;
    if (c->rank == all[0]) {
        failure->rank = c->rank;
        memcpy(failure->host, c->hosts[c->rank], sizeof failure->host);
    }
    comm_wait_begins(c);
    MPI_Bcast(failure, (int)sizeof *failure, MPI_BYTE, all[0], c->comm);
    comm_wait_ends(c);
    return failure->code;
}
