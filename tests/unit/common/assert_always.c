#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/assert_always.h"

struct shelf {
    unsigned magic;
    int books;
};

#define SHELF_MAGIC 0x51e1f000

static void read_shelf(const struct shelf *s)
{
    assert_object(s, SHELF_MAGIC);
    assert_always(s->books <= 3);
}

/* The signal that ends read_shelf(s) in another process, or 0; text: what it writes to stderr. */
static int end_of(const struct shelf *s, char *text, size_t bytes)
{
    int ends[2], status;
    size_t used = 0;
    ssize_t got;

    cr_assert_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        errno = EPIPE;
        read_shelf(s);
        _exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], text + used, bytes - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = '\0';
    close(ends[0]);
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

Test(assert_always, a_true_condition_has_no_effect)
{
    char text[1024];

    cr_assert_eq(end_of(&(struct shelf){SHELF_MAGIC, 3}, text, sizeof text), 0);
    cr_assert_str_eq(text, "");
}

Test(assert_always, a_false_condition_aborts_and_names_itself_and_its_line)
{
    char text[1024];

    cr_assert_eq(end_of(&(struct shelf){SHELF_MAGIC, 4}, text, sizeof text), SIGABRT);
    cr_assert(strstr(text, " error: internal error at tests/unit/common/assert_always.c:20, "
                           "read_shelf: s->books <= 3 is false ("),
              "%s", text);
    cr_assert(strstr(text, ", errno 32); this is a bug: please report this line. Nothing that was "
                           "stored is lost: start "),
              "%s", text);
    cr_assert_eq(strchr(text, '\n'), text + strlen(text) - 1, "one line: %s", text);
}

Test(assert_always, an_object_is_checked_until_it_is_destroyed)
{
    struct shelf *s = &(struct shelf){SHELF_MAGIC, 1};
    char text[1024];

    cr_assert_eq(end_of(s, text, sizeof text), 0);
    assert_object_ends(s, SHELF_MAGIC);
    cr_assert_eq(end_of(s, text, sizeof text), SIGABRT);
    cr_assert(strstr(text, ": s->magic == SHELF_MAGIC is false"), "%s", text);
    cr_assert_eq(end_of(NULL, text, sizeof text), SIGABRT);
}
