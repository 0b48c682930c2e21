/* Opening the database, and what listens to it. */
#pragma once

#include "daemon/store/store.h"

/* Opens or makes the database and migrates it to this version. Refuses (ERR_CONFLICT, untouched) a
 * database of a newer version, and a file system without WAL, as NFS. */
int store_open(const char *path, struct store **out, struct error *e);
void store_close(struct store *s); /* NULL is fine; no other thread may be inside */

const struct store_identity *store_identity(const struct store *s);

/* STATE/jobs, absolute, which run_dir of a job is told with; before any other thread is there. */
int store_set_jobs_dir(struct store *s, const char *jobs_dir, struct error *e);

/* Copies the database as it is now into path (a new or empty file), while others read and
 * write. */
int store_backup(struct store *s, const char *path, struct error *e);

/* For a watchdog: waits of the calling thread for the one writer are no hang of that thread. Called
 * before it shares the store with others. */
void store_watch_thread(struct store *s);
/* How long that thread has been waiting for the writer; 0: it does not. On any thread. */
double store_wait_seconds(struct store *s);

/* A read works: GET /readyz. */
int store_check(struct store *s, struct error *e);

/* Calls told(context) after every commit, from the thread that committed: it must be quick and not
 * call the store. At most STORE_LISTENERS may listen, each with a context of its own; told NULL
 * ends that of this context. */
void store_on_commit(struct store *s, void (*told)(void *context), void *context);

/* Calls witness for each fact; NULL and NULL end it. */
void store_on_fact(struct store *s, store_witness *witness, store_undone *undone, void *context);
