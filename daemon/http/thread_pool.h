/*
 * Threads for requests that block on the disk. Each of microhttpd's few threads serves many
 * connections, all of which would stall with one blocked request. On threads of their own, requests
 * that wait for the disk at the same time share one commit (store/group.c).
 */
#pragma once

#include <stdbool.h>

struct thread_pool;

/* Owned by the caller, and kept until work was called; zero-initialise next. */
struct pool_task {
    void (*work)(void *context);
    void *context;
    struct pool_task *next;
};

/* Threads are started on demand, up to this many, and kept. */
struct thread_pool *thread_pool_create(unsigned threads);

/* Queues the task; tasks start in order. False, with nothing queued: the pool has been shut down,
 * or no thread could be started. */
bool thread_pool_submit(struct thread_pool *p, struct pool_task *task);

/* Returns when all queued tasks are done. Later submissions fail. */
void thread_pool_shutdown(struct thread_pool *p);

void thread_pool_destroy(struct thread_pool *p); /* shuts it down first; NULL is fine */
