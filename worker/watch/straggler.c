#include "worker/watch/straggler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/number.h"
#include "common/xalloc.h"

#define BRIEF_MS 60 /* shorter steps are too noisy: they count as this long */

/* A rank is slow if its relative excess over the median of the others is above `mean` over `blocks`
 * consecutive blocks of `steps` steps. To exclude pauses and noise, each block must also exceed
 * `least`, and `steady` times the mean. So that the slower kind of a mixed cluster is not reported,
 * the excess must also exceed `spread` times the distance between the upper eighth and the median
 * of the other units. */
static const struct rule {
    int steps, blocks;
    double mean, least, steady, spread;
} rules[] = {
    {1,  STRAGGLER_STEPS,           0.5,  0.5,  0,   0},
    {16, STRAGGLER_MEAN_STEPS / 16, 0.03, 0.02, 0.5, 3},
};
#define RULES ((int)(sizeof rules / sizeof *rules))

struct record {
    int unit; /* its host, or the rank itself if there is only one host */
    bool named[RULES];
    double excess; /* relative excess over all blocks of the current rule */
    struct {
        struct rank_times times;
        double median_ms;          /* of the others' busy times */
    } steps[STRAGGLER_MEAN_STEPS]; /* ring buffer */
};

struct stragglers {
    int world;
    long steps;     /* number of steps added so far */
    double *sorted; /* (world), stored after the ranks */
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

struct stragglers *stragglers_create(int world, const int *host)
{
    struct stragglers *s =
        xcalloc(1, sizeof *s + (size_t)world * (sizeof *s->ranks + sizeof *s->sorted));
    bool one_host = true;

    s->world = world;
    s->sorted = (double *)(s->ranks + world);
    for (int i = 0; i < world; i++)
        one_host = one_host && host[i] == 0;
    for (int i = 0; i < world; i++)
        s->ranks[i].unit = one_host ? i : host[i];
    return s;
}

void stragglers_destroy(struct stragglers *s)
{
    free(s);
}

static int straggler_at(const struct stragglers *s, int back)
{
    return (int)((s->steps - 1 - back) % STRAGGLER_MEAN_STEPS);
}

/* Returns the median of all sorted values without one that equals `self`. */
static double straggler_median_of_others(const struct stragglers *s, double self)
{
    const double *all = s->sorted;
    int n = s->world - 1, low = (n - 1) / 2, high = n / 2;

    return (all[low + (self <= all[low])] + all[high + (self <= all[high])]) / 2;
}

/* Mean over `steps` steps; `back` newer steps are skipped. */
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

static void straggler_describe(const struct stragglers *s, const struct rule *rule,
                               const struct record *slow, struct straggler *found)
{
    double lost[RANK_PHASES] = {0}, total_ms = 0;

    for (int k = 0; k < found->steps; k++) {
        double self = 0, others = 0;
        int at = straggler_at(s, k);
        for (const struct record *rank = s->ranks; rank < s->ranks + s->world; rank++) {
            for (int p = 0; p < RANK_PHASES; p++)
                lost[p] += slow->steps[at].times.ms[p] - rank->steps[at].times.ms[p];
            if (rank->unit == slow->unit)
                self = fmax(self, rank_busy_ms(&rank->steps[at].times));
            else if (rank->excess <= rule->mean / 2)
                others = fmax(others, rank_busy_ms(&rank->steps[at].times));
        }
        found->busy_ms += rank_busy_ms(&slow->steps[at].times) / found->steps;
        found->median_ms += slow->steps[at].median_ms / found->steps;
        found->wait_ms += fmax(0, self - others) / found->steps;
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

#define RANKS_IN_AN_EVENT 64

struct rank_timing {
    struct traincomm *comm;
    struct report *report;
    int world, slowest;
    struct stragglers *stragglers; /* rank 0 only */
    struct rank_step *every;       /* (world): last step of each rank */
    struct rank_times *times;      /* (world): times of `every` */
    struct host_pace *hosts;       /* scratch */
    int *host;                     /* rank 0: lowest rank on the host of each rank */
};

struct rank_timing *rank_timing_create(struct traincomm *comm, struct report *report)
{
    int world = traincomm_size(comm);
    struct rank_timing *p =
        xcalloc(1, sizeof *p + (size_t)world * (sizeof *p->every + sizeof *p->times +
                                                sizeof *p->hosts + sizeof *p->host));

    *p = (struct rank_timing){.comm = comm, .report = report, .world = world};
    p->every = (struct rank_step *)(p + 1);
    p->times = (struct rank_times *)(p->every + world);
    p->hosts = (struct host_pace *)(p->times + world);
    p->host = (int *)(p->hosts + world);
    for (int i = 0; i < world && traincomm_rank(comm) == 0; i++)
        while (strcmp(traincomm_host(comm, p->host[i]), traincomm_host(comm, i)) != 0)
            p->host[i]++;
    if (traincomm_rank(comm) == 0)
        p->stragglers = stragglers_create(world, p->host);
    return p;
}

void rank_timing_destroy(struct rank_timing *p)
{
    if (p)
        stragglers_destroy(p->stragglers);
    free(p);
}

struct rank_step rank_timing_gather(struct rank_timing *p, const struct rank_step *mine)
{
    struct rank_step all = {0};

    traincomm_all_gather(p->comm, mine, sizeof *mine, p->every);
    for (int i = 0; i < p->world; i++) {
        all.loss += p->every[i].loss / p->world;
        all.correct += p->every[i].correct;
        all.bad_images += p->every[i].bad_images;
        all.energy.joules += p->every[i].energy.joules;
        all.energy.hosts += p->every[i].energy.hosts;
        all.energy.unread += p->every[i].energy.unread;
        p->times[i] = p->every[i].times;
        if (i == 0 || rank_busy_ms(&p->times[i]) > rank_busy_ms(&p->times[p->slowest]))
            p->slowest = i;
    }
    return all;
}

static void straggler_report_hosts(const struct rank_timing *p)
{
    double busy[8];
    int n = host_paces(p->times, p->host, p->world, p->hosts), listed = 0;
    json_t *names = json_array();

    for (; listed < n && listed < (int)(sizeof busy / sizeof *busy); listed++) {
        busy[listed] = p->hosts[listed].busy_ms;
        json_array_append_new(names,
                              json_text_or_null(traincomm_host(p->comm, p->hosts[listed].first)));
    }
    report_json(p->report, "slowest_hosts", names);
    report_durations(p->report, "slowest_hosts_ms", busy, (size_t)listed);
    report_real(p->report, "median_host_ms",
                (p->hosts[(n - 1) / 2].busy_ms + p->hosts[n / 2].busy_ms) / 2);
    json_decref(names);
}

void rank_timing_report(const struct rank_timing *p)
{
    double busy[RANKS_IN_AN_EVENT];

    report_int(p->report, "slowest_rank", p->slowest);
    if (p->world > RANKS_IN_AN_EVENT) {
        if (p->stragglers)
            straggler_report_hosts(p);
        return;
    }
    for (int i = 0; i < p->world; i++)
        busy[i] = rank_busy_ms(&p->times[i]);
    report_durations(p->report, "rank_busy_ms", busy, (size_t)p->world);
}

int straggler_report(struct rank_timing *p, int64_t step, double step_ms, struct error *e)
{
    struct straggler s;
    char message[512];

    if (traincomm_rank(p->comm) != 0 || !stragglers_add(p->stragglers, p->times, step_ms, &s))
        return 0;
    snprintf(
        message, sizeof message,
        "rank %d%s on %s is slower than the others: %.1f ms a step in steps %lld to %lld, median "
        "%.1f ms; it loses most in %s, and the others wait %.1f ms a step for it (%.1f %%)",
        s.rank, s.ranks > 1 ? " (one of several)" : "", traincomm_host(p->comm, s.rank), s.busy_ms,
        (long long)(step - s.steps + 1), (long long)step, s.median_ms, rank_phase_name(s.phase),
        s.wait_ms, 100 * s.wait_share);
    log_warning("%s", message);
    report_begin(p->report, EVENT_STRAGGLER);
    report_int(p->report, "step", step);
    report_int(p->report, "rank", s.rank);
    report_text(p->report, "host", traincomm_host(p->comm, s.rank));
    report_int(p->report, "ranks", s.ranks);
    report_text(p->report, "phase", rank_phase_name(s.phase));
    report_real(p->report, "busy_ms", s.busy_ms);
    report_real(p->report, "median_ms", s.median_ms);
    report_int(p->report, "steps", s.steps);
    report_real(p->report, "wait_ms", s.wait_ms);
    report_real(p->report, "wait_share", s.wait_share);
    report_text(p->report, "message", message);
    return report_end(p->report, e);
}
