#include "daemon/store/migrate.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "daemon/store/sql.h"

static int migrate_read_number(sqlite3 *db, const char *sql, int *value, struct error *e)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);

    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *value = sqlite3_column_int(statement, 0);
    int status = code == SQLITE_ROW ? 0 : sql_error(db, e, "reading the database's version");
    sqlite3_finalize(statement);
    return status;
}

static int migrate_check_version(sqlite3 *db, const char *path, int count, struct error *e)
{
    int version, application, tables;

    if (migrate_read_number(db, "pragma user_version", &version, e) ||
        migrate_read_number(db, "pragma application_id", &application, e) ||
        migrate_read_number(db, "select count(*) from sqlite_schema", &tables, e))
        return error_prefix(e, "%s", path);
    if (tables > 0 && application != STORE_APPLICATION_ID)
        return error_set(e, ERR_CONFLICT,
                         "%s is the database of another program and was not changed. Specify "
                         "another folder with --state",
                         path);
    if (version < 0)
        return error_set(
            e, ERR_CORRUPT,
            "%s has schema version %d, and versions begin with 0. " STORE_DAMAGED_ADVICE, path,
            version);
    if (version > count)
        return error_set(e, ERR_CONFLICT,
                         "%s has schema version %d, but this traind supports versions up to %d: it "
                         "was written by a newer traind. Use that one, or another folder with "
                         "--state. The database was not changed",
                         path, version, count);
    return 0;
}

/* Makes SQLite create no files next to the database. Only correct if there is no write-ahead
 * log. */
static void migrate_immutable_uri(const char *path, char *uri, size_t bytes)
{
    size_t used = (size_t)snprintf(uri, bytes, "file:");

    for (; *path && used + 32 < bytes; path++)
        used += (size_t)snprintf(uri + used, bytes - used, strchr("%?#", *path) ? "%%%02X" : "%c",
                                 (unsigned char)*path);
    snprintf(uri + used, bytes - used, "?immutable=1");
}

static int migrate_open_to_look(const char *path, sqlite3 **db)
{
    char uri[3 * PATH_MAX], log[PATH_MAX + 8];
    struct stat st;

    snprintf(log, sizeof log, "%s-wal", path);
    if (stat(log, &st) == 0 && st.st_size > 0)
        return sqlite3_open_v2(path, db, SQLITE_OPEN_READONLY, NULL);
    migrate_immutable_uri(path, uri, sizeof uri);
    return sqlite3_open_v2(uri, db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
}

int store_migrate_check(const char *path, int count, struct error *e)
{
    sqlite3 *db = NULL;
    int status;

    if (access(path, F_OK))
        return 0;
    if (migrate_open_to_look(path, &db) != SQLITE_OK) {
        sql_error(db, e, "opening the database");
        status = error_prefix(e, "%s", path);
    } else {
        status = migrate_check_version(db, path, count, e);
    }
    sqlite3_close(db);
    return status;
}

/* Runs all steps in one transaction. */
static int migrate_apply(sqlite3 *db, const struct store_migration *migrations, int from, int to,
                         struct error *e)
{
    char last_words[128];
    const char *step = migrations[from].name;
    int code = sqlite3_exec(db, "begin immediate", NULL, NULL, NULL);

    for (int i = from; code == SQLITE_OK && i < to; i++) {
        step = migrations[i].name;
        code = sqlite3_exec(db, migrations[i].sql, NULL, NULL, NULL);
    }
    snprintf(last_words, sizeof last_words,
             "pragma application_id = %d; pragma user_version = %d; commit", STORE_APPLICATION_ID,
             to);
    if (code == SQLITE_OK && sqlite3_exec(db, last_words, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    int status = sql_error(db, e, step);
    sqlite3_exec(db, "rollback", NULL, NULL, NULL);
    return status;
}

int store_migrate(sqlite3 *db, const struct store_migration *migrations, int count, struct error *e)
{
    int version;
    int status = migrate_read_number(db, "pragma user_version", &version, e);

    while (status == 0 && version >= 0 && version < count) {
        int next = version == 0 ? count : version + 1;
        status = migrate_apply(db, migrations, version, next, e);
        for (; status == 0 && version < next; version++)
            log_debug("store: applied %s", migrations[version].name);
    }
    return status;
}

static int migrate_check_entries(sqlite3 *db, sqlite3 *wanted, struct error *e)
{
    sqlite3_stmt *each = NULL, *look = NULL;
    int code = sqlite3_prepare_v2(
        wanted, "select type, name from sqlite_schema where name not like 'sqlite_%'", -1, &each,
        NULL);
    int status = code == SQLITE_OK ? 0 : sql_error(wanted, e, "listing the tables");

    if (!status && sqlite3_prepare_v2(db, "select 1 from sqlite_schema where type = ? and name = ?",
                                      -1, &look, NULL))
        status = sql_error(db, e, "listing the tables");
    while (!status && sqlite3_step(each) == SQLITE_ROW) {
        const char *type = (const char *)sqlite3_column_text(each, 0);
        const char *name = (const char *)sqlite3_column_text(each, 1);
        sqlite3_bind_text(look, 1, type, -1, SQLITE_STATIC);
        sqlite3_bind_text(look, 2, name, -1, SQLITE_STATIC);
        if (sqlite3_step(look) == SQLITE_DONE)
            status = error_set(e, ERR_CORRUPT, "the %s %s is missing. " STORE_DAMAGED_ADVICE, type,
                               name);
        sqlite3_reset(look);
    }
    sqlite3_finalize(each);
    sqlite3_finalize(look);
    return status;
}

int store_migrate_verify(sqlite3 *db, const struct store_migration *migrations, int count,
                         struct error *e)
{
    sqlite3 *wanted = NULL;
    int status = sqlite3_open(":memory:", &wanted) == SQLITE_OK
                     ? store_migrate(wanted, migrations, count, e)
                     : sql_error(wanted, e, "opening a database in memory");

    if (status == 0)
        status = migrate_check_entries(db, wanted, e);
    sqlite3_close(wanted);
    return status;
}
