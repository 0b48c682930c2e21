/* The schema's history: schema/migrations/NNNN_*.sql, embedded at build time, applied in order. */
#pragma once

#include <sqlite3.h>

#include "common/error.h"

#define STORE_APPLICATION_ID 0x74726e64 /* "trnd": marks the file as traind's */

struct store_migration {
    const char *name; /* "0001_jobs.sql": number N leads from user_version N - 1 to N */
    const char *sql;
};
extern const struct store_migration store_migrations[]; /* generated: embed-migrations.sh */
extern const int store_migration_count;

/* ERR_CONFLICT where the file is of a version newer than count, or belongs to another program;
 * ERR_CORRUPT: of a version that cannot be.
 * Opens it read-only and changes nothing; a missing or empty file is fine. */
int store_migrate_check(const char *path, int count, struct error *e);

/* Brings the database from its user_version to count: a new one in one transaction, as each one
 * waits for the disk; one in use in a transaction for each step, so that a step that fails leaves
 * the version before it. */
int store_migrate(sqlite3 *db, const struct store_migration *migrations, int count,
                  struct error *e);

/* ERR_CORRUPT where a table or an index that the migrations make is missing. */
int store_migrate_verify(sqlite3 *db, const struct store_migration *migrations, int count,
                         struct error *e);
