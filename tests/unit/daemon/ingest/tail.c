#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/ingest/tail.h"

static char path[64];
static struct tail *tail;
static struct tail_chunk chunk;
static bool truncated;
static struct error e;

static void set_up(void)
{
    snprintf(path, sizeof path, "/tmp/traind-tail.XXXXXX");
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    close(fd);
    tail = tail_create(path, 0);
}

static void tear_down(void)
{
    tail_destroy(tail);
    unlink(path);
}

static void append_lines(const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static int tail_next(void)
{
    int status = tail_read(tail, &chunk, &truncated, &e);
    if (status > 0)
        tail_advance(tail, chunk.to_bytes);
    return status;
}

TestSuite(tail, .init = set_up, .fini = tear_down);

Test(tail, waits_for_a_file_that_is_not_there)
{
    unlink(path);
    cr_assert_eq(tail_next(), 0);
    append_lines("a\n");
    cr_assert_eq(tail_next(), 1);
    cr_assert_str_eq(chunk.text, "a");
}

Test(tail, a_torn_last_line_waits_for_its_rest)
{
    append_lines("one\ntw");
    cr_assert_eq(tail_next(), 1);
    cr_assert_eq(chunk.to_bytes, 4);
    cr_assert_str_eq(chunk.text, "one");
    cr_assert_eq(tail_next(), 0);
    append_lines("o\nthree\n");
    cr_assert_eq(tail_next(), 1);
    cr_assert_eq(chunk.bytes, 10);
    cr_assert_arr_eq(chunk.text, "two\0three", 10);
    cr_assert_eq(tail_next(), 0);
}

Test(tail, returns_the_same_lines_until_it_is_advanced)
{
    append_lines("one\n");
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(tail_read(tail, &chunk, &truncated, &e), 1);
        cr_assert_str_eq(chunk.text, "one");
        cr_assert_eq(chunk.from_bytes, 0);
    }
}

Test(tail, starts_at_the_given_offset)
{
    append_lines("one\ntwo\n");
    tail_destroy(tail);
    tail = tail_create(path, 4);
    cr_assert_eq(tail_next(), 1);
    cr_assert_str_eq(chunk.text, "two");
    cr_assert_eq(chunk.from_bytes, 4);
}

Test(tail, reports_once_that_a_file_became_shorter)
{
    append_lines("one\ntwo\n");
    cr_assert_eq(tail_next(), 1);
    cr_assert_eq(truncate(path, 2), 0);
    cr_assert_eq(tail_next(), 0);
    cr_assert(truncated);
    cr_assert_eq(tail_next(), 0);
    cr_assert_not(truncated);
}

Test(tail, many_lines_come_in_pieces_and_none_twice)
{
    static char line[1001];
    size_t total = 0, seen = 0;

    memset(line, 'x', 999);
    line[999] = '\n';
    for (int i = 0; i < 1000; i++)
        append_lines(line);
    total = 1000 * 1000;
    while (tail_next() == 1) {
        cr_assert_eq(chunk.from_bytes, (int64_t)seen);
        cr_assert_eq(chunk.bytes % 1000, 0);
        seen += chunk.bytes;
    }
    cr_assert_eq(seen, total);
}

Test(tail, a_line_without_end_comes_in_marked_pieces)
{
    static char line[TAIL_CHUNK_BYTES + 100];
    memset(line, 'x', sizeof line - 1);
    append_lines(line);
    append_lines("\nshort\n");
    cr_assert_eq(tail_next(), 1);
    cr_assert(chunk.overlong);
    cr_assert_eq(chunk.bytes, TAIL_CHUNK_BYTES);
    cr_assert_eq(tail_next(), 1);
    cr_assert_not(chunk.overlong);
    cr_assert_str_eq(chunk.text + strlen(chunk.text) + 1, "short");
}

Test(tail, aborts_if_its_position_would_go_back, .signal = SIGABRT)
{
    append_lines("one\ntwo\n");
    cr_assert_eq(tail_next(), 1);
    tail_advance(tail, 4);
}

Test(tail, aborts_if_its_position_would_pass_what_was_read, .signal = SIGABRT)
{
    append_lines("one\ntwo\n");
    cr_assert_eq(tail_next(), 1);
    tail_advance(tail, 9);
}
