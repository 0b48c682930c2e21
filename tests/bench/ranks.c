/*
 * What rank 0 has to do for the others, by their number: mpirun --oversubscribe -np N
 * tests/bench/ranks. The worker's own start (start_run, of a small network on synthetic images) and
 * what surrounds the computing of a step: two agreements, the gathering of what each rank did, the
 * event of it, the search for a straggler.
 *
 * With more ranks than cores the time that passes says nothing, and MPI burns the processor while
 * it waits. So "own" is processor time of rank 0's thread outside of all MPI calls; of these the
 * number counts, and the bytes they give to rank 0. "init" is MPI's own start: all processor time
 * of the process, with waiting. A step is measured twice: between the calls, where the other ranks
 * have had the core and its caches meanwhile, and by itself, which is its work alone. One JSON
 * object.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/number.h"
#include "common/system/file.h"
#include "worker/start/start.h"
#include "worker/watch/straggler.h"

#define STARTS  3 /* the fastest counts: others only slow it down */
#define STEPS   301
#define MANY    512
#define STEP_MS 100.0

static const char job[] =
    "{\"model\": {\"arch\": \"resnet18\", \"stem\": \"small\", \"classes\": 10, \"image_size\": "
    "32, "
    "\"winograd\": false}, \"data\": {\"train\": \"synthetic\"}, \"batch_per_worker\": 1, "
    "\"cluster\": {\"workers_per_node\": %d, \"threads_per_worker\": 1}, \"steps\": 10, "
    "\"lr\": {\"warmup_epochs\": 0}}";

/* ---- processor time, with that of MPI apart */

/* Of this thread's MPI calls. */
struct calls {
    double seconds; /* of the processor */
    double count;
    double bytes; /* that the call gives to this rank */
};
static struct calls all_calls;

static double clock_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double own_seconds(void)
{
    return clock_of(CLOCK_THREAD_CPUTIME_ID) - all_calls.seconds;
}

static double bytes_of(int count, MPI_Datatype type)
{
    int size;
    MPI_Type_size(type, &size);
    return (double)count * size;
}

static double others(MPI_Comm comm)
{
    int size;
    MPI_Comm_size(comm, &size);
    return size - 1;
}

/* Rank 0 goes through its steps without the others, whose times are made up. */
static struct {
    bool on;
    int step;
} alone;

/* A time for each phase that differs by rank and step, none of them a straggler's. */
static struct rank_times some_times(int rank, int step)
{
    struct rank_times times;

    for (int p = 0; p < RANK_PHASES; p++)
        times.ms[p] =
            STEP_MS / RANK_PHASES * (1 + 0.05 * sin(1 + rank * 7.1 + step * 3.3 + p * 1.7));
    return times;
}

static int make_up_steps(struct rank_step *every, MPI_Comm comm)
{
    for (int i = 0; i <= others(comm); i++)
        every[i] = (struct rank_step){.loss = 1, .times = some_times(i, alone.step)};
    return MPI_SUCCESS;
}

static int make_up_agreement(const void *mine, void *all, double bytes, MPI_Request *request)
{
    memcpy(all, mine, (size_t)bytes);
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

static int make_up_meeting(MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

/* The calls that the worker makes for a start and a step, by MPI's profiling interface. */
#define APART(name, parameters, arguments, gives, if_alone)                                        \
    int MPI_##name parameters                                                                      \
    {                                                                                              \
        double since = clock_of(CLOCK_THREAD_CPUTIME_ID);                                          \
        int code = alone.on ? if_alone : PMPI_##name arguments;                                    \
        all_calls.bytes += gives;                                                                  \
        all_calls.count++;                                                                         \
        all_calls.seconds += clock_of(CLOCK_THREAD_CPUTIME_ID) - since;                            \
        return code;                                                                               \
    }

APART(Allgather,
      (const void *mine, int n, MPI_Datatype type, void *to, int m, MPI_Datatype as, MPI_Comm comm),
      (mine, n, type, to, m, as, comm), others(comm) * bytes_of(m, as), make_up_steps(to, comm))
APART(Allreduce, (const void *mine, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      (mine, to, n, type, op, comm), bytes_of(n, type), MPI_ERR_OTHER)
APART(Iallreduce,
      (const void *mine, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
       MPI_Request *request),
      (mine, to, n, type, op, comm, request), bytes_of(n, type),
      make_up_agreement(mine, to, bytes_of(n, type), request))
APART(Ibarrier, (MPI_Comm comm, MPI_Request *request), (comm, request), 0, make_up_meeting(request))
APART(Bcast, (void *data, int n, MPI_Datatype type, int root, MPI_Comm comm),
      (data, n, type, root, comm), root ? bytes_of(n, type) : 0, MPI_ERR_OTHER)
APART(Gather,
      (const void *mine, int n, MPI_Datatype type, void *to, int m, MPI_Datatype as, int root,
       MPI_Comm comm),
      (mine, n, type, to, m, as, root, comm), root ? 0 : others(comm) * bytes_of(m, as),
      MPI_ERR_OTHER)
APART(Recv,
      (void *to, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status),
      (to, n, type, from, tag, comm, status), bytes_of(n, type), MPI_ERR_OTHER)
APART(Send, (const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm),
      (data, n, type, to, tag, comm), 0, MPI_ERR_OTHER)

/* Waiting for one of them is no call of its own. */
int MPI_Test(MPI_Request *request, int *ended, MPI_Status *status)
{
    double since = clock_of(CLOCK_THREAD_CPUTIME_ID);
    int code = PMPI_Test(request, ended, status);

    all_calls.seconds += clock_of(CLOCK_THREAD_CPUTIME_ID) - since;
    return code;
}

static void ranks_fail(const char *what)
{
    fprintf(stderr, "ranks: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- a start and steps */

static int write_job(const char *folder, int world)
{
    char path[64], text[sizeof job + 16];
    struct error e;

    snprintf(path, sizeof path, "%s/job.json", folder);
    int bytes = snprintf(text, sizeof text, job, world);
    return file_write_unsynced(path, text, (size_t)bytes, &e);
}

static void do_step(struct run *r, struct rank_timing *pace, int step, struct error *e)
{
    struct rank_step mine = {.loss = 1, .times = some_times(r->rank, step)};
    bool stop = false;

    alone.step = step;
    int status = run_agree_on_stop(r, 0, &stop, e);
    struct rank_step all = rank_timing_gather(pace, &mine);
    report_begin(r->report, EVENT_STEP);
    report_int(r->report, "step", step);
    report_real(r->report, "loss", all.loss);
    rank_timing_report(pace);
    if (!status)
        status = report_end(r->report, e);
    if (!status)
        status = straggler_report(pace, step, STEP_MS, e);
    if (run_agree(r, status, e))
        ranks_fail(e->text);
}

/* Seconds of a step. */
static double time_steps(struct run *r)
{
    static double seconds[STEPS];
    struct rank_timing *pace = rank_timing_create(r->comm, r->report);
    struct error e;

    for (int i = 0; i < STEPS; i++) {
        double since = own_seconds();
        do_step(r, pace, i, &e);
        seconds[i] = own_seconds() - since;
    }
    rank_timing_destroy(pace);
    return number_median(seconds, STEPS);
}

/* The same while the others wait. */
static double time_steps_alone(struct run *r)
{
    double step = 0;

    alone.on = r->rank == 0;
    if (alone.on)
        step = time_steps(r);
    alone.on = false;
    traincomm_barrier(r->comm);
    return step;
}

/* Seconds that the search for a straggler takes in a step of more ranks than can be started. */
static double time_stragglers(void)
{
    static struct rank_times every[MANY];
    static double seconds[STEPS];
    static const int one_host[MANY];
    struct stragglers *stragglers = stragglers_create(MANY, one_host);
    struct straggler found;

    for (int i = 0; i < STEPS; i++) {
        for (int rank = 0; rank < MANY; rank++)
            every[rank] = some_times(rank, i);
        double since = own_seconds();
        stragglers_add(stragglers, every, STEP_MS, &found);
        seconds[i] = own_seconds() - since;
    }
    stragglers_destroy(stragglers);
    return number_median(seconds, STEPS);
}

/* The worker's words on stdout are not wanted. Where the answer goes instead. */
static FILE *take_stdout(void)
{
    FILE *out = fdopen(dup(STDOUT_FILENO), "w");

    if (!out || !freopen("/dev/null", "w", stdout))
        ranks_fail("stdout cannot be opened again");
    return out;
}

struct figures {
    double init; /* processor seconds */
    double start, step, step_between, stragglers;
    struct calls of_start, of_steps;
};

static void ranks_start(struct traincomm *comm, const char *folder, struct run *run,
                        struct figures *f)
{
    char path[64];
    struct start_options options = {.job_file = path, .run_dir = folder, .attempt = 1};
    struct error e;

    snprintf(path, sizeof path, "%s/job.json", folder);
    all_calls = (struct calls){0};
    double since = own_seconds();
    if (start_run(&options, comm, run, &e))
        ranks_fail(e.text);
    since = own_seconds() - since;
    f->start = since < f->start ? since : f->start;
    f->of_start = all_calls;
}

static void ranks_measure(struct traincomm *comm, const char *folder, struct figures *f)
{
    struct run run;

    f->start = INFINITY;
    for (int i = 0; i < STARTS; i++) {
        if (i > 0)
            run_destroy(&run);
        ranks_start(comm, folder, &run, f);
    }
    all_calls = (struct calls){0};
    f->step_between = time_steps(&run);
    f->of_steps = all_calls;
    f->step = time_steps_alone(&run);
    f->stragglers = time_stragglers();
    run_destroy(&run);
}

static void ranks_print(FILE *out, int world, const struct figures *f)
{
    fprintf(out,
            "{\"ranks\": %d, \"init_cpu_ms\": %.2f, \"start_own_ms\": %.3f, "
            "\"start_calls\": %.0f, \"start_bytes\": %.0f, \"step_own_ms\": %.5f, "
            "\"step_between_ms\": %.5f, "
            "\"step_calls\": %.2f, \"step_bytes\": %.0f, \"stragglers_of_512_ms\": %.5f}\n",
            world, 1e3 * f->init, 1e3 * f->start, f->of_start.count, f->of_start.bytes,
            1e3 * f->step, 1e3 * f->step_between, f->of_steps.count / STEPS,
            f->of_steps.bytes / STEPS, 1e3 * f->stragglers);
}

int main(void)
{
    struct traincomm *comm;
    struct figures f;
    struct error e;
    char folder[] = "/tmp/traind-bench-XXXXXX";

    f.init = clock_of(CLOCK_PROCESS_CPUTIME_ID);
    if (traincomm_init(&comm))
        return 1;
    f.init = clock_of(CLOCK_PROCESS_CPUTIME_ID) - f.init;
    int rank = traincomm_rank(comm), world = traincomm_size(comm);
    if (rank == 0 && (!mkdtemp(folder) || write_job(folder, world)))
        ranks_fail("cannot write to /tmp");
    traincomm_broadcast(comm, folder, sizeof folder, 0);
    FILE *out = take_stdout();
    ranks_measure(comm, folder, &f);
    if (rank == 0) {
        ranks_print(out, world, &f);
        file_remove_tree(folder, &e);
    }
    fclose(out);
    traincomm_finalize(comm);
    return 0;
}
