/* Agreement: the error of one rank reaches all, in words; so does a request to stop. */
#include <string.h>

#include "tests/mpi/tap.h"
#include "worker/comm/agree.h"

int main(int argc, char **argv)
{
    struct error e = {0};
    struct failure_site site = {0};
    bool stop = false;
    int rank, status = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    tap_check(agree_on_error(MPI_COMM_WORLD, 0, &e, &site) == 0, "no error, nobody stops");

    if (rank == 1)
        status = error_set(&e, ERR_CORRUPT, "shard 7 is torn at byte 123");
    status = agree_on_error(MPI_COMM_WORLD, status, &e, &site);
    tap_check(status == -ERR_CORRUPT, "the code of rank 1's error is everybody's");
    tap_check(strcmp(e.text, "shard 7 is torn at byte 123") == 0, "and so are its words");
    tap_check(site.rank == 1 && site.host[0], "and where it happened");

    stop = rank == 1;
    tap_check(agree_on_step(MPI_COMM_WORLD, 0, &stop, &e, &site) == 0 && stop,
              "a request to stop on one rank stops all");
    stop = false;
    tap_check(agree_on_step(MPI_COMM_WORLD, 0, &stop, &e, &site) == 0 && !stop, "none stops none");

    int failed = tap_done();
    MPI_Finalize();
    return failed;
}
