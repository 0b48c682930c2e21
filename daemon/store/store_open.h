/* Opens the database and registers its callbacks. */
#pragma once

#include "daemon/store/store.h"

/* Creates the database if it is missing, and migrates it. ERR_CONFLICT: newer schema version;
 * ERR_UNSUPPORTED: the file system does not support WAL. */
int store_open(const char *path, struct store **out, struct error *e);
void store_close(struct store *s); /* NULL-safe; no other thread may be using it */

const struct store_identity *store_identity(const struct store *s);

/* Sets STATE/jobs (absolute), which run_dir is relative to. Call it before other threads start. */
int store_set_jobs_dir(struct store *s, const char *jobs_dir, struct error *e);

/* Copies the database to path (new or empty) without blocking readers and writers. */
int store_backup(struct store *s, const char *path, struct error *e);

/* For the watchdog: time the calling thread spends waiting for the writer is not a hang. */
void store_watch_thread(struct store *s);
/* Returns how long the watched thread has been waiting; 0 if it is not. Thread-safe. */
double store_wait_seconds(struct store *s);

/* For GET /readyz: checks that a read works. */
int store_check(struct store *s, struct error *e);

/* Registers a callback run after each commit, on the committing thread; it must be fast and must
 * not call the store. NULL removes the callback registered for this context. */
void store_on_commit(struct store *s, void (*committed)(void *context), void *context);

/* NULL, NULL removes the hooks. */
void store_on_fact(struct store *s, store_fact_hook *hook, store_rollback_hook *rollback_hook,
                   void *context);
