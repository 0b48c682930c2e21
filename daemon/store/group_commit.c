/* A commit costs milliseconds of disk time, however much it contains. The first caller becomes the
 * leader: it locks the writer connection and commits every write queued so far; writes queued
 * meanwhile form the next group. Each write has its own savepoint, so a failed one undoes none of
 * the others. */
#include "daemon/store/group_commit.h"

#include "common/assert_always.h"

#include "daemon/store/store_internal.h"

struct sql_member {
    sql_write *write;
    void *context;
    struct error *e;
    int status;
    bool done;
    struct sql_member *next;
};

static int group_write_member(struct sql *c, struct sql_member *m)
{
    int status = sql_run(c, m->e, NULL, "savepoint member", "");
    if (status)
        return status;
    status = m->write(c, m->context, m->e);
    if (status && sqlite3_get_autocommit(c->db))
        return status; /* SQLite has rolled back everything, for example on a full disk */
    if (status)
        sqlite3_exec(c->db, "rollback to member", NULL, NULL, NULL);
    struct error second;
    int released = sql_run(c, &second, NULL, "release member", "");
    if (released && !status)
        *m->e = second;
    return status ? status : released;
}

static void group_fail_all(struct sql_member *group, int status, const struct error *e)
{
    for (struct sql_member *m = group; m; m = m->next) {
        if (m->status)
            continue;
        m->status = status;
        *m->e = *e;
    }
}

static void group_write(struct sql *c, struct store *s, struct sql_member *group)
{
    struct error e = {0};
    int status = 0;

    for (struct sql_member *m = group; m && !status; m = m->next) {
        m->status = group_write_member(c, m);
        if (m->status && sqlite3_get_autocommit(c->db)) {
            status = m->status;
            e = *m->e;
        }
    }
    status = sql_write_end(s, c, status, &e);
    if (status)
        group_fail_all(group, status, &e);
}

static struct sql_member *group_take(struct store *s)
{
    pthread_mutex_lock(&s->grouping);
    struct sql_member *group = s->group;
    s->group = NULL;
    s->group_end = &s->group;
    pthread_mutex_unlock(&s->grouping);
    return group;
}

/* Others can join until the writer connection is free. */
static struct sql_member *group_lead(struct store *s)
{
    struct error e = {0};
    struct sql *c = sql_write_begin(s, true, &e);
    struct sql_member *group = group_take(s);

    if (c)
        group_write(c, s, group);
    else
        group_fail_all(group, -(int)e.code, &e);
    return group;
}

int sql_write_grouped(struct store *s, sql_write *write, void *context, struct error *e)
{
    struct sql_member own = {.write = write, .context = context, .e = e};

    assert_object(s, STORE_MAGIC);
    pthread_mutex_lock(&s->grouping);
    *s->group_end = &own;
    s->group_end = &own.next;
    while (!own.done && s->group_leads)
        pthread_cond_wait(&s->group_written, &s->grouping);
    if (!own.done) {
        s->group_leads = true;
        pthread_mutex_unlock(&s->grouping);
        struct sql_member *group = group_lead(s);
        pthread_mutex_lock(&s->grouping);
        for (struct sql_member *m = group, *next; m; m = next) {
            assert_always(!m->done);
            next = m->next; /* a member that is done may be gone once the mutex is released */
            m->done = true;
        }
        s->group_leads = false;
        pthread_cond_broadcast(&s->group_written);
    }
    pthread_mutex_unlock(&s->grouping);
    return own.status;
}
