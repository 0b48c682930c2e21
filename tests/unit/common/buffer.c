#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"

Test(buffer, appends_and_prints_and_is_taken)
{
    struct buffer b = BUFFER(100);
    size_t bytes;

    cr_assert(buffer_append(&b, "a\0b", 3));
    cr_assert(buffer_printf(&b, "%d,%s", 12, "x"));
    cr_assert(buffer_append(&b, "", 0));
    char *text = buffer_take(&b, &bytes);
    cr_assert_eq(bytes, 7);
    cr_assert_eq(memcmp(text, "a\0b12,x", 8), 0, "with a NUL behind");
    free(text);
    text = buffer_take(&b, &bytes);
    cr_assert_str_eq(text, "");
    cr_assert_eq(bytes, 0);
    free(text);
}

Test(buffer, grows_to_its_limit_and_not_beyond)
{
    enum { LIMIT = 100000 };
    struct buffer b = BUFFER(LIMIT);

    for (int i = 0; i < LIMIT; i++)
        cr_assert(buffer_append(&b, "x", 1), "%d", i);
    cr_assert_leq(b.capacity, LIMIT + 1);
    cr_assert_eq(strlen(b.data), LIMIT);
    cr_assert_not(buffer_append(&b, "x", 1));
    cr_assert(b.failed);
    cr_assert_eq(b.bytes, LIMIT, "as it was");
    cr_assert_not(buffer_append(&b, "", 0), "for good");
    cr_assert_null(buffer_take(&b, NULL));
    cr_assert(buffer_append(&b, "x", 1), "taken, it is as new");
    cr_assert_not(buffer_printf(&b, "%*d", LIMIT, 1));
    cr_assert_not(buffer_reserve(&b, SIZE_MAX));
    buffer_clear(&b);
    cr_assert_not(b.failed);
    cr_assert_null(b.data);
}

Test(buffer, a_limit_of_0_accepts_nothing)
{
    struct buffer b = {0};

    cr_assert_not(buffer_append(&b, "x", 1));
    buffer_clear(&b);
}

Test(buffer, drops_what_was_read)
{
    struct buffer b = BUFFER(10);

    buffer_drop(&b, 0);
    buffer_append(&b, "0123456789", 10);
    buffer_drop(&b, 4);
    cr_assert_str_eq(b.data, "456789");
    cr_assert(buffer_append(&b, "abcd", 4), "there is room again");
    cr_assert_str_eq(b.data, "456789abcd");
    buffer_drop(&b, 10);
    cr_assert_str_eq(b.data, "");
    buffer_clear(&b);
}

Test(buffer, an_array_keeps_its_items)
{
    int *items = NULL;
    size_t count = 0, room = 0;

    for (int i = 0; i < 1000; i++) {
        int *more = array_grow(items, count, &room, sizeof *more);
        cr_assert_not_null(more);
        items = more;
        items[count++] = i;
    }
    cr_assert_lt(count, room + 1);
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(items[i], i);
    size_t full = room = count;
    cr_assert_null(array_grow(items, full, &room, SIZE_MAX / 2), "too much");
    cr_assert_eq(room, full);
    free(items);
}

Test(buffer, an_array_reserves_the_requested_room)
{
    size_t room = 0;
    int *items = array_reserve(NULL, 0, &room, sizeof *items), *as_before = items;

    cr_assert_not_null(items, "an empty array is no failure");
    cr_assert_eq(array_reserve(items, room, &room, sizeof *items), as_before, "it fits");
    items = array_reserve(items, 10 * room + 1, &room, sizeof *items);
    cr_assert_not_null(items);
    cr_assert_geq(room, 641);
    cr_assert_null(array_reserve(items, SIZE_MAX, &room, 1), "too much");
    free(items);
}

Test(buffer, arrays_grow_together)
{
    char *names = NULL;
    double(*rows)[3] = NULL;
    size_t count = 0, room = 0;
    const struct array arrays[] = {ARRAY(names), ARRAY(rows)};

    for (; count < 1000; count++) {
        cr_assert(arrays_grow(arrays, 2, count, &room));
        cr_assert_gt(room, count);
        names[count] = (char)count;
        rows[count][2] = (double)count;
    }
    for (size_t i = 0; i < count; i++)
        cr_assert(names[i] == (char)i && rows[i][2] == (double)i, "item %zu", i);
    const struct array too_much[] = {
        arrays[0], {&rows, SIZE_MAX / 2}
    };
    size_t full = room = count;
    cr_assert_not(arrays_grow(too_much, 2, full, &room), "one that fits and one that does not");
    cr_assert_eq(room, full);
    cr_assert(arrays_grow(arrays, 2, full, &room), "they go on as they were");
    cr_assert_eq(rows[999][2], 999);
    free(names);
    free(rows);
}
