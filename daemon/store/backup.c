#include "daemon/store/sql.h"
#include "daemon/store/store_internal.h"

/* All pages in one step: a read transaction of WAL, so that writers go on meanwhile. */
static int copy_pages(sqlite3 *from, sqlite3 *to, struct error *e)
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

int store_backup(struct store *s, const char *path, struct error *e)
{
    sqlite3 *to = NULL;
    int status;

    if (sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK) {
        status = sql_error(to, e, "the backup");
    } else {
        struct sql *c = sql_read_begin(s);
        status = copy_pages(sql_db(c), to, e);
        sql_read_end(s, c);
    }
    sqlite3_close(to);
    return status;
}
