/* Opening the database, and what listens to it. */
#pragma once

#include "daemon/store/store.h"

/* Creates the database if missing, and migrates it. ERR_CONFLICT: newer version; ERR_UNSUPPORTED:
 * file system without WAL. */
int store_open(const char *path, struct store **out, struct error *e);
void store_close(struct store *s); /* NULL is fine; no other thread may be inside */

const struct store_identity *store_identity(const struct store *s);

/* STATE/jobs, absolute, for run_dir; before other threads start. */
int store_set_jobs_dir(struct store *s, const char *jobs_dir, struct error *e);

/* Copies it into path (new or empty) while others read and write. */
int store_backup(struct store *s, const char *path, struct error *e);

/* For the watchdog: the calling thread's waits for the writer are no hang. */
void store_watch_thread(struct store *s);
/* 0: it does not wait. On any thread. */
double store_wait_seconds(struct store *s);

/* For GET /readyz: a read works. */
int store_check(struct store *s, struct error *e);

/* Called after each commit, on its thread: must be quick and not call the store. NULL removes the
 * one with this context. */
void store_on_commit(struct store *s, void (*committed)(void *context), void *context);

/* NULL, NULL removes it. */
void store_on_fact(struct store *s, store_fact_hook *hook, store_rollback_hook *rollback_hook,
                   void *context);
