#include "worker/watch/straggler.h"

#include <stdlib.h>
#include <string.h>

#include "common/median.h"

#define LEAST_EXCESS_MS 2 /* below it a step is too short to tell */

/* Of one rank. */
struct record {
    int slow_steps, fast_steps; /* one behind the other, up to now */
    bool named;
    double busy_ms, median_ms; /* sums over the slow steps */
    double excess_ms[RANK_PHASES];
};

struct stragglers {
    int world;
    struct record *ranks; /* (world) */
    double *sorted;       /* (RANK_PHASES + 1, world): a step's times, the last row whole */
    bool is_sorted[RANK_PHASES + 1];
};

const char *rank_phase_name(enum rank_phase phase)
{
    static const char *const names[] = {"data", "forward", "backward", "optim"};
    return names[phase];
}

double rank_busy_ms(const struct rank_times *times)
{
    double sum = 0;
    for (int i = 0; i < RANK_PHASES; i++)
        sum += times->ms[i];
    return sum;
}

int stragglers_create(int world, struct stragglers **out, struct error *e)
{
    struct stragglers *s = calloc(1, sizeof *s);

    if (s) {
        s->world = world;
        s->ranks = calloc((size_t)world, sizeof *s->ranks);
        s->sorted = calloc((size_t)world * (RANK_PHASES + 1), sizeof *s->sorted);
    }
    if (!s || !s->ranks || !s->sorted) {
        stragglers_destroy(s);
        return error_set(e, ERR_NO_MEMORY, "no memory for the times of %d ranks", world);
    }
    *out = s;
    return 0;
}

void stragglers_destroy(struct stragglers *s)
{
    if (!s)
        return;
    free(s->ranks);
    free(s->sorted);
    free(s);
}

static double straggler_time(const struct rank_times *times, int phase)
{
    return phase == RANK_PHASES ? rank_busy_ms(times) : times->ms[phase];
}

/* Phase RANK_PHASES: their whole time. Rank 0 does this in every step, for all ranks: they are
 * sorted once and not once for each. */
static const double *sorted_times(struct stragglers *s, const struct rank_times *every, int phase)
{
    double *row = s->sorted + (size_t)phase * (size_t)s->world;

    if (s->is_sorted[phase])
        return row;
    for (int i = 0; i < s->world; i++)
        row[i] = straggler_time(&every[i], phase);
    median_sort(row, (size_t)s->world);
    s->is_sorted[phase] = true;
    return row;
}

/* Of all ranks but one: its value is left out where it stands. */
static double median_of_others(struct stragglers *s, const struct rank_times *every, int rank,
                               int phase)
{
    const double *all = sorted_times(s, every, phase);
    double own = straggler_time(&every[rank], phase);
    int n = s->world - 1, low = (n - 1) / 2, high = n / 2;

    return (all[low + (own <= all[low])] + all[high + (own <= all[high])]) / 2;
}

static bool is_slow(double busy, double median)
{
    return busy > STRAGGLER_FACTOR * median && busy > median + LEAST_EXCESS_MS;
}

static void add_slow_step(struct stragglers *s, const struct rank_times *every, int rank,
                          double busy, double median)
{
    struct record *r = &s->ranks[rank];

    if (r->slow_steps++ == 0)
        *r = (struct record){.slow_steps = 1, .named = r->named};
    r->fast_steps = 0;
    r->busy_ms += busy;
    r->median_ms += median;
    for (int p = 0; p < RANK_PHASES; p++)
        r->excess_ms[p] += every[rank].ms[p] - median_of_others(s, every, rank, p);
}

static void add_fast_step(struct record *r)
{
    r->slow_steps = 0;
    if (++r->fast_steps >= STRAGGLER_STEPS)
        r->named = false;
}

static struct straggler straggler_describe(const struct record *r, int rank)
{
    struct straggler found = {.rank = rank,
                              .busy_ms = r->busy_ms / r->slow_steps,
                              .median_ms = r->median_ms / r->slow_steps};

    for (int p = 1; p < RANK_PHASES; p++)
        if (r->excess_ms[p] > r->excess_ms[found.phase])
            found.phase = (enum rank_phase)p;
    return found;
}

bool stragglers_add(struct stragglers *s, const struct rank_times *every, struct straggler *found)
{
    bool any = false;

    memset(s->is_sorted, 0, sizeof s->is_sorted);
    for (int rank = 0; rank < s->world && s->world > 1; rank++) {
        struct record *r = &s->ranks[rank];
        double busy = rank_busy_ms(&every[rank]);
        double median = median_of_others(s, every, rank, RANK_PHASES);
        if (is_slow(busy, median))
            add_slow_step(s, every, rank, busy, median);
        else
            add_fast_step(r);
        if (any || r->named || r->slow_steps < STRAGGLER_STEPS)
            continue;
        any = r->named = true;
        *found = straggler_describe(r, rank);
    }
    return any;
}
