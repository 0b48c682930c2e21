#include "worker/watch/energy.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/system/powercap.h"
#include "common/xalloc.h"
#include "worker/team/parallel.h"

#define ROOT_VARIABLE "TRAIN_POWERCAP" /* replaces the folder in /sys; for tests */
#define FRESH_SECONDS 1.0

struct energy {
    bool first;                /* this is the first rank of its machine */
    struct powercap *counters; /* NULL: unreadable, or not read by this rank */
    pthread_mutex_t mutex;     /* guards the members below */
    pthread_cond_t quit_cond;
    bool quit, threaded;
    double joules, read_at; /* read_at: monotonic clock */
    pthread_t thread;
    double reported_at; /* rank 0: monotonic time of the last event; 0: none yet */
};

/* The mutex must be held. */
static void energy_read(struct energy *energy)
{
    struct error e;

    energy->read_at = clock_monotonic();
    if (powercap_read(energy->counters, &energy->joules, &e))
        log_warning("energy: %s", e.text);
}

static void *energy_run(void *context)
{
    struct energy *energy = context;

    pthread_mutex_lock(&energy->mutex);
    while (!energy->quit) {
        clock_wait(&energy->quit_cond, &energy->mutex, clock_monotonic() + ENERGY_READ_SECONDS);
        energy_read(energy);
    }
    pthread_mutex_unlock(&energy->mutex);
    return NULL;
}

static void energy_open(struct energy *energy)
{
    const char *root = getenv(ROOT_VARIABLE);
    struct error e;

    if (powercap_open(root && *root ? root : POWERCAP_ROOT, &energy->counters, &e)) {
        if (e.code != ERR_NOT_FOUND)
            log_info("cannot measure energy: %s", e.text);
        return;
    }
    energy->threaded = helper_thread_start(&energy->thread, "energy", energy_run, energy) == 0;
}

struct energy *energy_create(struct traincomm *comm)
{
    struct energy *energy = xcalloc(1, sizeof *energy);

    energy->first = traincomm_host_rank(comm) == 0;
    pthread_mutex_init(&energy->mutex, NULL);
    pthread_cond_init(&energy->quit_cond, NULL);
    if (energy->first)
        energy_open(energy);
    return energy;
}

void energy_destroy(struct energy *energy)
{
    if (!energy)
        return;
    pthread_mutex_lock(&energy->mutex);
    energy->quit = true;
    pthread_cond_signal(&energy->quit_cond);
    pthread_mutex_unlock(&energy->mutex);
    if (energy->threaded)
        pthread_join(energy->thread, NULL);
    powercap_close(energy->counters);
    pthread_cond_destroy(&energy->quit_cond);
    pthread_mutex_destroy(&energy->mutex);
    free(energy);
}

/* fresh: read the counters again even if the last reading is recent */
static struct energy_part energy_part_of(struct energy *energy, bool fresh)
{
    struct energy_part part = {.hosts = energy && energy->first};

    part.unread = part.hosts > 0 && !energy->counters;
    if (!energy || !energy->counters)
        return part;
    pthread_mutex_lock(&energy->mutex);
    if (fresh || clock_monotonic() - energy->read_at >= FRESH_SECONDS)
        energy_read(energy);
    part.joules = energy->joules;
    pthread_mutex_unlock(&energy->mutex);
    return part;
}

struct energy_part energy_now(struct energy *energy)
{
    return energy_part_of(energy, false);
}

int energy_report(struct energy *energy, struct report *report, int64_t step,
                  const struct energy_part *sum, bool last, struct error *e)
{
    double now = clock_monotonic();
    bool due = energy && (last || energy->reported_at == 0 ||
                          now - energy->reported_at >= ENERGY_EVENT_SECONDS);

    if (!due || !(sum->hosts > sum->unread))
        return 0;
    energy->reported_at = now;
    report_begin(report, EVENT_ENERGY);
    report_int(report, "step", step);
    report_real(report, "joules", sum->joules);
    report_int(report, "hosts", (int64_t)sum->hosts);
    report_int(report, "hosts_measured", (int64_t)(sum->hosts - sum->unread));
    return report_end(report, e);
}

int energy_finish(struct energy *energy, struct traincomm *comm, struct report *report,
                  int64_t step, struct error *e)
{
    struct energy_part mine = energy_part_of(energy, true);
    double sums[] = {mine.joules, mine.hosts, mine.unread};

    traincomm_reduce(comm, TRAINCOMM_SUM, sums, 3);
    struct energy_part sum = {sums[0], sums[1], sums[2]};
    return traincomm_rank(comm) == 0 ? energy_report(energy, report, step, &sum, true, e) : 0;
}
