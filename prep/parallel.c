#include "prep/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

struct parallel {
    const struct parallel_work *work;
    void *context;
    int64_t items;
    _Atomic int64_t next;
    pthread_mutex_t lock; /* of what follows */
    int64_t failed_item;  /* -1: none */
    struct error error;
};

int parallel_default_threads(void)
{
    cpu_set_t cores;
    int count = sched_getaffinity(0, sizeof cores, &cores) ? 1 : CPU_COUNT(&cores);
    return count < PARALLEL_THREADS_MAX ? count : PARALLEL_THREADS_MAX;
}

static void parallel_keep_error(struct parallel *p, int64_t item, const struct error *e)
{
    pthread_mutex_lock(&p->lock);
    if (p->failed_item < 0 || item < p->failed_item) {
        p->failed_item = item;
        p->error = *e;
    }
    pthread_mutex_unlock(&p->lock);
    atomic_store(&p->next, p->items);
}

static void *parallel_run_items(void *argument)
{
    struct parallel *p = argument;
    void *scratch = NULL;
    struct error e;
    int64_t i = 0;

    int rc = p->work->begin(p->context, &scratch, &e);
    while (rc == 0 && (i = atomic_fetch_add(&p->next, 1)) < p->items)
        rc = p->work->item(p->context, scratch, i, &e);
    if (rc)
        parallel_keep_error(p, i, &e);
    p->work->end(scratch);
    return NULL;
}

int parallel_run(int threads, int64_t items, const struct parallel_work *work, void *context,
                 struct error *e)
{
    struct parallel p = {.work = work, .context = context, .items = items, .failed_item = -1};
    pthread_t others[PARALLEL_THREADS_MAX];
    int started = 0;

    pthread_mutex_init(&p.lock, NULL);
    /* This thread is one of them; if the system gives fewer than wanted, fewer do the work. */
    while (started + 1 < threads && started + 1 < items &&
           pthread_create(&others[started], NULL, parallel_run_items, &p) == 0)
        started++;
    parallel_run_items(&p);
    for (int i = 0; i < started; i++)
        pthread_join(others[i], NULL);
    pthread_mutex_destroy(&p.lock);
    if (p.failed_item < 0)
        return 0;
    *e = p.error;
    return -(int)e->code;
}
