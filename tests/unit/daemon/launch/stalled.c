#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/file.h"
#include "daemon/launch/stalled.h"

#define NOW  1795291940.0 /* 2026-11-21T20:12:20Z */
#define STEP "{\"seq\": 2, \"t\": 1795291900.5, \"type\": \"step\", \"step\": 7}\n"
#define WARNED                                                                                     \
    "{\"seq\": 3, \"t\": 1795291920.5, \"type\": \"warning\", \"message\": \"no step\"}\n"
#define AT(second)      "2026-11-21T20:12:" second ".000Z warning: rank 2: "
#define HOST_LINE(host) AT("01") "no step for 20 s on " host ": all ranks of this machine wait\n"

#define GETS_ON(host)                                                                              \
    "2026-11-21T20:12:02.000Z info: rank 2: in the evaluation for 20 s on " host                   \
    ": its ranks are at work\n"
#define EXCHANGES(host)                                                                            \
    AT("02")                                                                                       \
    "no step for 20 s on " host ": its ranks still exchange gradients: the network is slow\n"
#define RANK_WAITS(n)                                                                              \
    AT("03") "no progress in the start for 20 s: rank " #n " on a waits for the other ranks\n"

static const char hosts[] = "{\"nodes\": 2, \"hosts\": ["
                            "{\"entry\": \"a\", \"name\": \"a\", \"host\": \"a.net\"},"
                            "{\"entry\": \"b\", \"name\": \"b\", \"problem\": \"does not answer\"},"
                            "{\"entry\": \"c:4\", \"name\": \"c\", \"host\": \"c.net\"},"
                            "{\"entry\": \"d\", \"name\": \"d\", \"host\": \"d.net\"}]}";

static const char job[] = "{\"cluster\": {\"nodes\": 3, \"workers_per_node\": 2}}";
static double launched;

static bool look_for_stall(const char *events, const char *log, bool on_hosts, struct stalled *out)
{
    static const char *const names[] = {"events.jsonl", "stdout.log", "hosts.json"};
    const char *texts[] = {events, log, on_hosts ? hosts : NULL};
    char run[] = "/tmp/stalled-XXXXXX", folder[64], path[96];
    struct timespec old[2] = {
        {(time_t)NOW - 10, 0},
        {(time_t)NOW - 10, 0}
    };
    struct error e;

    cr_assert_not_null(mkdtemp(run));
    snprintf(path, sizeof path, "%s/job.json", run);
    cr_assert_eq(file_write_unsynced(path, job, strlen(job), &e), 0);
    snprintf(folder, sizeof folder, "%s/attempt-1", run);
    cr_assert_eq(mkdir(folder, 0755), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (texts[i])
            cr_assert_eq(file_write_unsynced(path, texts[i], strlen(texts[i]), &e), 0);
        if (texts[i])
            utimensat(AT_FDCWD, path, old, 0);
    }
    struct stall_look at = {.attempt_dir = folder, .stall_seconds = 20, .launched_at = launched};
    bool found = stalled_look(&at, NOW, out);
    struct stalled kept;
    if (found) {
        cr_assert_eq(stalled_keep(folder, out, &e), 0);
        cr_assert(stalled_read(folder, &kept));
        cr_assert_str_eq(kept.reason, out->reason);
        cr_assert_str_eq(kept.host, out->host);
        cr_assert_eq(kept.rank, out->rank);
        cr_assert_eq(kept.phase, out->phase);
    }
    file_remove_tree(run, &e);
    return found;
}

Test(stalled, names_the_rank_that_is_stopped)
{
    struct stalled s;
    cr_assert(look_for_stall(
        STEP WARNED,
        HOST_LINE("a.net") AT("02") "no step for 20 s: rank 3 on c.net is stopped by a signal\n",
        true, &s));
    cr_assert_eq(s.rank, 3);
    cr_assert_str_eq(s.host, "c", "as the job calls it");
    cr_assert_not_null(strstr(s.reason, "rank 3 on c is stopped by a signal"));
}

Test(stalled, names_the_host_that_does_not_report)
{
    struct stalled s;
    cr_assert(look_for_stall(STEP WARNED, HOST_LINE("a.net"), true, &s));
    cr_assert_str_eq(s.host, "c");
    cr_assert_eq(s.rank, -1);
    cr_assert_not_null(strstr(s.reason, "host c does not answer"));
    cr_assert(look_for_stall(STEP, HOST_LINE("a.net") HOST_LINE("c.net"), true, &s));
    cr_assert_str_eq(s.host, "");
    cr_assert_not_null(strstr(s.reason, "the network that MPI uses"));
    cr_assert(look_for_stall(STEP, HOST_LINE("vm"), false, &s), "one machine");
    cr_assert_null(strstr(s.reason, "network"));
}

Test(stalled, progress_and_slowness_are_not_stalls)
{
    struct stalled s;
    static const char late[] =
        "{\"seq\": 4, \"t\": 1795291918.0, \"type\": \"step\", \"step\": 8}\n";
    char events[512];

    cr_assert_not(look_for_stall(STEP, "", true, &s), "nobody says anything");
    cr_assert_not(look_for_stall(
        STEP, AT("01") "no step for 20 s: rank 3 on c.net waits for data\n", true, &s));
    cr_assert_not(look_for_stall(
        STEP, AT("01") "no step for 20 s: rank 3 on c.net still computes\n", true, &s));
    cr_assert_not(look_for_stall("", HOST_LINE("a.net"), true, &s), "nobody knows since when");
    cr_assert_not(look_for_stall(STEP, HOST_LINE("a.net") GETS_ON("c.net"), true, &s),
                  "a long phase in which others wait");
    cr_assert_not(look_for_stall(STEP, HOST_LINE("a.net") EXCHANGES("c.net"), true, &s),
                  "a step whose gradients are on their way");
    snprintf(events, sizeof events, "%s%s", STEP, late);
    cr_assert_not(look_for_stall(events, HOST_LINE("a.net"), true, &s), "a step ended since");
    cr_assert_not(
        look_for_stall(STEP, "2026-11-21T20:11:30.000Z warning: no step for 20 s on a.net: all\n",
                       true, &s),
        "of an earlier stall");
}

Test(stalled, names_the_phase)
{
    struct stalled s;

    cr_assert(
        look_for_stall(STEP,
                       AT("02") "no progress in the checkpoint for 20 s: rank 0 on a.net gets no "
                                "processor time\n",
                       true, &s));
    cr_assert_eq(s.phase, STALL_IN_CHECKPOINT);
    cr_assert_not_null(strstr(s.reason, "rank 0 on a gets no processor time: no progress in the "
                                        "checkpoint for "));
    /* with mpirun's --tag-output */
    cr_assert(look_for_stall(
        STEP, "[1,2]<stderr>:" HOST_LINE("a.net") "[1,4]<stderr>:" HOST_LINE("c.net"), true, &s));
    cr_assert_str_eq(s.host, "");
}

Test(stalled, the_newest_report_of_a_host_counts)
{
    struct stalled s;

    cr_assert(
        look_for_stall(STEP,
                       HOST_LINE("a.net") GETS_ON("c.net")
                           AT("05") "no progress in the "
                                    "evaluation for 23 s: rank 2 on c.net is stopped by a signal\n",
                       true, &s));
    cr_assert_eq(s.rank, 2);
    cr_assert_eq(s.phase, STALL_IN_EVALUATION);
}

Test(stalled, a_rank_that_does_not_come_to_the_start_is_named)
{
    struct stalled s;

    launched = NOW - 40;
    cr_assert(look_for_stall(
        NULL, RANK_WAITS(0) RANK_WAITS(1) RANK_WAITS(2) RANK_WAITS(4) RANK_WAITS(5), true, &s));
    cr_assert_eq(s.rank, 3);
    cr_assert_eq(s.phase, STALL_IN_START);
    cr_assert_str_eq(s.host, "c", "two ranks a node, the second of those taken");
    cr_assert_not(look_for_stall(NULL, "", true, &s));
    launched = NOW - 10;
    cr_assert_not(look_for_stall(NULL, RANK_WAITS(0), true, &s));
}
