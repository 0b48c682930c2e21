#include "worker/watch/straggler.h"

#include <math.h>
#include <stdlib.h>

#include "common/number.h"

#define BRIEF_MS 60 /* a shorter step is judged as if it took so long: it is too short to tell */

/* A rank is slow whose excess over the median of the others, as a share of it, is more than `mean`
 * in so many blocks of steps one behind the other; in each of them more than `least` and `steady`
 * of the mean, so that neither a pause nor noise is one; and more than `spread` times what the
 * upper eighth of other units exceeds their middle by: in a mixed cluster the slower kind is none.
 */
static const struct rule {
    int steps, blocks;
    double mean, least, steady, spread;
} rules[] = {
    {1,  STRAGGLER_STEPS,           0.5,  0.5,  0,   0},
    {16, STRAGGLER_MEAN_STEPS / 16, 0.03, 0.02, 0.5, 3},
};
#define RULES ((int)(sizeof rules / sizeof *rules))

struct record {
    int unit; /* its host, or itself if that is the only one */
    bool named[RULES];
    double excess; /* of all blocks of the rule that is judged */
    struct {
        struct rank_times times;
        double median_ms;          /* of the others' whole times */
    } steps[STRAGGLER_MEAN_STEPS]; /* a ring */
};

struct stragglers {
    int world;
    long steps;     /* that were added */
    double *sorted; /* (world), behind the ranks */
    double step_ms[STRAGGLER_MEAN_STEPS];
    struct record ranks[];
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

int stragglers_create(int world, const int *host, struct stragglers **out, struct error *e)
{
    struct stragglers *s =
        calloc(1, sizeof *s + (size_t)world * (sizeof *s->ranks + sizeof *s->sorted));
    bool one_host = true;

    if (!s)
        return error_set(e, ERR_NO_MEMORY, "no memory for the times of %d ranks", world);
    s->world = world;
    s->sorted = (double *)(s->ranks + world);
    for (int i = 0; i < world; i++)
        one_host = one_host && host[i] == 0;
    for (int i = 0; i < world; i++)
        s->ranks[i].unit = one_host ? i : host[i];
    *out = s;
    return 0;
}

void stragglers_destroy(struct stragglers *s)
{
    free(s);
}

/* Where the newest step but `back` is in the rings. */
static int straggler_at(const struct stragglers *s, int back)
{
    return (int)((s->steps - 1 - back) % STRAGGLER_MEAN_STEPS);
}

/* Of all sorted values but one, which is left out where it stands. */
static double straggler_median_of_others(const struct stragglers *s, double own)
{
    const double *all = s->sorted;
    int n = s->world - 1, low = (n - 1) / 2, high = n / 2;

    return (all[low + (own <= all[low])] + all[high + (own <= all[high])]) / 2;
}

/* In so many steps, the newest but `back` and before. */
static double straggler_excess(const struct stragglers *s, const struct record *rank, int back,
                               int steps)
{
    double busy = 0, median = 0;

    for (int k = back; k < back + steps; k++) {
        busy += rank_busy_ms(&rank->steps[straggler_at(s, k)].times);
        median += rank->steps[straggler_at(s, k)].median_ms;
    }
    return (busy - median) / fmax(median, steps * BRIEF_MS);
}

/* The slowest rank that is not named yet, or NULL. */
static struct record *straggler_worst(struct stragglers *s, int r)
{
    const struct rule *rule = &rules[r];
    struct record *worst = NULL;

    for (struct record *rank = s->ranks; rank < s->ranks + s->world; rank++) {
        double least = INFINITY;
        for (int block = 0; block < rule->blocks; block++)
            least = fmin(least, straggler_excess(s, rank, block * rule->steps, rule->steps));
        rank->excess = straggler_excess(s, rank, 0, rule->steps * rule->blocks);
        rank->named[r] = rank->named[r] && rank->excess > rule->mean / 2;
        if (!rank->named[r] && rank->excess > rule->mean && least > rule->least &&
            least > rule->steady * rank->excess && (!worst || rank->excess > worst->excess))
            worst = rank;
    }
    return worst;
}

static bool straggler_stands_out(struct stragglers *s, int r, const struct record *rank)
{
    int n = 0;

    for (int i = 0; i < s->world; i++)
        if (s->ranks[i].unit != rank->unit)
            s->sorted[n++] = s->ranks[i].excess;
    number_sort(s->sorted, (size_t)n);
    return rank->excess > rules[r].spread * (s->sorted[n * 7 / 8] - s->sorted[(n - 1) / 2]);
}

/* Where it lost, and what the ranks that keep pace wait for those of its unit. */
static void straggler_describe(const struct stragglers *s, const struct rule *rule,
                               const struct record *slow, struct straggler *found)
{
    double lost[RANK_PHASES] = {0}, total_ms = 0;

    for (int k = 0; k < found->steps; k++) {
        double own = 0, others = 0;
        int at = straggler_at(s, k);
        for (const struct record *rank = s->ranks; rank < s->ranks + s->world; rank++) {
            for (int p = 0; p < RANK_PHASES; p++)
                lost[p] += slow->steps[at].times.ms[p] - rank->steps[at].times.ms[p];
            if (rank->unit == slow->unit)
                own = fmax(own, rank_busy_ms(&rank->steps[at].times));
            else if (rank->excess <= rule->mean / 2)
                others = fmax(others, rank_busy_ms(&rank->steps[at].times));
        }
        found->busy_ms += rank_busy_ms(&slow->steps[at].times) / found->steps;
        found->median_ms += slow->steps[at].median_ms / found->steps;
        found->wait_ms += fmax(0, own - others) / found->steps;
        total_ms += s->step_ms[at] / found->steps;
    }
    found->wait_share = found->wait_ms / total_ms;
    for (int p = 1; p < RANK_PHASES; p++)
        if (lost[p] > lost[found->phase])
            found->phase = (enum rank_phase)p;
}

static bool straggler_judge(struct stragglers *s, int r, struct straggler *found)
{
    struct record *worst = straggler_worst(s, r);

    if (!worst || !straggler_stands_out(s, r, worst))
        return false;
    *found = (struct straggler){.rank = (int)(worst - s->ranks),
                                .steps = rules[r].steps * rules[r].blocks};
    straggler_describe(s, &rules[r], worst, found);
    for (struct record *rank = s->ranks; rank < s->ranks + s->world; rank++)
        if (rank->unit == worst->unit && rank->excess > rules[r].mean / 2) {
            rank->named[r] = true;
            found->ranks++;
        }
    return true;
}

bool stragglers_add(struct stragglers *s, const struct rank_times *every, double step_ms,
                    struct straggler *found)
{
    bool any = false;
    int at = (int)(s->steps++ % STRAGGLER_MEAN_STEPS);

    s->step_ms[at] = step_ms;
    for (int i = 0; i < s->world; i++)
        s->sorted[i] = rank_busy_ms(&every[i]);
    number_sort(s->sorted, (size_t)s->world);
    for (int i = 0; i < s->world && s->world > 1; i++) {
        s->ranks[i].steps[at].times = every[i];
        s->ranks[i].steps[at].median_ms = straggler_median_of_others(s, rank_busy_ms(&every[i]));
    }
    for (int r = 0; r < RULES && !any; r++)
        if (s->steps % rules[r].steps == 0 && s->steps >= rules[r].steps * rules[r].blocks)
            any = straggler_judge(s, r, found);
    return any;
}

static int straggler_host_compare(const void *a, const void *b)
{
    const struct host_pace *x = a, *y = b;
    return (x->busy_ms < y->busy_ms) - (x->busy_ms > y->busy_ms);
}

int host_paces(const struct rank_times *every, const int *host, int world, struct host_pace *hosts)
{
    int count = 0;

    for (int i = 0; i < world; i++) {
        struct host_pace *h = &hosts[host[i]];
        if (host[i] == i)
            *h = (struct host_pace){.first = i};
        h->busy_ms = (h->busy_ms * h->ranks + rank_busy_ms(&every[i])) / (h->ranks + 1);
        h->ranks++;
    }
    for (int i = 0; i < world; i++)
        if (host[i] == i)
            hosts[count++] = hosts[i];
    qsort(hosts, (size_t)count, sizeof *hosts, straggler_host_compare);
    return count;
}
