#include <limits.h>
#include <string.h>

#include "worker/comm/internal.h"

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
