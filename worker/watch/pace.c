#include "worker/watch/pace.h"

#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"

#define RANKS_IN_AN_EVENT 64

/* Behind it, as many as there are ranks: */
struct pace {
    struct traincomm *comm;
    struct report *report;
    int world, slowest;
    struct stragglers *stragglers; /* of rank 0 */
    struct rank_step *every;       /* of the last step */
    struct rank_times *times;      /* of it */
    struct host_pace *hosts;       /* room for pace_report */
    int *host;                     /* rank 0 has the lowest rank of each rank's host */
};

int pace_create(struct traincomm *comm, struct report *report, struct pace **out, struct error *e)
{
    int world = traincomm_size(comm), status = 0;
    struct pace *p = calloc(1, sizeof *p + (size_t)world * (sizeof *p->every + sizeof *p->times +
                                                            sizeof *p->hosts + sizeof *p->host));

    if (!p)
        return error_set(e, ERR_NO_MEMORY, "no memory for %d ranks", world);
    *p = (struct pace){.comm = comm, .report = report, .world = world};
    p->every = (struct rank_step *)(p + 1);
    p->times = (struct rank_times *)(p->every + world);
    p->hosts = (struct host_pace *)(p->times + world);
    p->host = (int *)(p->hosts + world);
    for (int i = 0; i < world && traincomm_rank(comm) == 0; i++)
        while (strcmp(traincomm_host(comm, p->host[i]), traincomm_host(comm, i)) != 0)
            p->host[i]++;
    if (traincomm_rank(comm) == 0)
        status = stragglers_create(world, p->host, &p->stragglers, e);
    if (!status)
        *out = p;
    else
        pace_destroy(p);
    return status;
}

void pace_destroy(struct pace *p)
{
    if (p)
        stragglers_destroy(p->stragglers);
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
        if (i == 0 || rank_busy_ms(&p->times[i]) > rank_busy_ms(&p->times[p->slowest]))
            p->slowest = i;
    }
    return all;
}

static void pace_report_hosts(const struct pace *p)
{
    double busy[8];
    int n = host_paces(p->times, p->host, p->world, p->hosts), said = 0;
    json_t *names = json_array();

    for (; said < n && said < (int)(sizeof busy / sizeof *busy); said++) {
        busy[said] = p->hosts[said].busy_ms;
        json_array_append_new(names,
                              json_text_or_null(traincomm_host(p->comm, p->hosts[said].first)));
    }
    report_json(p->report, "slowest_hosts", names);
    report_durations(p->report, "slowest_hosts_ms", busy, (size_t)said);
    report_real(p->report, "median_host_ms",
                (p->hosts[(n - 1) / 2].busy_ms + p->hosts[n / 2].busy_ms) / 2);
    json_decref(names);
}

void pace_report(const struct pace *p)
{
    double busy[RANKS_IN_AN_EVENT];

    report_int(p->report, "slowest_rank", p->slowest);
    if (p->world > RANKS_IN_AN_EVENT) {
        if (p->stragglers)
            pace_report_hosts(p);
        return;
    }
    for (int i = 0; i < p->world; i++)
        busy[i] = rank_busy_ms(&p->times[i]);
    report_durations(p->report, "rank_busy_ms", busy, (size_t)p->world);
}

int pace_judge(struct pace *p, int64_t step, double step_ms, struct error *e)
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
