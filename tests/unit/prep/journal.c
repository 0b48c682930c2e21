#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "prep/journal.h"
#include "tests/unit/data_fixture.h"

static char *folder;

static void set_up(void)
{
    folder = fixture_folder();
}

static void tear_down(void)
{
    fixture_remove(folder);
}

TestSuite(journal, .init = set_up, .fini = tear_down);

static struct journal *open_with(int seed)
{
    json_t *settings = json_pack("{s:i, s:s}", "seed", seed, "input", "00ff");
    struct journal *j;
    struct error e;

    cr_assert_eq(journal_open(folder, settings, &j, &e), 0, "%s", e.text);
    json_decref(settings);
    return j;
}

static void add(struct journal *j, const char *file)
{
    struct error e;
    cr_assert_eq(journal_add(j, json_pack("{s:s, s:i}", "file", file, "images", 7), &e), 0, "%s",
                 e.text);
}

Test(journal, added_entries_are_read_after_reopening)
{
    struct journal *j = open_with(1);
    add(j, "train/a");
    add(j, "train/b");
    journal_close(j);
    j = open_with(1);
    cr_assert_eq(journal_count(j), 2);
    cr_assert_eq(json_integer_value(json_object_get(journal_find(j, "train/b"), "images")), 7);
    cr_assert_null(journal_find(j, "train/c"));
    journal_close(j);
    journal_remove(folder);
    j = open_with(2);
    cr_assert_eq(journal_count(j), 0);
    journal_close(j);
}

Test(journal, a_torn_last_line_is_dropped_and_overwritten)
{
    struct journal *j = open_with(1);
    add(j, "train/a");
    add(j, "train/b");
    journal_close(j);
    const char *path = fixture_path(folder, JOURNAL_NAME);
    size_t bytes;
    uint8_t *text = fixture_read(path, &bytes);
    for (size_t cut = 1; cut < 12; cut++) {
        fixture_write(path, text, bytes - cut);
        j = open_with(1);
        cr_assert_eq(journal_count(j), 1, "cut %zu", cut);
        add(j, "train/c");
        journal_close(j);
        j = open_with(1);
        cr_assert(journal_find(j, "train/a") && journal_find(j, "train/c"));
        cr_assert_null(journal_find(j, "train/b"));
        journal_close(j);
    }
    free(text);
}

Test(journal, a_torn_first_line_starts_a_new_journal)
{
    fixture_write(fixture_path(folder, JOURNAL_NAME), "{\"seed\": 1, \"inp", 16);
    struct journal *j = open_with(5);
    cr_assert_eq(journal_count(j), 0);
    journal_close(j);
    j = open_with(5);
    journal_close(j);
}

Test(journal, other_settings_are_refused_by_name)
{
    json_t *settings = json_pack("{s:i, s:s}", "seed", 2, "input", "00ff");
    struct journal *j = open_with(1);
    struct error e;

    journal_close(j);
    cr_assert_eq(journal_open(folder, settings, &j, &e), -ERR_CONFLICT);
    cr_assert_not_null(strstr(e.text, "with seed 1, not 2"), "%s", e.text);
    json_object_set_new(settings, "seed", json_integer(1));
    json_object_set_new(settings, "input", json_string("0000"));
    cr_assert_eq(journal_open(folder, settings, &j, &e), -ERR_CONFLICT);
    cr_assert_not_null(strstr(e.text, "different input"), "%s", e.text);
    json_decref(settings);
}
