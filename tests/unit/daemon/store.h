/* A store in a temporary folder: TestSuite(NAME, .init = make_store, .fini = remove_store). */
#pragma once

#include "daemon/store/store_open.h"
#include "tests/unit/folder.h"

static struct store *store;
static struct error e;

static inline void make_store(void)
{
    make_folder();
    cr_assert_eq(store_open(in_folder("traind.db"), &store, &e), 0, "%s", e.text);
}

static inline void remove_store(void)
{
    store_close(store);
    remove_folder();
}
