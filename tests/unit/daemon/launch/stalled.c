#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "daemon/launch/stalled.h"

#define NOW  1795291940.0 /* 2026-11-21T20:12:20Z */
#define STEP "{\"seq\": 2, \"t\": 1795291900.5, \"type\": \"step\", \"step\": 7}\n"
#define WARNED                                                                                     \
    "{\"seq\": 3, \"t\": 1795291920.5, \"type\": \"warning\", \"message\": \"no step\"}\n"
#define AT(second)      "2026-11-21T20:12:" second ".000Z warning: rank 2: "
#define HOST_LINE(host) AT("01") "no step for 20 s on " host ": all ranks of this machine wait\n"

static const char hosts[] = "{\"nodes\": 2, \"hosts\": ["
                            "{\"entry\": \"a\", \"name\": \"a\", \"host\": \"a.net\"},"
                            "{\"entry\": \"b\", \"name\": \"b\", \"problem\": \"does not answer\"},"
                            "{\"entry\": \"c:4\", \"name\": \"c\", \"host\": \"c.net\"},"
                            "{\"entry\": \"d\", \"name\": \"d\", \"host\": \"d.net\"}]}";

static bool look(const char *events, const char *log, bool on_hosts, struct stalled *out)
{
    static const char *const names[] = {"events.jsonl", "stdout.log", "hosts.json"};
    const char *texts[] = {events, log, on_hosts ? hosts : NULL};
    char folder[] = "/tmp/stalled-XXXXXX", path[64];
    struct timespec old[2] = {
        {(time_t)NOW - 10, 0},
        {(time_t)NOW - 10, 0}
    };
    struct error e;

    cr_assert_not_null(mkdtemp(folder));
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (texts[i])
            cr_assert_eq(file_write_unsynced(path, texts[i], strlen(texts[i]), &e), 0);
        if (i == 0)
            utimensat(AT_FDCWD, path, old, 0);
    }
    bool found = stalled_look(folder, 20, NOW, out);
    struct stalled kept;
    if (found) {
        cr_assert_eq(stalled_keep(folder, out, &e), 0);
        cr_assert(stalled_read(folder, &kept));
        cr_assert_str_eq(kept.reason, out->reason);
        cr_assert_str_eq(kept.host, out->host);
        cr_assert_eq(kept.rank, out->rank);
    }
    file_remove_tree(folder, &e);
    return found;
}

Test(stalled, names_the_rank_that_is_stopped)
{
    struct stalled s;
    cr_assert(look(STEP WARNED,
                   HOST_LINE("a.net")
                       AT("02") "no step for 20 s: rank 3 on c.net is stopped by a signal\n",
                   true, &s));
    cr_assert_eq(s.rank, 3);
    cr_assert_str_eq(s.host, "c", "as the job calls it");
    cr_assert_not_null(strstr(s.reason, "rank 3 on c is stopped by a signal"));
}

Test(stalled, names_the_host_that_says_nothing)
{
    struct stalled s;
    cr_assert(look(STEP WARNED, HOST_LINE("a.net"), true, &s));
    cr_assert_str_eq(s.host, "c");
    cr_assert_eq(s.rank, -1);
    cr_assert_not_null(strstr(s.reason, "host c does not answer"));
    cr_assert(look(STEP, HOST_LINE("a.net") HOST_LINE("c.net"), true, &s));
    cr_assert_str_eq(s.host, "");
    cr_assert_not_null(strstr(s.reason, "the network that MPI uses"));
    cr_assert(look(STEP, HOST_LINE("vm"), false, &s), "one machine");
    cr_assert_null(strstr(s.reason, "network"));
}

Test(stalled, leaves_alone_what_gets_on_or_is_only_slow)
{
    struct stalled s;
    static const char late[] =
        "{\"seq\": 4, \"t\": 1795291918.0, \"type\": \"step\", \"step\": 8}\n";
    char events[512];

    cr_assert_not(look(STEP, "", true, &s), "nobody says anything");
    cr_assert_not(
        look(STEP, AT("01") "no step for 20 s: rank 3 on c.net waits for data\n", true, &s));
    cr_assert_not(
        look(STEP, AT("01") "no step for 20 s: rank 3 on c.net still computes\n", true, &s));
    cr_assert_not(look("", HOST_LINE("a.net"), true, &s), "before the first event");
    snprintf(events, sizeof events, "%s%s", STEP, late);
    cr_assert_not(look(events, HOST_LINE("a.net"), true, &s), "a step ended since");
    cr_assert_not(
        look(STEP, "2026-11-21T20:11:30.000Z warning: no step for 20 s on a.net: all\n", true, &s),
        "of an earlier stall");
}
