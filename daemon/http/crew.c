#include "daemon/http/crew.h"

#include <pthread.h>
#include <stdlib.h>

struct crew {
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct crew_task *first, **end;
    unsigned queued, idle, count, room;
    bool dismissed;
    pthread_t threads[]; /* (room) */
};

static struct crew_task *crew_next_task(struct crew *c)
{
    struct crew_task *task = c->first;

    if (!task)
        return NULL;
    c->queued--;
    c->first = task->next;
    if (!c->first)
        c->end = &c->first;
    return task;
}

static void *crew_serve(void *context)
{
    struct crew *c = context;

    pthread_mutex_lock(&c->lock);
    for (;;) {
        struct crew_task *task = crew_next_task(c);
        if (task) {
            pthread_mutex_unlock(&c->lock);
            task->work(task->context);
            pthread_mutex_lock(&c->lock);
            continue;
        }
        if (c->dismissed)
            break;
        c->idle++;
        pthread_cond_wait(&c->change, &c->lock);
        c->idle--;
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

int crew_create(unsigned threads, struct crew **out, struct error *e)
{
    struct crew *c = calloc(1, sizeof *c + threads * sizeof c->threads[0]);

    *out = c;
    if (!c)
        return error_set(e, ERR_NO_MEMORY, "no memory for the threads of the HTTP server");
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->change, NULL);
    c->end = &c->first;
    c->room = threads;
    return 0;
}

bool crew_do(struct crew *c, struct crew_task *task)
{
    pthread_mutex_lock(&c->lock);
    /* A thread that was woken counts as idle until it runs: it has a task in the queue. */
    if (c->queued >= c->idle && c->count < c->room && !c->dismissed &&
        pthread_create(&c->threads[c->count], NULL, crew_serve, c) == 0)
        c->count++;
    bool taken = c->count > 0 && !c->dismissed;
    if (taken) {
        task->next = NULL;
        *c->end = task;
        c->end = &task->next;
        c->queued++;
        pthread_cond_signal(&c->change);
    }
    pthread_mutex_unlock(&c->lock);
    return taken;
}

void crew_dismiss(struct crew *c)
{
    pthread_mutex_lock(&c->lock);
    unsigned count = c->dismissed ? 0 : c->count;
    c->dismissed = true;
    pthread_cond_broadcast(&c->change);
    pthread_mutex_unlock(&c->lock);
    for (unsigned i = 0; i < count; i++)
        pthread_join(c->threads[i], NULL);
}

void crew_destroy(struct crew *c)
{
    if (!c)
        return;
    crew_dismiss(c);
    pthread_cond_destroy(&c->change);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
