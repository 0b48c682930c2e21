#include "worker/comm/agree.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "common/trace.h"

struct report_of_failure {
    struct error error;
    struct failure_site site;
};

static int share_failure(MPI_Comm comm, int who, struct error *e, struct failure_site *site)
{
    struct report_of_failure report;
    memset(&report, 0, sizeof report);
    report.error = *e;
    report.site.rank = who;
    gethostname(report.site.host, sizeof report.site.host - 1);
    MPI_Bcast(&report, (int)sizeof report, MPI_BYTE, who, comm);
    *e = report.error;
    if (site)
        *site = report.site;
    return -(int)e->code;
}

int agree_on_step(MPI_Comm comm, int status, bool *stop, struct error *e, struct failure_site *site)
{
    int rank;
    MPI_Comm_rank(comm, &rank);

    int mine[2] = {status ? rank : INT_MAX, *stop ? 0 : 1};
    int all[2];
    double span = trace_begin();
    MPI_Allreduce(mine, all, 2, MPI_INT, MPI_MIN, comm);
    trace_end(span, "phase", "agree", 0);
    *stop = all[1] == 0;
    return all[0] == INT_MAX ? 0 : share_failure(comm, all[0], e, site);
}

int agree_on_error(MPI_Comm comm, int status, struct error *e, struct failure_site *site)
{
    bool stop = false;
    return agree_on_step(comm, status, &stop, e, site);
}
