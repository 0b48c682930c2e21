/* systemd hears of a loop that goes round, or waits for the database's writer, and of no other. */
#include <criterion/criterion.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/store/sql.h"
#include "daemon/store/store.h"
#include "daemon/watchdog.h"
#include "tests/unit/daemon/store.h"

#define LOOK_MS 50 /* the watchdog's: a quarter of WATCHDOG_USEC */

static struct watchdog *dog;
static int notified = -1;
static pthread_t loop;
static atomic_bool begun;

static void setup(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    make_store();
    snprintf(address.sun_path, sizeof address.sun_path, "%s/notify", folder);
    notified = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(notified, (struct sockaddr *)&address, sizeof address), 0);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    setenv("WATCHDOG_USEC", "200000", 1);
    unsetenv("WATCHDOG_PID");
}

static void teardown(void)
{
    watchdog_stop(dog);
    close(notified);
    remove_store();
}

TestSuite(watchdog, .init = setup, .fini = teardown);

/* Whether it beats within this time; -1: however long it takes. */
static bool beats(int ms)
{
    struct pollfd fd = {.fd = notified, .events = POLLIN};
    char text[64] = "";

    if (poll(&fd, 1, ms) <= 0)
        return false;
    ssize_t bytes = recv(notified, text, sizeof text - 1, 0);
    cr_assert_str_eq(text, "WATCHDOG=1");
    return bytes > 0;
}

/* A beat may be on its way. */
static bool has_ended(void)
{
    for (int left = 0; left < 3; left++)
        if (!beats(4 * LOOK_MS))
            return true;
    return false;
}

Test(watchdog, beats_while_the_loop_runs)
{
    cr_assert_eq(watchdog_start(store, &dog, &e), 0, "%s", e.text);
    cr_assert_not_null(dog);
    for (int round = 0; round < 3; round++) {
        cr_assert_float_eq(watchdog_round(dog), LOOK_MS / 1e3, 1e-9);
        cr_assert(beats(-1));
    }
    cr_assert(has_ended(), "a loop that stands still is told as one that goes round");
}

static void *loop_writes(void *context)
{
    struct error own;

    (void)context;
    cr_assert_eq(watchdog_start(store, &dog, &own), 0, "%s", own.text);
    atomic_store(&begun, true);
    struct sql *c = sql_write_begin(store, false, &own);
    cr_assert_not_null(c);
    sql_write_end(store, c, 0, &own);
    return NULL;
}

Test(watchdog, beats_while_the_loop_waits_for_the_writer)
{
    struct sql *held = sql_write_begin(store, false, &e);

    cr_assert_not_null(held, "%s", e.text);
    cr_assert_eq(pthread_create(&loop, NULL, loop_writes, NULL), 0);
    while (!atomic_load(&begun) || store_wait_seconds(store) == 0)
        usleep(1000);
    for (int beat = 0; beat < 5; beat++)
        cr_assert(beats(-1));
    cr_assert_eq(sql_write_end(store, held, 0, &e), 0, "%s", e.text);
    pthread_join(loop, NULL);
    cr_assert_eq(store_wait_seconds(store), 0);
    while (beats(0))
        ;
    cr_assert(has_ended(), "it stands still for another reason");
}

Test(watchdog, is_off_without_systemds_watchdog)
{
    unsetenv("WATCHDOG_USEC");
    cr_assert_eq(watchdog_start(store, &dog, &e), 0);
    cr_assert_null(dog);
    cr_assert(watchdog_round(dog) > 1e9);
}
