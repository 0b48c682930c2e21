/*
 * Threads for requests that wait for a disk. Each of microhttpd's few threads serves many
 * connections, so that one which waited there would hold up all of them. Here each waits on a
 * thread of its own, and those that wait for the disk at the same time share its commit
 * (store/group.c).
 */
#pragma once

#include <stdbool.h>

#include "common/error.h"

struct crew;

/* Belongs to the caller, who keeps it until work was called; zero-initialise next. */
struct crew_task {
    void (*work)(void *context);
    void *context;
    struct crew_task *next;
};

/* Threads are started as they are needed, up to so many, and kept. */
int crew_create(unsigned threads, struct crew **out, struct error *e);

/* The task is worked on as soon as a thread is free, the oldest first. False: the crew has been
 * dismissed, or no thread could be had, and nothing was done. */
bool crew_do(struct crew *c, struct crew_task *task);

/* Returns when all tasks are done. crew_do may still be called, and says no. */
void crew_dismiss(struct crew *c);

void crew_destroy(struct crew *c); /* dismisses first; NULL is fine */
