/* schema/migrations/NNNN_*.sql, embedded at build time. */
#pragma once

#include <sqlite3.h>

#include "common/error.h"

#define STORE_APPLICATION_ID 0x74726e64 /* "trnd": marks the file as traind's */

struct store_migration {
    const char *name; /* "0001_jobs.sql" */
    const char *sql;
};
extern const struct store_migration store_migrations[]; /* generated: embed-migrations.sh */
extern const int store_migration_count;

/* Read-only. ERR_CONFLICT: newer than count, or of another program; ERR_CORRUPT: impossible
 * version. A missing or empty file is fine. */
int store_migrate_check(const char *path, int count, struct error *e);

/* A new database in one transaction, one in use in a transaction per step, so that a failed step
 * leaves the version before it. */
int store_migrate(sqlite3 *db, const struct store_migration *migrations, int count,
                  struct error *e);

/* ERR_CORRUPT: a table or index is missing. */
int store_migrate_verify(sqlite3 *db, const struct store_migration *migrations, int count,
                         struct error *e);
