#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "worker/comm/internal.h"

double comm_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

const char *traincomm_strerror(int error)
{
    switch (error < 0 ? -error : error) {
    case 0:
        return "no error";
    case TRAINCOMM_ERROR_MEMORY:
        return "not enough memory";
    case TRAINCOMM_ERROR_ARGUMENT:
        return "an argument that makes no sense";
    case TRAINCOMM_ERROR_MPI:
        return "MPI could not be started, or has ended already";
    default:
        return "an unknown error";
    }
}

const char *traincomm_version(void)
{
    return TRAINCOMM_VERSION;
}

void traincomm_mpi_version(char *text, size_t bytes)
{
    char words[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;

    if (MPI_Get_library_version(words, &length))
        words[0] = '\0';
    snprintf(text, bytes, "%s", words);
}

/* An error of one rank is everybody's: what follows is collective. */
static int init_worst_of_all(MPI_Comm comm, int status)
{
    MPI_Allreduce(MPI_IN_PLACE, &status, 1, MPI_INT, MPI_MIN, comm);
    return status;
}

static int init_learn_hosts(struct traincomm *c)
{
    char mine[TRAINCOMM_HOST_BYTES] = "";

    gethostname(mine, sizeof mine - 1);
    c->hosts = calloc((size_t)c->size, sizeof *c->hosts);
    int status = init_worst_of_all(c->comm, c->hosts ? 0 : -TRAINCOMM_ERROR_MEMORY);
    if (!status)
        MPI_Allgather(mine, sizeof mine, MPI_BYTE, c->hosts, sizeof mine, MPI_BYTE, c->comm);
    return status;
}

/* The ranks of this machine. The environment's TRAINCOMM_HOST_RANKS makes several machines of it,
 * of so many ranks each: for measurements and tests of what goes on between machines. */
static void init_find_node(struct traincomm *c)
{
    const char *text = getenv("TRAINCOMM_HOST_RANKS");
    int most = text ? atoi(text) : 0, rank, ranks;
    MPI_Comm whole;

    MPI_Comm_split_type(c->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &whole);
    MPI_Comm_rank(whole, &rank);
    MPI_Comm_size(whole, &ranks);
    c->spins = ranks <= sysconf(_SC_NPROCESSORS_ONLN);
    MPI_Comm_split(whole, most > 0 ? rank / most : 0, rank, &c->node);
    MPI_Comm_free(&whole);
    MPI_Comm_rank(c->node, &c->host_rank);
    MPI_Comm_size(c->node, &c->host_size);
}

int traincomm_init_from(MPI_Comm comm, struct traincomm **out)
{
    int status;
    struct traincomm *c = calloc(1, sizeof *c);

    *out = NULL;
    status = init_worst_of_all(comm, c ? 0 : -TRAINCOMM_ERROR_MEMORY);
    if (status) {
        free(c);
        return status;
    }
    MPI_Comm_dup(comm, &c->comm);
    MPI_Comm_rank(c->comm, &c->rank);
    MPI_Comm_size(c->comm, &c->size);
    init_find_node(c);
    status = init_learn_hosts(c);
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
    abort(); /* MPI_Abort does not come back, but does not say so */
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

/* MPI's error handlers have no context. Set before the handler is. */
static struct {
    traincomm_error_call *call;
    void *context;
} on_error;

static void init_end_by_error(MPI_Comm *comm, int *code, ...)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int length;

    if (MPI_Error_string(*code, words, &length))
        snprintf(words, sizeof words, "error %d of MPI", *code);
    on_error.call(on_error.context, words);
    MPI_Abort(*comm, *code);
}

void traincomm_on_error(struct traincomm *c, traincomm_error_call *call, void *context)
{
    MPI_Errhandler handler;

    on_error.call = call;
    on_error.context = context;
    if (MPI_Comm_create_errhandler(init_end_by_error, &handler))
        return;
    MPI_Comm_set_errhandler(c->comm, handler);
    MPI_Comm_set_errhandler(c->node, handler);
    MPI_Errhandler_free(&handler); /* the communicators, and what is made of them, keep it */
}
