#include "worker/team/parallel.h"

#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#ifdef __SSE3__
#include <pmmintrin.h>
#endif

#include "common/run/trace.h"
#include "worker/team/dry_run.h"

_Thread_local struct dry_run *dry_run;
_Thread_local size_t dry_run_vec;
_Thread_local struct team_watch *team_watch;

static int parallel_cut_rows(size_t first, size_t end, size_t columns,
                             struct parallel_block block[PARALLEL_BLOCKS])
{
    int count = 0;

    while (first < end) {
        size_t row = first / columns, column = first % columns, left = end - first;
        struct parallel_block b = {row, 1, column, columns - column};
        if (column == 0 && left >= columns)
            b.rows = left / columns;
        else if (left < b.columns)
            b.columns = left;
        block[count++] = b;
        first += b.rows * b.columns;
    }
    return count;
}

int parallel_blocks(size_t rows, size_t columns, struct parallel_share share,
                    struct parallel_block block[PARALLEL_BLOCKS])
{
    struct parallel_range r = parallel_range(rows * columns, share);
    return parallel_cut_rows(r.first, r.end, columns, block);
}

/* First unit of a part. The rows are in `units` groups that differ by one row at most; parts are
 * balanced by rows, not by groups. */
static size_t parallel_first_unit(size_t rows, size_t units, size_t columns, size_t part,
                                  size_t parts)
{
    size_t at = rows * columns * part / parts, unit;

    if (at == rows * columns)
        return units * columns;
    unit = (at / columns + 1) * units - 1;
    unit /= rows; /* the group of the row */
    size_t row = rows * unit / units, height = rows * (unit + 1) / units - row;
    return unit * columns + (at - row * columns) / height;
}

int parallel_matrix(size_t rows, size_t row_units, size_t columns, size_t width,
                    struct parallel_share share, struct parallel_block block[PARALLEL_BLOCKS])
{
    size_t blocks = (columns + width - 1) / width, part = (size_t)share.part;
    size_t first = parallel_first_unit(rows, row_units, blocks, part, (size_t)share.parts);
    size_t end = parallel_first_unit(rows, row_units, blocks, part + 1, (size_t)share.parts);
    int count = parallel_cut_rows(first, end, blocks, block);

    for (int i = 0; i < count; i++) {
        struct parallel_block *b = &block[i];
        size_t last = rows * (b->row + b->rows) / row_units;
        size_t after = (b->column + b->columns) * width;
        b->row = rows * b->row / row_units;
        b->rows = last - b->row;
        b->column *= width;
        b->columns = (after < columns ? after : columns) - b->column;
    }
    return count;
}

#ifdef __SANITIZE_THREAD__
static pthread_barrier_t meeting;

static void parallel_meet(void)
{
    pthread_barrier_wait(&meeting);
}
#else
static void parallel_meet(void)
{
#pragma omp barrier
}
#endif

static void parallel_flush_denormals(void)
{
#ifdef __SSE3__
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
#endif
}

struct begun {
    _Alignas(64) atomic_uint state; /* PASS_SPAN * pass + number of pieces begun */
};
enum { PASS_SPAN = 16, ALL_BEGUN = PASS_SPAN - 1 };

static _Thread_local struct {
    struct begun *begun; /* [threads]; NULL: no stealing */
    unsigned pass;       /* current one */
    int lane;
    double waited; /* seconds waited, in this share */
} self;

/* With a trace, also waits for the others here, so that this wait is recorded as well. */
static void parallel_run_share(struct parallel_share share, struct begun *begun,
                               parallel_team_body *body, void *context)
{
    double start = trace_begin();

    parallel_flush_denormals();
    self.begun = begun;
    self.pass = 0;
    self.lane = share.part * PARALLEL_PIECES;
    self.waited = 0;
    body(share, context);
    if (start > 0) {
        parallel_barrier(share);
        trace_share(share.part, clock_monotonic() - start - self.waited);
    }
}

static void parallel_run_dry(int threads, parallel_team_body *body, void *context)
{
    struct dry_run *shares = calloc((size_t)threads, sizeof *shares);

    for (int i = 0; i < threads && shares; i++) {
        dry_run = &shares[i];
        self.lane = i * PARALLEL_PIECES;
        body((struct parallel_share){i, threads}, context);
    }
    dry_run = NULL;
    self.lane = 0;
    if (shares)
        team_watch->team(threads, shares, 0, team_watch->context);
    free(shares);
}

#ifdef __SANITIZE_THREAD__

/* ThreadSanitizer does not know libgomp's barriers and would report every pass as a race, so the
 * shares run on pthreads there. One team at a time. */
struct member {
    pthread_t thread;
    struct parallel_share share;
    struct begun *begun;
    parallel_team_body *body;
    void *context;
};

static void *parallel_run_member(void *context)
{
    const struct member *m = context;
    parallel_run_share(m->share, m->begun, m->body, m->context);
    return NULL;
}

static void parallel_run_members(int threads, struct begun *begun, parallel_team_body *body,
                                 void *context)
{
    struct member *members = calloc((size_t)threads, sizeof *members);

    if (!members || pthread_barrier_init(&meeting, NULL, (unsigned)threads))
        abort();
    for (int i = 0; i < threads; i++) {
        members[i] = (struct member){
            .share = {i, threads},
              .begun = begun, .body = body, .context = context
        };
        if (i > 0 && pthread_create(&members[i].thread, NULL, parallel_run_member, &members[i]))
            abort();
    }
    parallel_run_member(&members[0]);
    for (int i = 1; i < threads; i++)
        pthread_join(members[i].thread, NULL);
    pthread_barrier_destroy(&meeting);
    free(members);
}

#else

static void parallel_run_members(int threads, struct begun *begun, parallel_team_body *body,
                                 void *context)
{
#pragma omp parallel num_threads(threads)
    parallel_run_share((struct parallel_share){omp_get_thread_num(), omp_get_num_threads()}, begun,
                       body, context);
}

#endif

static void parallel_run_team(int threads, parallel_team_body *body, void *context)
{
    if (threads <= 1) {
        parallel_run_share(PARALLEL_ALL, NULL, body, context);
        return;
    }
    struct begun *begun = aligned_alloc(sizeof *begun, (size_t)threads * sizeof *begun);

    for (int i = 0; begun && i < threads; i++)
        atomic_init(&begun[i].state, ALL_BEGUN);
    parallel_run_members(threads, begun, body, context);
    free(begun);
}

void parallel_team(int threads, parallel_team_body *body, void *context)
{
    struct team_watch *watch = team_watch;

    if (watch && watch->dry) {
        parallel_run_dry(threads < 1 ? 1 : threads, body, context);
        return;
    }
    double start = watch ? clock_monotonic() : 0;
    parallel_run_team(threads, body, context);
    if (watch)
        watch->team(threads, NULL, clock_monotonic() - start, watch->context);
}

void parallel_barrier(struct parallel_share share)
{
    if (dry_run && dry_run->phases < DRY_PHASES - 1)
        dry_run->phases++;
    if (share.parts == 1 || dry_run)
        return;
    double waits = trace_begin();
    parallel_meet();
    trace_part(waits, TRACE_WAIT);
    if (waits > 0)
        self.waited += clock_monotonic() - waits;
}

int parallel_lane(void)
{
    return self.lane;
}

int parallel_pieces(size_t grains)
{
    int pieces = 1;

    while (pieces < PARALLEL_PIECES && grains >> pieces)
        pieces++;
    return pieces;
}

/* 1/2, 1/4, 1/8 ... of the share; the last two are equal. */
struct parallel_piece parallel_piece(struct parallel_share home, int number, int pieces)
{
    bool last = number == pieces - 1;
    int parts = 1 << (last ? number : number + 1);

    return (struct parallel_piece){
        home, {parts - (last ? 1 : 2), parts},
         number
    };
}

/* Claims the next piece of a thread and returns its number, or `pieces` if all are claimed or the
 * thread has pieces of the previous pass left to begin. */
static int parallel_begin_piece(struct begun *of, unsigned pass, int pieces)
{
    unsigned seen = atomic_load(&of->state), next;

    do {
        unsigned at = seen / PASS_SPAN;
        next = at == pass ? seen % PASS_SPAN : 0;
        if (next == ALL_BEGUN || at > pass || at + 1 < pass ||
            (at < pass && seen % PASS_SPAN != ALL_BEGUN))
            return pieces;
    } while (!atomic_compare_exchange_weak(
        &of->state, &seen,
        PASS_SPAN * pass + (next + 1 == (unsigned)pieces ? ALL_BEGUN : next + 1)));
    return (int)next;
}

static void parallel_work_on(struct parallel_share home, int number, int pieces,
                             parallel_piece_body *body, void *context)
{
    struct parallel_piece piece = parallel_piece(home, number, pieces);

    self.lane = home.part * PARALLEL_PIECES + number;
    body(&piece, context);
}

void parallel_take(struct parallel_share share, size_t grains, parallel_piece_body *body,
                   void *context)
{
    int pieces = share.parts == 1 ? 1 : parallel_pieces(grains), lane = self.lane;

    self.pass++;
    if (share.parts == 1 || dry_run || !self.begun)
        for (int i = 0; i < pieces; i++)
            parallel_work_on(share, i, pieces, body, context);
    else
        for (int t = 0, i; t < share.parts; t++) {
            struct parallel_share home = {(share.part + t) % share.parts, share.parts};
            while ((i = parallel_begin_piece(&self.begun[home.part], self.pass, pieces)) < pieces)
                parallel_work_on(home, i, pieces, body, context);
        }
    self.lane = lane;
}

struct items {
    int count;
    parallel_body *body;
    void *context;
};

static void parallel_take_items(struct parallel_share share, void *context)
{
    const struct items *i = context;
    struct parallel_range r = parallel_range((size_t)i->count, share);

    if (r.first < r.end)
        i->body(share.part, (int)r.first, (int)r.end, i->context);
}

void parallel_run(int threads, int items, parallel_body *body, void *context)
{
    struct items i = {items, body, context};

    parallel_team(threads < items ? threads : items, parallel_take_items, &i);
}

int helper_thread_places(cpu_set_t *cpus)
{
    CPU_ZERO(cpus);
    if (omp_get_proc_bind() == omp_proc_bind_false)
        return 0;
    for (int place = 0; place < omp_get_num_places(); place++) {
        int count = omp_get_place_num_procs(place);
        int *ids = calloc((size_t)count + 1, sizeof *ids);
        if (ids)
            omp_get_place_proc_ids(place, ids);
        for (int i = 0; ids && i < count; i++)
            CPU_SET((size_t)ids[i], cpus);
        free(ids);
    }
    return CPU_COUNT(cpus);
}

int helper_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *argument)
{
    pthread_attr_t attributes;
    cpu_set_t cpus;
    sigset_t all, before;

    pthread_attr_init(&attributes);
    if (helper_thread_places(&cpus) > 0)
        pthread_attr_setaffinity_np(&attributes, sizeof cpus, &cpus);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int reason = pthread_create(thread, &attributes, run, argument);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (reason == 0)
        pthread_setname_np(*thread, name);
    return reason;
}
