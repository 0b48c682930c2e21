#include "daemon/store/sql.h"
#include "daemon/store/store_internal.h"

#define CHECKPOINT_PAGES 1000 /* SQLite's own, SQLITE_DEFAULT_WAL_AUTOCHECKPOINT */

/* All pages in one step: a read transaction of WAL, so that writers go on meanwhile. */
static int backup_copy_pages(sqlite3 *from, sqlite3 *to, struct error *e)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");

    if (!backup)
        return sql_error(to, e, "the backup");
    sqlite3_backup_step(backup, -1);
    if (sqlite3_backup_finish(backup) != SQLITE_OK)
        return sql_error(to, e, "the backup");
    /* A single file that can be moved alone. */
    if (sqlite3_exec(to, "pragma journal_mode = delete", NULL, NULL, NULL))
        return sql_error(to, e, "the backup");
    return 0;
}

/* While a backup reads, the log cannot begin anew and grows. Commits do not carry it over then: the
 * first one behind the backup would do all of it, with the writer. */
static void backup_set_checkpoints(struct store *s, int more)
{
    pthread_mutex_lock(&s->writing);
    s->backups += more;
    sqlite3_wal_autocheckpoint(s->writer.db, s->backups ? 0 : CHECKPOINT_PAGES);
    pthread_mutex_unlock(&s->writing);
}

/* Carries the log over beside the writer, which goes on; if it cannot, a later commit does. */
static void backup_carry_over(struct store *s)
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
        backup_set_checkpoints(s, 1);
        struct sql *c = sql_read_begin(s);
        status = backup_copy_pages(sql_db(c), to, e);
        sql_read_end(s, c);
        backup_carry_over(s);
        backup_set_checkpoints(s, -1);
    }
    sqlite3_close(to);
    return status;
}
