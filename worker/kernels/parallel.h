/*
 * Work over images, shared by a rank's threads. The split depends on the two numbers alone, and
 * whoever reduces goes through the threads in order: the same thread count gives the same bits.
 */
#ifndef TRAIND_WORKER_KERNELS_PARALLEL_H
#define TRAIND_WORKER_KERNELS_PARALLEL_H

/* Gets the items [first, end) of a thread; not called for a thread without any. */
typedef void parallel_body(int thread, int first, int end, void *context);

/* Calls body once a thread, all at the same time, and waits. Denormals are zero inside (and stay so
 * in the calling thread): gradients fade into them, and they cost a hundred cycles each. */
void parallel_run(int threads, int items, parallel_body *body, void *context);

/* How many threads have work: they are the first ones. */
int parallel_busy(int threads, int items);

#endif
