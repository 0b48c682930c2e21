#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "common/clock.h"
#include "prep/prep.h"

void progress(const char *what, int64_t done, int64_t total, double started)
{
    static double last;
    double now = clock_monotonic(), spent = now - started;

    if (!isatty(STDERR_FILENO) || (now - last < 0.1 && done < total))
        return;
    last = now;
    double left = done > 0 ? spent / (double)done * (double)(total - done) : 0;
    fprintf(stderr, "\r%-10s %3d %%  %" PRId64 " of %" PRId64 " images, %.0f s %s \033[K", what,
            (int)(100 * done / total), done, total, done < total ? left : spent,
            done < total ? "left" : "in all");
    if (done == total)
        fputc('\n', stderr);
}
