#define SCALE_SHIM_C
#include "tests/scale/shim.h"

#include <math.h>
#include <simgrid/actor.h>
#include <smpi/smpi.h>
#include <stdio.h>
#include <sys/mman.h>

#define GRID_SECONDS  10e-6
#define SEND_SECONDS  0.4e-6 /* of the rank, a message: */
#define RECV_SECONDS  0.4e-6
#define RELAX_SECONDS 50e-6 /* at most of a turn that waits, */
#define RELAX_SHARE   8     /* and of what it has waited */
#define FOLDED_BYTES  ((size_t)128 << 20)

bool scale_folds;

/* ---- time */

/*
 * What a rank does begins and ends at multiples of GRID_SECONDS, and what is left over is carried
 * on: thousands of ranks then begin and end messages at the same time, and the shares of all
 * messages in the cables are found once for them.
 *
 * By rank, as without SMPI's privatization the ranks, which are threads, share all variables.
 */
static struct timing {
    double since, last; /* of a wait: when it began, and the end of its last turn */
    double owed;        /* it was busy for so long, which has not passed yet */
} timings[SCALE_RANKS_MAX];

int scale_me(void)
{
    aid_t id = sg_actor_self_get_pid();

    if (id < 0 || id >= SCALE_RANKS_MAX)
        abort();
    return (int)id;
}

static struct timing *shim_timing(void)
{
    return &timings[scale_me()];
}

void scale_charge(double seconds)
{
    struct timing *t = shim_timing();
    double now = MPI_Wtime(), until;

    t->owed += seconds;
    until = floor((now + t->owed) / GRID_SECONDS + 1e-6) * GRID_SECONDS;
    if (until <= now)
        return;
    t->owed -= until - now;
    sg_actor_sleep_for(until - now);
}

/* Turns that follow each other at once are one wait. */
double scale_turn(double least)
{
    struct timing *t = shim_timing();
    double now = MPI_Wtime(), step;

    if (now > t->last + least / 2)
        t->since = now;
    step = (now - t->since) / RELAX_SHARE;
    step = step < least ? least : step > RELAX_SECONDS ? RELAX_SECONDS : step;
    t->last = now + step;
    return step;
}

void scale_relax(void)
{
    double now = MPI_Wtime(), until = now + scale_turn(GRID_SECONDS);

    until = floor(until / GRID_SECONDS + 1e-6) * GRID_SECONDS;
    sg_actor_sleep_for(until > now ? until - now : GRID_SECONDS);
}

/* A futex waits and wakes within one process, which all ranks are: it is a turn of a loop. */
long scale_futex(void)
{
    scale_relax();
    return 0;
}

/* ---- memory */

static char *folded;

void *scale_allocate(size_t bytes, size_t alignment)
{
    void *memory;

    if (scale_folds && bytes >= FOLD_BYTES) {
        if (!folded)
            folded = SMPI_SHARED_MALLOC(FOLDED_BYTES);
        return bytes <= FOLDED_BYTES ? folded : NULL;
    }
    if (posix_memalign(&memory, alignment < 64 ? 64 : alignment, bytes + 1))
        return NULL;
    return memset(memory, 0, bytes);
}

void scale_free(void *memory)
{
    if (memory != folded)
        free(memory);
}

/* ---- memory of a machine: MPI_Win_allocate_shared, whose memory in SMPI is all there */

struct window {
    int ranks;
    char **parts;    /* (ranks) */
    MPI_Aint *bytes; /* (ranks) */
};

/* No message is sent from there: where memory is folded, nobody touches more than the beginning of
 * a part, where ranks meet, and so no more is there. */
static char *shim_window(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED)
        abort();
    return memory;
}

void *scale_memset(void *memory, int value, size_t bytes)
{
    return memset(memory, value, scale_folds && bytes > FOLD_BYTES ? FOLD_BYTES : bytes);
}

int scale_win_allocate_shared(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void *base,
                              MPI_Win *out)
{
    struct window *w = malloc(sizeof *w);
    size_t total = 0;
    char *memory = NULL;
    int rank;

    (void)unit;
    (void)info;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &w->ranks);
    w->parts = calloc((size_t)w->ranks, sizeof *w->parts);
    w->bytes = calloc((size_t)w->ranks, sizeof *w->bytes);
    bytes = (bytes + (MPI_Aint)FOLD_BYTES - 1) / (MPI_Aint)FOLD_BYTES * (MPI_Aint)FOLD_BYTES;
    MPI_Allgather(&bytes, sizeof bytes, MPI_BYTE, w->bytes, sizeof bytes, MPI_BYTE, comm);
    for (int i = 0; i < w->ranks; i++)
        total += (size_t)w->bytes[i];
    if (rank == 0)
        memory = shim_window(total);
    MPI_Bcast(&memory, sizeof memory, MPI_BYTE, 0, comm);
    for (int i = 0; i < w->ranks; memory += w->bytes[i++])
        w->parts[i] = memory;
    *(char **)base = w->parts[rank];
    *out = (MPI_Win)w;
    return MPI_SUCCESS;
}

int scale_win_shared_query(MPI_Win window, int rank, MPI_Aint *bytes, int *unit, void *base)
{
    const struct window *w = (const struct window *)window;

    if (rank == MPI_PROC_NULL)
        rank = 0;
    *bytes = w->bytes[rank];
    *unit = 1;
    *(char **)base = w->parts[rank];
    return MPI_SUCCESS;
}

/* The memory itself stays until the end of the program. */
int scale_win_free(MPI_Win *window)
{
    struct window *w = (struct window *)*window;

    free(w->parts);
    free(w->bytes);
    free(w);
    *window = MPI_WIN_NULL;
    return MPI_SUCCESS;
}

/* ---- messages */

int scale_isend(const void *from, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                MPI_Request *request)
{
    shim_timing()->owed += SEND_SECONDS;
    return MPI_Isend(from, n, type, to, tag, comm, request);
}

int scale_irecv(void *to, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                MPI_Request *request)
{
    shim_timing()->owed += RECV_SECONDS;
    return MPI_Irecv(to, n, type, from, tag, comm, request);
}

/* Those that have ended become null, and are not looked at again. */
int scale_testall(int n, MPI_Request *requests, int *ended, MPI_Status *statuses)
{
    (void)statuses;
    *ended = 1;
    for (int i = 0; *ended && i < n; i++)
        if (requests[i] != MPI_REQUEST_NULL)
            MPI_Test(&requests[i], ended, MPI_STATUS_IGNORE);
    if (*ended)
        shim_timing()->last = 0;
    return MPI_SUCCESS;
}
