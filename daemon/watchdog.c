#include "daemon/watchdog.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>

#include "common/assert_always.h"
#include "common/clock.h"
#include "common/xalloc.h"
#include "daemon/store/store_open.h"

#define WAIT_MOST_SECONDS 60 /* wait for the writer that counts as a hang */

#define WATCHDOG_MAGIC 0x3a7cd06du

struct watchdog {
    unsigned magic;
    struct store *store;
    double seconds; /* between two checks: a quarter of systemd's timeout */
    atomic_ulong rounds;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards stop */
    pthread_cond_t stopped;
    bool stop;
};

static bool watchdog_loop_lives(struct watchdog *w, unsigned long *seen)
{
    unsigned long rounds = atomic_load(&w->rounds);
    double waits = store_wait_seconds(w->store);
    bool lives = rounds != *seen || (waits > 0 && waits < WAIT_MOST_SECONDS);

    *seen = rounds;
    return lives;
}

static void *watchdog_thread(void *context)
{
    struct watchdog *w = context;
    unsigned long seen = 0;

    pthread_mutex_lock(&w->mutex);
    while (!w->stop) {
        if (watchdog_loop_lives(w, &seen))
            sd_notify(0, "WATCHDOG=1");
        clock_wait(&w->stopped, &w->mutex, clock_monotonic() + w->seconds);
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

int watchdog_start(struct store *store, struct watchdog **out, struct error *e)
{
    uint64_t microseconds = 0;

    *out = NULL;
    if (sd_watchdog_enabled(0, &microseconds) <= 0)
        return 0;
    struct watchdog *w = xcalloc(1, sizeof *w);
    w->magic = WATCHDOG_MAGIC;
    w->store = store;
    w->seconds = (double)microseconds / 4e6;
    store_watch_thread(store);
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->stopped, NULL);
    int failed = pthread_create(&w->thread, NULL, watchdog_thread, w);
    if (!failed) {
        *out = w;
        return 0;
    }
    pthread_cond_destroy(&w->stopped);
    pthread_mutex_destroy(&w->mutex);
    free(w);
    return error_set_errno(e, failed, "cannot start the watchdog's thread");
}

double watchdog_round(struct watchdog *w)
{
    if (!w)
        return INFINITY;
    assert_object(w, WATCHDOG_MAGIC);
    atomic_fetch_add(&w->rounds, 1);
    return w->seconds;
}

void watchdog_stop(struct watchdog *w)
{
    if (!w)
        return;
    assert_object_ends(w, WATCHDOG_MAGIC);
    pthread_mutex_lock(&w->mutex);
    w->stop = true;
    pthread_cond_signal(&w->stopped);
    pthread_mutex_unlock(&w->mutex);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->stopped);
    pthread_mutex_destroy(&w->mutex);
    free(w);
}
