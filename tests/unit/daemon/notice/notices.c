/* How many notices there were: those that are stored. */
#include "daemon/notice/notices.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/sql.h"
#include "daemon/store/store.h"
#include "tests/unit/daemon/store.h"

static struct notices *notices;
static int refuse_commit;

static void setup(void)
{
    static char sendmail[] = "/bin/true";
    struct config config = {.notify_sendmail = sendmail};
    struct notice_settings *settings;

    make_store();
    cr_assert_eq(notice_settings_load(&config, &settings, &e), 0, "%s", e.text);
    notices = notices_create(store, settings);
}

static void teardown(void)
{
    notices_destroy(notices);
    remove_store();
}

TestSuite(notices, .init = setup, .fini = teardown);

static int commit_hook(void *context)
{
    (void)context;
    return refuse_commit;
}

static int ask_for_one(void)
{
    int64_t id;
    return notices_test(notices, "https://example.org/hook", NOTICE_JSON, "user:eve", &id, NULL,
                        &e);
}

static int64_t count_raised(void)
{
    struct notices_counts counts;

    notices_count(notices, &counts);
    return counts.raised;
}

/* One of a transaction that was rolled back, as on a full disk, is not counted by the next. */
Test(notices, notices_of_a_failed_transaction_are_not_counted)
{
    struct sql *c = sql_write_begin(store, false, &e);

    cr_assert_not_null(c);
    sqlite3_commit_hook(sql_db(c), commit_hook, NULL);
    cr_assert_eq(sql_write_end(store, c, 0, &e), 0);
    cr_assert_eq(ask_for_one(), 0, "%s", e.text);
    cr_assert_eq(count_raised(), 1);
    refuse_commit = 1;
    cr_assert_lt(ask_for_one(), 0);
    cr_assert_eq(count_raised(), 1);
    refuse_commit = 0;
    cr_assert_eq(ask_for_one(), 0, "%s", e.text);
    cr_assert_eq(count_raised(), 2);
}
