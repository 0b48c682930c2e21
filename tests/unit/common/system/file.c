/* Files and folders: what others do to them meanwhile. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/file.h"

static int vanish; /* so many entries are removed by somebody else first */

/* Instead of libc's. */
int remove(const char *path)
{
    if (vanish > 0) {
        vanish--;
        unlink(path);
    }
    return unlink(path) && (errno != EISDIR || rmdir(path)) ? -1 : 0;
}

static void touch(const char *folder, int number)
{
    char path[64];
    struct error e;

    snprintf(path, sizeof path, "%s/%d", folder, number);
    cr_assert_eq(file_write_unsynced(path, "x", 1, &e), 0, "%s", e.text);
}

Test(file, a_tree_is_removed_though_its_entries_vanish)
{
    char top[] = "/tmp/traind-file-XXXXXX", inner[64];
    struct error e;

    cr_assert_not_null(mkdtemp(top));
    snprintf(inner, sizeof inner, "%s/a/b", top);
    cr_assert_eq(file_make_dirs(inner, &e), 0, "%s", e.text);
    for (int i = 0; i < 5; i++) {
        touch(top, i);
        touch(inner, i);
    }
    vanish = 3;
    cr_expect_eq(file_remove_tree(top, &e), 0, "%s", e.text);
    cr_expect_eq(vanish, 0);
    cr_expect_eq(access(top, F_OK), -1, "what is said to be removed is gone");
}

Test(file, a_tree_is_removed_in_parts)
{
    char top[] = "/tmp/traind-file-XXXXXX", inner[64];
    struct error e;
    int parts = 1;

    cr_assert_not_null(mkdtemp(top));
    snprintf(inner, sizeof inner, "%s/a/b", top);
    cr_assert_eq(file_make_dirs(inner, &e), 0, "%s", e.text);
    for (int i = 0; i < 5; i++)
        touch(inner, i);
    while (file_remove_tree_until(top, 0, &e) == 1)
        parts++;
    cr_expect_eq(access(top, F_OK), -1, "it is gone in the end");
    cr_expect_eq(parts, 8, "an entry at a time: %d parts", parts);
}

Test(file, a_tree_that_is_not_there_is_no_error)
{
    struct error e;

    cr_expect_eq(file_remove_tree("/tmp/traind-file-none/a", &e), 0, "%s", e.text);
}

Test(file, a_path_that_does_not_fit_is_refused_and_left_empty)
{
    char path[PATH_MAX], longest[PATH_MAX - 2];
    struct error e = {0};

    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    cr_expect_eq(file_path(path, &e, "/%s/%s-%d", "run", "attempt", 2), 0);
    cr_expect_str_eq(path, "/run/attempt-2");
    cr_expect_eq(file_path(path, &e, "%s/%s", longest, ""), 0);
    cr_expect_eq(strlen(path), PATH_MAX - 2);
    cr_expect_eq(file_path(path, &e, "%s/%s", longest, "a"), 0);
    cr_expect_eq(e.code, ERR_NONE);
    cr_expect_eq(file_path(path, &e, "%s/%s", longest, "ab"), -ERR_INVALID);
    cr_expect_str_eq(path, "");
    cr_expect_eq(e.code, ERR_INVALID);
    cr_expect(strstr(e.text, "xxx... is too long"), "%s", e.text);
    cr_expect_eq(file_path(path, NULL, "%s/%s", longest, "ab"), -ERR_INVALID);
}
