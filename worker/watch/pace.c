#include "worker/watch/pace.h"

#include <stdlib.h>

#include "common/log.h"

#define RANKS_IN_AN_EVENT 64

struct pace {
    struct traincomm *comm;
    struct report *report;
    int world;
    struct rank_step *every;  /* (world), of the last step */
    struct rank_times *times; /* (world), of it */
    struct stragglers *stragglers;
};

int pace_create(struct traincomm *comm, struct report *report, struct pace **out, struct error *e)
{
    struct pace *p = calloc(1, sizeof *p);
    int world = traincomm_size(comm);

    if (p) {
        *p = (struct pace){.comm = comm, .report = report, .world = world};
        p->every = calloc((size_t)world, sizeof *p->every);
        p->times = calloc((size_t)world, sizeof *p->times);
    }
    int status = p && p->every && p->times
                     ? stragglers_create(world, &p->stragglers, e)
                     : error_set(e, ERR_NO_MEMORY, "no memory for %d ranks", world);
    if (!status)
        *out = p;
    else
        pace_destroy(p);
    return status;
}

void pace_destroy(struct pace *p)
{
    if (!p)
        return;
    stragglers_destroy(p->stragglers);
    free(p->every);
    free(p->times);
    free(p);
}

struct rank_step pace_gather(struct pace *p, const struct rank_step *mine)
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
    }
    return all;
}

static int slowest_rank(const struct pace *p)
{
    int slowest = 0;
    for (int i = 1; i < p->world; i++)
        if (rank_busy_ms(&p->times[i]) > rank_busy_ms(&p->times[slowest]))
            slowest = i;
    return slowest;
}

void pace_report(const struct pace *p)
{
    double busy[RANKS_IN_AN_EVENT];

    report_int(p->report, "slowest_rank", slowest_rank(p));
    if (p->world > RANKS_IN_AN_EVENT)
        return;
    for (int i = 0; i < p->world; i++)
        busy[i] = rank_busy_ms(&p->times[i]);
    report_durations(p->report, "rank_busy_ms", busy, (size_t)p->world);
}

int pace_judge(struct pace *p, int64_t step, struct error *e)
{
    struct straggler s;

    if (traincomm_rank(p->comm) != 0 || !stragglers_add(p->stragglers, p->times, &s))
        return 0;
    log_warning(
        "rank %d on %s holds up the others: %.1f ms a step against %.1f ms, most of it in %s",
        s.rank, traincomm_host(p->comm, s.rank), s.busy_ms, s.median_ms, rank_phase_name(s.phase));
    report_begin(p->report, EVENT_STRAGGLER);
    report_int(p->report, "step", step);
    report_int(p->report, "rank", s.rank);
    report_text(p->report, "host", traincomm_host(p->comm, s.rank));
    report_text(p->report, "phase", rank_phase_name(s.phase));
    report_real(p->report, "busy_ms", s.busy_ms);
    report_real(p->report, "median_ms", s.median_ms);
    report_int(p->report, "steps", STRAGGLER_STEPS);
    return report_end(p->report, e);
}
