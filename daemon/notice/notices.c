#include "daemon/notice/notices.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/assert_always.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "daemon/notice/raise.h"
#include "daemon/notice/deliver.h"
#include "daemon/store/sql.h"
#include "daemon/store/store.h"
#include "daemon/store/store_open.h"

#define NOTICES_MAGIC 0x0071ce55u

struct notices {
    unsigned magic;
    struct store *store;
    pthread_mutex_t mutex; /* guards settings */
    struct notice_settings *settings;
    struct deliver *deliver;
    atomic_llong raised;
    int pending; /* notices written in the open transaction; guarded by the store's writer */
};

static struct notice_settings *notices_hold_settings(void *context)
{
    struct notices *n = context;

    assert_object(n, NOTICES_MAGIC);
    pthread_mutex_lock(&n->mutex);
    struct notice_settings *s = n->settings;
    atomic_fetch_add(&s->references, 1);
    pthread_mutex_unlock(&n->mutex);
    return s;
}

/* Runs in the store's transaction. Only a database error rolls it back: a notice that cannot be
 * created must not block the job's end. */
static int notices_witness(struct sql *c, const struct store_fact *fact, void *context,
                           struct error *e)
{
    struct notices *n = context;
    struct notice_settings *settings = notices_hold_settings(n);
    int status = raise_fact(c, store_identity(n->store)->uuid, settings, fact, &n->pending, e);

    notice_settings_release(settings);
    return status;
}

static void notices_undone(void *context)
{
    struct notices *n = context;
    n->pending = 0;
}

/* Called after each commit, by the thread that holds the writer. */
static void notices_committed(void *context)
{
    struct notices *n = context;

    if (!n->pending)
        return;
    atomic_fetch_add(&n->raised, n->pending);
    n->pending = 0;
    deliver_wake(n->deliver);
}

struct notices *notices_create(struct store *store, struct notice_settings *first)
{
    struct notices *n = xcalloc(1, sizeof *n);

    n->magic = NOTICES_MAGIC;
    n->store = store;
    n->settings = first;
    pthread_mutex_init(&n->mutex, NULL);
    n->deliver = deliver_create(store, notices_hold_settings, n);
    store_on_fact(store, notices_witness, notices_undone, n);
    store_on_commit(store, notices_committed, n);
    return n;
}

int notices_start(struct notices *n, struct error *e)
{
    assert_object(n, NOTICES_MAGIC);
    return deliver_start(n->deliver, e);
}

void notices_set(struct notices *n, struct notice_settings *fresh)
{
    assert_object(n, NOTICES_MAGIC);
    pthread_mutex_lock(&n->mutex);
    struct notice_settings *last = n->settings;
    n->settings = fresh;
    pthread_mutex_unlock(&n->mutex);
    notice_settings_release(last);
    deliver_wake(n->deliver);
}

int notices_test(struct notices *n, const char *target, enum notice_format format,
                 const char *owner, int64_t *id, int *wait_seconds, struct error *e)
{
    static atomic_llong number;
    double now = clock_now(), first = now;
    char key[64];
    int64_t count = 0;
    struct sql *c = sql_write_begin(n->store, true, e);

    assert_object(n, NOTICES_MAGIC);
    if (!c)
        return -(int)e->code;
    snprintf(key, sizeof key, "test %.6f %lld", now, (long long)atomic_fetch_add(&number, 1));
    json_t *body = json_pack("{s:s, s:o, s:s?}", "kind", notice_kind_name(NOTICE_TEST), "t",
                             json_number(now), "asked_by", owner);
    struct outbox_new test = {NOTICE_TEST, .format = format, .target = target, .owner = owner,
                              .key = key,  .body = body,     .t = now};
    int status = wait_seconds ? outbox_tests(c, owner, now - 60, &count, &first, e) : 0;
    if (wait_seconds)
        *wait_seconds = 0;
    if (!status && count >= NOTICES_TESTS_A_MINUTE) {
        *wait_seconds = (int)ceil(fmin(fmax(first + 60 - now, 1), 60));
        status = error_set(e, ERR_TOO_MANY,
                           "%lld tests were requested within a minute, but a user may send only "
                           "%d: try again in %d s",
                           (long long)count, NOTICES_TESTS_A_MINUTE, *wait_seconds);
    }
    if (!status)
        status = outbox_add(c, store_identity(n->store)->uuid, &test, id, e);
    n->pending += status > 0;
    json_decref(body);
    return sql_write_end(n->store, c, status < 0 ? status : 0, e);
}

void notices_count(const struct notices *n, struct notices_counts *counts)
{
    struct deliver_counts sent;

    assert_object(n, NOTICES_MAGIC);
    deliver_count(n->deliver, &sent);
    *counts = (struct notices_counts){atomic_load(&n->raised), sent.delivered, sent.failed,
                                      sent.attempts};
}

void notices_destroy(struct notices *n)
{
    if (!n)
        return;
    assert_object_ends(n, NOTICES_MAGIC);
    store_on_fact(n->store, NULL, NULL, NULL);
    store_on_commit(n->store, NULL, n);
    deliver_destroy(n->deliver);
    notice_settings_release(n->settings);
    pthread_mutex_destroy(&n->mutex);
    free(n);
}
