/* Agreement: all ranks get the message of a failed rank, and a request to stop. */
#include <stdio.h>
#include <string.h>

#include "tests/mpi/tap.h"
#include "worker/comm/traincomm.h"

int main(void)
{
    struct traincomm_failure failure = {0};
    struct traincomm *c;
    bool stop = false;

    if (traincomm_init(&c))
        return 1;
    int rank = traincomm_rank(c);
    tap_check(traincomm_agree(c, NULL, &failure) == 0, "no error, nobody stops");

    if (rank == 1) {
        failure.code = 42;
        snprintf(failure.text, sizeof failure.text, "shard 7 is torn at byte 123");
    }
    tap_check(traincomm_agree(c, NULL, &failure) == 42 && failure.code == 42,
              "the code of rank 1's error is everybody's");
    tap_check(strcmp(failure.text, "shard 7 is torn at byte 123") == 0, "and so are its words");
    tap_check(failure.rank == 1 && strcmp(failure.host, traincomm_host(c, 1)) == 0,
              "and where it happened");

    memset(&failure, 0, sizeof failure);
    failure.code = rank + 7;
    tap_check(traincomm_agree(c, NULL, &failure) == 7, "of several failures the lowest rank's");

    memset(&failure, 0, sizeof failure);
    stop = rank == 1;
    tap_check(traincomm_agree(c, &stop, &failure) == 0 && stop,
              "a request to stop on one rank stops all");
    stop = false;
    tap_check(traincomm_agree(c, &stop, &failure) == 0 && !stop, "none stops none");

    int failed = tap_done();
    traincomm_finalize(c);
    return failed;
}
