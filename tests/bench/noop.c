/*
 * A job that does nothing, for tests/bench/throughput: what train-worker must write, and the end.
 * As worker= under the real mpirun, or as mpirun= in its place, where nothing but traind's own work
 * is to be measured.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/run/attempt.h"

int main(void)
{
    const char *folder = getenv(ATTEMPT_MARK);
    char path[4200], lines[256];
    struct timespec now;

    if (!folder || clock_gettime(CLOCK_REALTIME, &now))
        return 2;
    snprintf(path, sizeof path, "%s/events.jsonl", folder);
    double t = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    int bytes = snprintf(lines, sizeof lines,
                         "{\"seq\": 1, \"t\": %.6f, \"type\": \"run_start\"}\n"
                         "{\"seq\": 2, \"t\": %.6f, \"type\": \"run_stop\", \"status\": "
                         "\"success\", \"step\": 0}\n",
                         t, t);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    return fd < 0 || write(fd, lines, (size_t)bytes) != bytes || close(fd);
}
