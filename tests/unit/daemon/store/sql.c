/* What a statement gives back where it cannot even be prepared. */
#include "daemon/store/event.h"
#include "daemon/store/sql.h"
#include "daemon/store/store.h"
#include "tests/unit/daemon/store.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void tear_down(void)
{
    sqlite3_hard_heap_limit64(0);
    remove_store();
}

TestSuite(sql, .init = make_store, .fini = tear_down);

/* A caller decides by the code, and a client by that of the error: they are one. */
Test(sql, a_failed_statement_returns_the_code_of_its_error)
{
    struct sql *c = sql_write_begin(store, false, &e);

    cr_assert_not_null(c);
    sqlite3_hard_heap_limit64(1);
    int status = sql_run(c, &e, NULL, "update job set name = name || name || name", "");
    sqlite3_hard_heap_limit64(0);
    cr_expect_eq(e.code, ERR_NO_MEMORY, "%s", e.text);
    cr_expect_eq(status, -(int)ERR_NO_MEMORY, "%d", status);
    sql_write_end(store, c, status, &e);
}

Test(sql, a_failed_query_returns_the_code_of_its_error)
{
    int64_t newest;

    sqlite3_hard_heap_limit64(1);
    int status = store_event_newest(store, &newest, &e);
    sqlite3_hard_heap_limit64(0);
    cr_expect_eq(e.code, ERR_NO_MEMORY, "%s", e.text);
    cr_expect_eq(status, -(int)ERR_NO_MEMORY, "%d", status);
}

static int told;

static void count_told(void *context)
{
    (void)context;
    told++;
}

static void write_something(void)
{
    struct sql *c = sql_write_begin(store, false, &e);

    cr_assert_not_null(c);
    cr_assert_eq(sql_write_end(store, c, 0, &e), 0);
}

Test(sql, every_listener_is_called_after_a_commit)
{
    int contexts[STORE_LISTENERS];

    for (int i = 0; i < STORE_LISTENERS; i++)
        store_on_commit(store, count_told, &contexts[i]);
    write_something();
    cr_assert_eq(told, STORE_LISTENERS);
    store_on_commit(store, NULL, &told); /* one that never listened */
    write_something();
    cr_assert_eq(told, 2 * STORE_LISTENERS);
    store_on_commit(store, NULL, &contexts[1]);
    write_something();
    cr_assert_eq(told, 3 * STORE_LISTENERS - 1);
}

Test(sql, one_more_listener_is_a_bug, .signal = SIGABRT)
{
    int contexts[STORE_LISTENERS + 1];

    for (int i = 0; i < STORE_LISTENERS; i++)
        store_on_commit(store, count_told, &contexts[i]);
    remove_folder();
    store_on_commit(store, count_told, &contexts[STORE_LISTENERS]);
}

/* It would keep its snapshot, and SQLite could no longer shorten the log. */
Test(sql, aborts_if_a_reader_is_given_back_within_a_transaction, .signal = SIGABRT)
{
    struct sql *c = sql_read_begin(store);
    sqlite3_stmt *row = sql_query(c, &e, "select name from sqlite_schema", "");

    cr_assert_eq(sql_row(c, row, &e), 1);
    remove_folder(); /* a test that aborts has no teardown */
    sql_read_end(store, c);
}

Test(sql, aborts_if_the_writer_is_given_back_as_a_reader, .signal = SIGABRT)
{
    struct sql *writer = sql_write_begin(store, false, &e);

    remove_folder();
    sql_read_end(store, writer);
}

Test(sql, aborts_if_an_object_is_not_what_it_should_be, .signal = SIGABRT)
{
    remove_folder();
    sql_db((struct sql *)(void *)store);
}
