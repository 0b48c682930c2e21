/* A temporary folder: TestSuite(NAME, .init = make_folder, .fini = remove_folder). */
#pragma once

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/file.h"

static char folder[32];

static inline void make_folder(void)
{
    strcpy(folder, "/tmp/traind-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static inline void remove_folder(void)
{
    file_remove_tree(folder, NULL);
}

/* The path of a file in it, until the next call. */
static inline char *in_folder(const char *name)
{
    static char path[256];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static inline void write_in_folder(const char *name, const char *text)
{
    struct error why;

    cr_assert_eq(file_write_atomic(in_folder(name), text, strlen(text), &why), 0, "%s", why.text);
}
