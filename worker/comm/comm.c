#include "worker/comm/comm.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "config.h"

double comm_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void comm_assert_failed(const char *condition, const char *function)
{
    fprintf(stderr,
            "libtraincomm: internal error at %s: %s is false; this is a bug of the program or "
            "the library\n",
            function, condition);
    abort();
}

const char *traincomm_strerror(int error)
{
    switch (error < 0 ? -error : error) {
    case 0:
        return "no error";
    case TRAINCOMM_ERROR_MEMORY:
        return "not enough memory";
    case TRAINCOMM_ERROR_ARGUMENT:
        return "invalid argument";
    case TRAINCOMM_ERROR_MPI:
        return "MPI could not be started, or was finalized before";
    default:
        return "unknown error";
    }
}

const char *traincomm_version(void)
{
    return TRAINCOMM_VERSION;
}

void traincomm_mpi_version(char *text, size_t bytes)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;

    if (MPI_Get_library_version(version, &length))
        version[0] = '\0';
    snprintf(text, bytes, "%s", version);
}

static int comm_worst_status(MPI_Comm comm, int status)
{
    MPI_Allreduce(MPI_IN_PLACE, &status, 1, MPI_INT, MPI_MIN, comm);
    return status;
}

static int comm_learn_hosts(struct traincomm *c)
{
    char mine[TRAINCOMM_HOST_BYTES] = "";

    gethostname(mine, sizeof mine - 1);
    c->hosts = calloc((size_t)c->size, sizeof *c->hosts);
    int status = comm_worst_status(c->comm, c->hosts ? 0 : -TRAINCOMM_ERROR_MEMORY);
    if (!status)
        MPI_Allgather(mine, sizeof mine, MPI_BYTE, c->hosts, sizeof mine, MPI_BYTE, c->comm);
    return status;
}

/* For tests, TRAINCOMM_HOST_RANKS=N treats every N ranks of a machine as a machine. */
static void comm_find_node(struct traincomm *c)
{
    const char *text = getenv("TRAINCOMM_HOST_RANKS");
    int ranks_per_host = text ? atoi(text) : 0, rank, ranks;
    MPI_Comm whole;

    MPI_Comm_split_type(c->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &whole);
    MPI_Comm_rank(whole, &rank);
    MPI_Comm_size(whole, &ranks);
    c->spins = ranks <= sysconf(_SC_NPROCESSORS_ONLN);
    MPI_Comm_split(whole, ranks_per_host > 0 ? rank / ranks_per_host : 0, rank, &c->node);
    MPI_Comm_free(&whole);
    MPI_Comm_rank(c->node, &c->host_rank);
    MPI_Comm_size(c->node, &c->host_size);
}

int traincomm_init_from(MPI_Comm comm, struct traincomm **out)
{
    int status;
    struct traincomm *c = calloc(1, sizeof *c);

    *out = NULL;
    status = comm_worst_status(comm, c ? 0 : -TRAINCOMM_ERROR_MEMORY);
    if (status) {
        free(c);
        return status;
    }
    c->magic = COMM_MAGIC;
    MPI_Comm_dup(comm, &c->comm);
    MPI_Comm_rank(c->comm, &c->rank);
    MPI_Comm_size(c->comm, &c->size);
    comm_find_node(c);
    status = comm_learn_hosts(c);
    if (status) {
        traincomm_finalize(c);
        return status;
    }
    *out = c;
    return 0;
}

int traincomm_init(struct traincomm **out)
{
    int began, ended, threads;

    *out = NULL;
    MPI_Initialized(&began);
    MPI_Finalized(&ended);
    if (ended || (!began && MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &threads)))
        return -TRAINCOMM_ERROR_MPI;
    int status = traincomm_init_from(MPI_COMM_WORLD, out);
    if (!status)
        (*out)->ends_mpi = !began;
    else if (!began)
        MPI_Finalize();
    return status;
}

void traincomm_finalize(struct traincomm *c)
{
    if (!c)
        return;
    comm_assert(c->magic == COMM_MAGIC);
    *(volatile unsigned *)&c->magic = 0;
    MPI_Comm_free(&c->node);
    MPI_Comm_free(&c->comm);
    if (c->ends_mpi)
        MPI_Finalize();
    free(c->hosts);
    free(c);
}

void traincomm_abort(struct traincomm *c, int exit_status)
{
    MPI_Abort(c->comm, exit_status);
    abort(); /* MPI_Abort is not declared noreturn */
}

int traincomm_rank(const struct traincomm *c)
{
    return c->rank;
}

int traincomm_size(const struct traincomm *c)
{
    return c->size;
}

int traincomm_host_rank(const struct traincomm *c)
{
    return c->host_rank;
}

int traincomm_host_size(const struct traincomm *c)
{
    return c->host_size;
}

const char *traincomm_host(const struct traincomm *c, int rank)
{
    return c->hosts[rank];
}

void traincomm_on_span(struct traincomm *c, traincomm_span *span, void *context)
{
    c->span = span;
    c->span_context = context;
}

void traincomm_on_wait(struct traincomm *c, traincomm_wait *wait, void *context)
{
    c->wait = wait;
    c->wait_context = context;
}

/* Global because MPI's error handlers take no context. Set before the handler is installed. */
static struct {
    traincomm_error_call *call;
    void *context;
} on_error;

static void comm_end_by_error(MPI_Comm *comm, int *code, ...)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;

    if (MPI_Error_string(*code, text, &length))
        snprintf(text, sizeof text, "MPI error %d", *code);
    on_error.call(on_error.context, text);
    MPI_Abort(*comm, *code);
}

void traincomm_on_error(struct traincomm *c, traincomm_error_call *call, void *context)
{
    MPI_Errhandler handler;

    on_error.call = call;
    on_error.context = context;
    if (MPI_Comm_create_errhandler(comm_end_by_error, &handler))
        return;
    MPI_Comm_set_errhandler(c->comm, handler);
    MPI_Comm_set_errhandler(c->node, handler);
    MPI_Errhandler_free(&handler); /* the communicators keep a reference */
}

#define SPIN_SECONDS  200e-6
#define SLEEP_SECONDS 1e-3

/* Sleeping for an eighth of the time waited so far limits the delay to that fraction. */
static void comm_sleep(double waited)
{
    double seconds = waited / 8 < SLEEP_SECONDS ? waited / 8 : SLEEP_SECONDS;
    nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * seconds)}, NULL);
}

void comm_wait_request(MPI_Request *request)
{
    double start = comm_clock(), waited;

    for (int ended = 0;;) {
        MPI_Test(request, &ended, MPI_STATUS_IGNORE);
        if (ended)
            return;
        waited = comm_clock() - start;
        if (waited > SPIN_SECONDS)
            comm_sleep(waited);
    }
}

void comm_back_off(const struct traincomm *c, int polls)
{
    if (c->spins && polls < COMM_SPINS)
        comm_pause();
    else
        sched_yield();
}

void comm_barrier(MPI_Comm comm)
{
    MPI_Request request;

    MPI_Ibarrier(comm, &request);
    comm_wait_request(&request);
}

#define PINGS 50 /* round trips; the fastest determines the offset */
#define TAG   2

static void comm_ping(MPI_Comm comm, int other, double answer[2])
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

static void comm_answer_pings(MPI_Comm comm, double result[2])
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
        comm_answer_pings(c->comm, mine);
    else
        for (int i = 1; i < c->size; i++)
            comm_ping(c->comm, i, other);
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
    bytes = (bytes + 63) / 64 * 64 + 64; /* MPI aligns the parts to less than a cache line */
    MPI_Win_allocate_shared((MPI_Aint)bytes, 1, MPI_INFO_NULL, c->node, &own, &s->window);
    memset(own, 0, bytes);
    for (int i = 0; i < c->host_size; i++) {
        MPI_Aint size;
        MPI_Win_shared_query(s->window, i, &size, &unit, &parts[i]);
        parts[i] = (char *)parts[i] + (64 - (uintptr_t)parts[i] % 64) % 64;
    }
    MPI_Barrier(c->node); /* wait until every rank has zeroed its part */
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
