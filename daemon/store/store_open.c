#include "daemon/store/store_open.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/assert_always.h"
#include "common/clock.h"
#include "common/system/file.h"
#include "common/xalloc.h"
#include "common/job/job_state.h"
#include "daemon/store/metric.h"
#include "daemon/store/migrate.h"
#include "daemon/store/sql.h"
#include "daemon/store/store_internal.h"

#define CIFS_MAGIC 0xFF534D42u
#define SMB2_MAGIC 0xFE534D42u

/* WAL needs shared memory, which network file systems lack (SQLite, "Write-Ahead Logging", 1). */
static int store_check_file_system(const char *path, struct error *e)
{
    char folder[PATH_MAX];
    struct statfs fs;

    snprintf(folder, sizeof folder, "%s", path);
    if (statfs(dirname(folder), &fs))
        return 0; /* opening the file will give a better error */
    unsigned long type = (unsigned long)fs.f_type & 0xffffffffu;
    if (type != NFS_SUPER_MAGIC && type != SMB_SUPER_MAGIC && type != CIFS_MAGIC &&
        type != SMB2_MAGIC)
        return 0;
    return error_set(e, ERR_UNSUPPORTED,
                     "%s is on a network file system, where SQLite's write-ahead log does not "
                     "work. Specify a folder on a local disk with --state",
                     path);
}

static int store_open_connection(struct sql *c, const char *path, int flags, struct error *e)
{
    int code = sqlite3_open_v2(path, &c->db, flags | SQLITE_OPEN_NOMUTEX, NULL);

    c->magic = SQL_MAGIC;
    if (code == SQLITE_OK)
        code = sqlite3_busy_timeout(c->db, SQL_BUSY_MS);
    if (code == SQLITE_OK)
        code = sqlite3_exec(c->db, "pragma foreign_keys = on; pragma synchronous = normal", NULL,
                            NULL, NULL);
    if (code == SQLITE_OK)
        return 0;
    sql_error(c->db, e, "opening the database");
    return error_prefix(e, "%s", path);
}

static void store_close_connection(struct sql *c)
{
    c->magic = 0;
    for (int i = 0; i < c->count; i++)
        sqlite3_finalize(c->statements[i].statement);
    sqlite3_close(c->db);
}

/* "extra" also syncs the folder after removing the rollback journal. A journal that reappeared
 * after a power failure would damage a database in WAL mode. */
static int store_use_wal(struct sql *c, const char *path, struct error *e)
{
    sqlite3_stmt *statement = NULL;
    int wal = 0;

    if (sqlite3_exec(c->db, "pragma synchronous = extra", NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(c->db, "pragma journal_mode = wal", -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        const char *mode = (const char *)sqlite3_column_text(statement, 0);
        wal = mode && strcmp(mode, "wal") == 0;
    }
    sqlite3_finalize(statement);
    if (wal && sqlite3_exec(c->db, "pragma synchronous = normal", NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    return error_set(
        e, ERR_UNSUPPORTED,
        "SQLite cannot create a write-ahead log next to %s (%s). Specify a folder on a local "
        "disk with --state",
        path, sqlite3_errmsg(c->db));
}

#define CHECK_SECONDS     0.15 /* limit at startup; a large database is checked only partly */
#define CHECK_WHOLE_BYTES ((int64_t)48 << 20)

static int store_out_of_time(void *deadline)
{
    return clock_monotonic() > *(const double *)deadline;
}

/* Returns 0 if the table is intact or time is up. */
static int store_check_table(sqlite3 *db, const char *path, const char *sql, struct error *e)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);

    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    const char *words =
        code == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : sqlite3_errmsg(db);
    int status = 0;
    if ((code == SQLITE_ROW && strcmp(words, "ok") != 0) || code == SQLITE_CORRUPT ||
        code == SQLITE_NOTADB)
        status = error_set(e, ERR_CORRUPT, "%s is damaged (%.*s). " STORE_DAMAGED_ADVICE, path,
                           (int)strcspn(words, "\n"), words);
    sqlite3_finalize(statement);
    return status;
}

/* Checks the table job first, because nothing else can replace it. quick_check cannot be
 * interrupted within a table, so a large one is read instead, newest jobs first. */
static int store_check_pages(struct sql *c, const char *path, struct error *e)
{
    double deadline = clock_monotonic() + CHECK_SECONDS;
    struct stat st;
    bool large = stat(path, &st) == 0 && st.st_size > CHECK_WHOLE_BYTES;

    sqlite3_progress_handler(c->db, 1000, store_out_of_time, &deadline);
    int status =
        store_check_table(c->db, path,
                          large ? "select 'ok', sum(length(spec) + length(plan) + created_at) "
                                  "from (select * from job order by id desc)"
                                : "pragma quick_check('job')",
                          e);
    if (status == 0 && !large)
        status = store_check_table(c->db, path, "pragma quick_check(1)", e);
    sqlite3_progress_handler(c->db, 0, NULL, NULL);
    return status;
}

/* A job in an unknown state would appear in no list and never end. */
static int store_check_states(struct sql *c, const char *path, struct error *e)
{
    sqlite3_stmt *row = sql_query(c, e, "select state, min(id) from job group by state", "");
    int status;

    while ((status = sql_row(c, row, e)) > 0) {
        const char *state = (const char *)sqlite3_column_text(row, 0);
        if (job_state_of(state) != JOB_STATE_COUNT)
            continue;
        error_set(e, ERR_CORRUPT,
                  "%s: job %lld is in the unknown state \"%s\". Set it to "
                  "\"failed\" with sqlite3, or put a backup of traind.db in its place",
                  path, (long long)sqlite3_column_int64(row, 1), state);
        sql_done(row);
        return -(int)ERR_CORRUPT;
    }
    return status;
}

static int store_read_identity(struct store *s, const char *path, struct error *e)
{
    struct sql *c = sql_read_begin(s);
    char *uuid = NULL;
    int found =
        sql_one(c, e, "select uuid, unmarked from identity", ":si", &uuid, &s->identity.unmarked);

    sql_read_end(s, c);
    if (found > 0)
        snprintf(s->identity.uuid, sizeof s->identity.uuid, "%s", uuid);
    free(uuid);
    if (found == 0)
        return error_set(e, ERR_CORRUPT, "%s: the table identity has no row. " STORE_DAMAGED_ADVICE,
                         path);
    return found < 0 ? found : 0;
}

const struct store_identity *store_identity(const struct store *s)
{
    assert_object(s, STORE_MAGIC);
    return &s->identity;
}

int store_set_jobs_dir(struct store *s, const char *jobs_dir, struct error *e)
{
    assert_object(s, STORE_MAGIC);
    free(s->jobs_dir);
    s->jobs_dir = strdup(jobs_dir);
    return s->jobs_dir ? 0 : error_set(e, ERR_NO_MEMORY, "out of memory");
}

static int store_make_tables(const char *path, struct error *e)
{
    struct sql c = {0};
    int status = store_open_connection(&c, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, e);

    if (status == 0)
        status = sql_set_durable(&c, true, e);
    if (status == 0 && (status = store_migrate(c.db, store_migrations, store_migration_count, e)))
        status = error_prefix(e, "%s", path);
    store_close_connection(&c);
    return status;
}

static void store_remove_beside(const char *database, const char *suffix)
{
    char path[PATH_MAX + 16];

    snprintf(path, sizeof path, "%s%s", database, suffix);
    unlink(path);
}

/* The file gets its name once it is complete and synced, so that a power failure leaves nothing to
 * clean up. */
static int store_make_database(const char *path, struct error *e)
{
    char unfinished[PATH_MAX];

    if (file_path(unfinished, e, "%s.new", path))
        return -(int)e->code;
    store_remove_beside(unfinished, "-journal"); /* from an earlier start that was interrupted */
    store_remove_beside(unfinished, "");
    int status = store_make_tables(unfinished, e);
    if (status)
        return status;
    store_remove_beside(path, "-wal"); /* from a removed database: SQLite would apply it */
    store_remove_beside(path, "-journal");
    if (rename(unfinished, path))
        return error_set_errno(e, errno, "cannot create %s", path);
    file_sync_dir_of(path);
    return 0;
}

static int store_open_all(struct store *s, const char *path, bool made, struct error *e)
{
    sqlite3 *db;

    if (store_open_connection(&s->writer, path, SQLITE_OPEN_READWRITE, e) ||
        store_use_wal(&s->writer, path, e))
        return -(int)e->code;
    db = s->writer.db;
    if (!made && (store_migrate(db, store_migrations, store_migration_count, e) ||
                  store_migrate_verify(db, store_migrations, store_migration_count, e)))
        return error_prefix(e, "%s", path);
    if (store_check_pages(&s->writer, path, e) || store_check_states(&s->writer, path, e))
        return -(int)e->code;
    for (; s->free_count < STORE_READERS; s->free_count++) {
        struct sql *reader = s->free_readers[s->free_count] = &s->readers[s->free_count];
        if (store_open_connection(reader, path, SQLITE_OPEN_READONLY, e))
            return -(int)e->code;
    }
    return store_read_identity(s, path, e) ? -(int)e->code : store_buckets_fill(s, e);
}

int store_open(const char *path, struct store **out, struct error *e)
{
    struct stat st;
    bool exists = stat(path, &st) == 0;

    *out = NULL;
    if (store_check_file_system(path, e))
        return -(int)e->code;
    if (exists && !S_ISREG(st.st_mode)) /* SQLite would block on a FIFO */
        return error_set(e, ERR_INVALID, "%s is %s, not a database", path, file_kind(st.st_mode));
    bool made = !exists || st.st_size == 0;
    if (store_migrate_check(path, store_migration_count, e) ||
        (made && store_make_database(path, e)))
        return -(int)e->code;
    struct store *s = xcalloc(1, sizeof *s);
    s->magic = STORE_MAGIC;
    atomic_init(&s->commits, 1);
    pthread_mutex_init(&s->counting, NULL);
    pthread_mutex_init(&s->writing, NULL);
    pthread_mutex_init(&s->grouping, NULL);
    pthread_cond_init(&s->group_written, NULL);
    s->group_end = &s->group;
    pthread_mutex_init(&s->lending, NULL);
    pthread_cond_init(&s->returned, NULL);
    if (store_open_all(s, path, made, e)) {
        store_close(s);
        return -(int)e->code;
    }
    *out = s;
    return 0;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    assert_object_ends(s, STORE_MAGIC);
    for (int i = 0; i < STORE_READERS; i++)
        store_close_connection(&s->readers[i]);
    store_close_connection(&s->writer); /* the last connection merges the log into the database */
    pthread_cond_destroy(&s->returned);
    pthread_mutex_destroy(&s->lending);
    pthread_cond_destroy(&s->group_written);
    pthread_mutex_destroy(&s->grouping);
    pthread_mutex_destroy(&s->writing);
    pthread_mutex_destroy(&s->counting);
    free(s->jobs_dir);
    free(s);
}

int store_check(struct store *s, struct error *e)
{
    struct sql *c = sql_read_begin(s);
    int status = sql_run(c, e, NULL, "select count(*) from sqlite_schema", "");
    sql_read_end(s, c);
    return status;
}

void store_watch_thread(struct store *s)
{
    assert_object(s, STORE_MAGIC);
    s->watched = pthread_self();
    s->watches = true;
}

double store_wait_seconds(struct store *s)
{
    double since = atomic_load(&s->waits_since);

    assert_object(s, STORE_MAGIC);
    return since > 0 ? clock_monotonic() - since : 0;
}

void store_on_commit(struct store *s, void (*committed)(void *context), void *context)
{
    int i = 0;

    assert_object(s, STORE_MAGIC);
    pthread_mutex_lock(&s->writing);
    while (i < STORE_LISTENERS &&
           (committed ? s->listeners[i].committed != NULL : s->listeners[i].context != context))
        i++;
    assert_always(i < STORE_LISTENERS || !committed);
    if (i < STORE_LISTENERS) {
        s->listeners[i].committed = committed;
        s->listeners[i].context = committed ? context : NULL;
    }
    pthread_mutex_unlock(&s->writing);
}

void store_on_fact(struct store *s, store_fact_hook *hook, store_rollback_hook *rollback_hook,
                   void *context)
{
    assert_object(s, STORE_MAGIC);
    pthread_mutex_lock(&s->writing);
    s->writer.hook = hook;
    s->writer.rollback_hook = rollback_hook;
    s->writer.hook_context = context;
    pthread_mutex_unlock(&s->writing);
}

#define CHECKPOINT_PAGES 1000 /* SQLite's default, SQLITE_DEFAULT_WAL_AUTOCHECKPOINT */

/* Copies all pages in one step, in a read transaction that does not block writers. */
static int store_copy_pages(sqlite3 *from, sqlite3 *to, struct error *e)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");

    if (!backup)
        return sql_error(to, e, "the backup");
    sqlite3_backup_step(backup, -1);
    if (sqlite3_backup_finish(backup) != SQLITE_OK)
        return sql_error(to, e, "the backup");
    if (sqlite3_exec(to, "pragma journal_mode = delete", NULL, NULL, NULL))
        return sql_error(to, e, "the backup");
    return 0;
}

/* During a backup the log cannot restart and grows. Without this setting, the first commit
 * afterwards would checkpoint all of it while holding the writer. */
static void store_set_checkpoints(struct store *s, int more)
{
    assert_object(s, STORE_MAGIC);
    pthread_mutex_lock(&s->writing);
    s->backups += more;
    sqlite3_wal_autocheckpoint(s->writer.db, s->backups ? 0 : CHECKPOINT_PAGES);
    pthread_mutex_unlock(&s->writing);
}

/* If this fails, a later commit retries it. */
static void store_checkpoint_beside(struct store *s)
{
    sqlite3 *db = NULL;

    if (sqlite3_open_v2(sqlite3_db_filename(s->writer.db, "main"), &db, SQLITE_OPEN_READWRITE,
                        NULL) == SQLITE_OK)
        sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    sqlite3_close(db);
}

int store_backup(struct store *s, const char *path, struct error *e)
{
    sqlite3 *to = NULL;
    int status;

    if (sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK) {
        status = sql_error(to, e, "the backup");
    } else {
        store_set_checkpoints(s, 1);
        struct sql *c = sql_read_begin(s);
        status = store_copy_pages(sql_db(c), to, e);
        sql_read_end(s, c);
        store_checkpoint_beside(s);
        store_set_checkpoints(s, -1);
    }
    sqlite3_close(to);
    return status;
}
