/* Threads for requests that block on the disk. Each of microhttpd's few threads serves many
 * connections, all of which would stall behind one blocked request. Requests on pool threads that
 * wait for the disk at the same time share one commit (store/group_commit.h). */
#pragma once

#include <stdbool.h>

struct thread_pool;

/* Owned by the caller, and must stay valid until `work` is called. Zero-initialise next. */
struct pool_task {
    void (*work)(void *context);
    void *context;
    struct pool_task *next;
};

/* Creates a pool. Up to this many threads are started on demand and then kept. */
struct thread_pool *thread_pool_create(unsigned threads);

/* Queues a task; tasks start in order. Returns false, without queueing it, if the pool has been
 * shut down or no thread could be started. */
bool thread_pool_submit(struct thread_pool *p, struct pool_task *task);

/* Blocks until all queued tasks are done. Later submissions fail. */
void thread_pool_shutdown(struct thread_pool *p);

void thread_pool_destroy(struct thread_pool *p); /* shuts it down first; NULL-safe */
