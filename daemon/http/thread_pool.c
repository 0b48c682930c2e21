#include "daemon/http/thread_pool.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/assert_always.h"
#include "common/xalloc.h"

#define THREAD_POOL_MAGIC 0x7b6ead91u

struct thread_pool {
    unsigned magic;
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct pool_task *first, **end;
    unsigned queued, idle, count, capacity;
    bool shut_down;
    pthread_t threads[]; /* (capacity) */
};

static void *thread_pool_run(void *context)
{
    struct thread_pool *p = context;

    pthread_mutex_lock(&p->lock);
    for (;;) {
        struct pool_task *task = p->first;
        if (task) {
            assert_always(p->queued > 0);
            p->queued--;
            p->first = task->next;
            if (!p->first)
                p->end = &p->first;
            pthread_mutex_unlock(&p->lock);
            task->work(task->context);
            pthread_mutex_lock(&p->lock);
            continue;
        }
        if (p->shut_down)
            break;
        p->idle++;
        pthread_cond_wait(&p->change, &p->lock);
        assert_always(p->idle > 0);
        p->idle--;
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

struct thread_pool *thread_pool_create(unsigned threads)
{
    struct thread_pool *p = xcalloc(1, sizeof *p + threads * sizeof p->threads[0]);

    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->change, NULL);
    p->magic = THREAD_POOL_MAGIC;
    p->end = &p->first;
    p->capacity = threads;
    return p;
}

bool thread_pool_submit(struct thread_pool *p, struct pool_task *task)
{
    assert_object(p, THREAD_POOL_MAGIC);
    pthread_mutex_lock(&p->lock);
    /* A woken thread counts as idle until it has taken a queued task. */
    if (p->queued >= p->idle && p->count < p->capacity && !p->shut_down &&
        pthread_create(&p->threads[p->count], NULL, thread_pool_run, p) == 0)
        p->count++;
    bool taken = p->count > 0 && !p->shut_down;
    if (taken) {
        task->next = NULL;
        *p->end = task;
        p->end = &task->next;
        p->queued++;
        pthread_cond_signal(&p->change);
    }
    pthread_mutex_unlock(&p->lock);
    return taken;
}

void thread_pool_shutdown(struct thread_pool *p)
{
    assert_object(p, THREAD_POOL_MAGIC);
    pthread_mutex_lock(&p->lock);
    unsigned count = p->shut_down ? 0 : p->count;
    p->shut_down = true;
    pthread_cond_broadcast(&p->change);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < count; i++)
        pthread_join(p->threads[i], NULL);
}

void thread_pool_destroy(struct thread_pool *p)
{
    if (!p)
        return;
    thread_pool_shutdown(p);
    pthread_cond_destroy(&p->change);
    pthread_mutex_destroy(&p->lock);
    assert_object_ends(p, THREAD_POOL_MAGIC);
    free(p);
}
