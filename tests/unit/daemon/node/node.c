/* Judging nodes: by their peers, by their own history, by what a report says is wrong. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/node/node.h"
#include "tests/unit/daemon/store.h"

static const struct node_limits limits = {0.15, 0.3};
static const struct node_figures steady[] = {
    {100, 20, 3},
    {102, 21, 3},
    {98,  19, 3}
};
static char reason[NODE_REASON_BYTES];

static enum node_verdict is_among(double gflops, double memory, size_t own, size_t others)
{
    struct node_figures mine = {gflops, memory, 3};
    struct node_peers peers = {steady, own, steady, others, "CPU X"};
    return node_judge_speed(&mine, &peers, &limits, reason);
}

Test(node_judge, a_node_without_peers_and_history_is_fine)
{
    cr_assert_eq(is_among(1, 1, 0, 0), NODE_FINE);
    cr_assert_str_eq(reason, "");
    cr_assert_eq(is_among(1, 1, 2, 0), NODE_FINE, "two checks are no history");
    cr_assert_eq(is_among(1, 1, 0, 2), NODE_FINE, "two others are no yardstick");
    cr_assert_eq(is_among(1, 1, 2, 2), NODE_FINE);
}

Test(node_judge, a_node_is_compared_with_the_median_of_the_others)
{
    cr_assert_eq(is_among(85.1, 20, 0, 3), NODE_FINE);
    cr_assert_eq(is_among(84.9, 20, 0, 3), NODE_SLOW);
    cr_assert_str_eq(reason, "SGEMM is 15 % slower than the median of 3 others of its kind (CPU "
                             "X): 84.9, not 100.0 GFLOP/s");
    cr_assert_eq(is_among(70, 20, 0, 3), NODE_DRAIN);
    cr_assert_eq(is_among(150, 30, 3, 3), NODE_FINE, "faster is fine");
}

Test(node_judge, a_node_is_compared_with_its_history_and_named_once)
{
    cr_assert_eq(is_among(60, 20, 3, 0), NODE_DRAIN);
    cr_assert_str_eq(reason, "SGEMM is 40 % slower than its own median of 3 earlier checks: 60.0, "
                             "not 100.0 GFLOP/s");
    cr_assert_eq(is_among(60, 20, 3, 3), NODE_DRAIN);
    cr_assert_not(strstr(reason, "its own"));
}

Test(node_judge, slow_memory_never_drains)
{
    cr_assert_eq(is_among(100, 5, 0, 3), NODE_SLOW);
    cr_assert_str_eq(reason, "memory is 75 % slower than the median of 3 others of its kind (CPU "
                             "X): 5.0, not 20.0 GB/s");
    cr_assert_eq(is_among(60, 5, 0, 3), NODE_DRAIN);
    cr_assert(strstr(reason, "SGEMM") && strstr(reason, "; memory"), "both are said: %s", reason);
}

Test(node_judge, without_a_limit_no_node_is_drained)
{
    struct node_limits never = {0.15, 0};
    struct node_figures mine = {10, 20, 3};
    struct node_peers peers = {steady, 3, steady, 3, "CPU X"};

    cr_assert_eq(node_judge_speed(&mine, &peers, &never, reason), NODE_SLOW);
}

/* ---- reports, with a store */

TestSuite(node_report, .init = make_store, .fini = remove_store);

/* A prolog's report of `name` at t, with more keys. */
static struct node_judged report_node(const char *name, double t, double gflops, const char *more)
{
    struct problems problems = {0};
    struct node_judged judged;
    json_t *extra = json_loads(more, 0, NULL);
    json_t *json = json_pack("{s:s, s:s, s:s, s:i, s:f, s:s}", "kind", "CPU X", "phase", "prolog",
                             "outcome", "fine", "cores", 2, "t", t, "partition", "p");
    cr_assert_not_null(extra);
    if (gflops > 0)
        json_object_set_new(json, "gflops", json_real(gflops));
    json_object_update(json, extra);
    cr_assert_eq(node_report(store, name, json, &limits, 1e9, &judged, &problems, &e), 0, "%s",
                 e.text);
    cr_assert_eq(problems.count, 0, "%s", problems.count ? problems.items[0].message : "");
    json_decref(json);
    json_decref(extra);
    return judged;
}

static struct store_node get_node(const char *name, struct store_nodes *nodes)
{
    cr_assert_eq(store_node_get(store, name, nodes, &e), 0);
    cr_assert_eq(nodes->count, 1, "there is no node %s", name);
    return nodes->items[0];
}

Test(node_report, a_slow_node_is_compared_with_its_kind)
{
    struct store_nodes nodes;

    cr_assert_eq(report_node("n1", 1e9 - 9, 100, "{}").verdict, NODE_FINE);
    cr_assert_eq(report_node("n2", 1e9 - 8, 100, "{}").verdict, NODE_FINE);
    cr_assert_eq(report_node("n4", 1e9 - 8, 100, "{}").verdict, NODE_FINE);
    cr_assert_eq(report_node("other", 1e9 - 7, 500, "{\"kind\": \"CPU Y\"}").verdict, NODE_FINE);
    struct node_judged slow = report_node("n3", 1e9 - 5, 80, "{}");
    cr_assert_eq(slow.verdict, NODE_SLOW);
    cr_assert(strstr(slow.reason, "20 % slower than the median of 3 others"));
    struct store_node n3 = get_node("n3", &nodes);
    cr_assert_eq(n3.verdict, NODE_SLOW);
    cr_assert_str_eq(n3.reason, slow.reason);
    store_nodes_clear(&nodes);
}

static json_t *history_of(const char *name)
{
    json_t *nodes = json_pack("{s:{s:[]}}", name, "history");

    cr_assert_eq(store_node_history(store, name, name, STORE_NODE_CHECKS + 20, nodes, &e), 0, "%s",
                 e.text);
    json_t *history = json_incref(json_object_get(json_object_get(nodes, name), "history"));
    json_decref(nodes);
    return history;
}

Test(node_report, under_load_a_speed_is_marked_and_not_judged)
{
    struct store_nodes nodes;

    for (int i = 1; i <= 3; i++)
        report_node((const char *[]){"", "n1", "n2", "n3"}[i], 1e9 - 90 + i, 100, "{}");
    struct node_judged loaded = report_node("n4", 1e9 - 9, 10, "{\"load\": 2}");
    cr_assert_eq(loaded.verdict, NODE_UNKNOWN, "neither drained nor fine");
    cr_assert_str_eq(loaded.reason, "its speed was not judged: 2 other threads computing when it "
                                    "was checked");
    struct store_node n4 = get_node("n4", &nodes);
    cr_assert_eq(n4.verdict, NODE_UNKNOWN);
    cr_assert_eq(n4.load, 2);
    cr_assert_str_eq(n4.reason, loaded.reason);
    store_nodes_clear(&nodes);
    json_t *history = history_of("n4"), *check = json_array_get(history, 0);
    cr_assert_eq(json_integer_value(json_object_get(check, "load")), 2);
    cr_assert_str_eq(json_string_value(json_object_get(check, "verdict")), "unknown");
    json_decref(history);
    cr_assert_eq(report_node("n4", 1e9 - 8, 100, "{}").verdict, NODE_FINE, "once it is idle");
    cr_assert_eq(get_node("n4", &nodes).load, 0);
    store_nodes_clear(&nodes);
}

Test(node_report, a_check_under_load_is_not_compared_with)
{
    for (int i = 0; i < 5; i++)
        report_node("n1", 1e9 - 90 + i, 10, "{\"load\": 1}");
    cr_assert_eq(report_node("n1", 1e9 - 80, 100, "{}").verdict, NODE_FINE);
    report_node("n2", 1e9 - 79, 100, "{}");
    report_node("n3", 1e9 - 78, 500, "{\"load\": 1}");
    report_node("n4", 1e9 - 77, 500, "{\"load\": 1}");
    cr_assert_eq(report_node("n5", 1e9 - 76, 10, "{}").verdict, NODE_FINE,
                 "only two others were measured");
}

Test(node_report, a_check_under_load_keeps_the_earlier_figures)
{
    struct store_nodes nodes;
    static const char *const names[] = {"n1", "n2", "n3", "n4"};

    for (int i = 0; i < 4; i++)
        report_node(names[i], 1e9 - 90 + i, i < 3 ? 100 : 80, "{}");
    for (int i = 0; i < 4; i++)
        cr_assert_eq(report_node(names[i], 1e9 - 50 + i, 10, "{\"load\": 1}").verdict,
                     NODE_UNKNOWN);
    cr_assert_eq(report_node("n1", 1e9 - 40, 0, "{\"phase\": \"epilog\"}").verdict, NODE_FINE);
    struct store_node n1 = get_node("n1", &nodes);
    cr_assert_eq(n1.verdict, NODE_FINE);
    cr_assert_eq(n1.figures.gflops, 100);
    cr_assert_eq(n1.load, 1);
    cr_assert(strstr(n1.reason, "1 other thread computing"), "%s", n1.reason);
    store_nodes_clear(&nodes);
    struct store_node n4 = get_node("n4", &nodes);
    cr_assert_eq(n4.verdict, NODE_SLOW);
    cr_assert_eq(n4.figures.gflops, 80);
    cr_assert(strstr(n4.reason, "20 % slower"), "%s", n4.reason);
    store_nodes_clear(&nodes);
}

Test(node_report, an_epilog_does_not_repeat_the_report_of_the_prolog)
{
    static const char *const names[] = {"n1", "n2", "n3"};

    for (int i = 0; i < 3; i++)
        report_node(names[i], 1e9 - 90 + i, 100, "{}");
    struct node_judged judged = report_node("n4", 1e9 - 9, 80, "{}");
    cr_assert_eq(judged.known, 0, "by the prolog");
    judged = report_node("n4", 1e9 - 8, 0, "{\"phase\": \"epilog\"}");
    cr_assert_eq(judged.verdict, NODE_SLOW);
    cr_assert_str_eq(judged.reason + judged.known, "", "the epilog has no news");
    judged = report_node("n4", 1e9 - 7, 0, "{\"phase\": \"epilog\", \"reason\": \"ended 2\"}");
    cr_assert_str_eq(judged.reason + judged.known, "; ended 2", "but of its own");
    judged = report_node("n5", 1e9 - 6, 80, "{\"load\": 1}");
    cr_assert_str_eq(judged.reason + judged.known, "", "a busy node is no fault");
}

Test(node_report, a_late_report_only_adds_to_the_history)
{
    struct store_nodes nodes;

    report_node("n1", 1e9 - 10, 100, "{}");
    report_node("n1", 1e9 - 100, 50, "{\"late\": true}");
    cr_assert_eq(get_node("n1", &nodes).figures.gflops, 100);
    store_nodes_clear(&nodes);
    json_t *history = history_of("n1");
    cr_assert_eq(json_array_size(history), 2);
    json_decref(history);
}

Test(node_report, an_epilog_tells_what_it_did_and_leaves_the_figures)
{
    struct store_nodes nodes;

    report_node("n1", 1e9 - 3, 100, "{}");
    struct node_judged judged = report_node(
        "n1", 1e9 - 2, 0, "{\"phase\": \"epilog\", \"cores\": null, \"reason\": \"ended 2\"}");
    cr_assert_eq(judged.verdict, NODE_FINE);
    cr_assert_str_eq(judged.reason, "ended 2");
    struct store_node n1 = get_node("n1", &nodes);
    cr_assert_eq(n1.cores, 2);
    cr_assert_eq(n1.figures.gflops, 100);
    cr_assert(strstr(n1.report, "prolog"));
    store_nodes_clear(&nodes);
    report_node("n3", 1e9 - 2, 100, "{}");
    report_node("n4", 1e9 - 2, 100, "{}");
    cr_assert_eq(report_node("n2", 1e9 - 1, 50, "{}").verdict, NODE_DRAIN, "n1 is still its peer");
    cr_assert_str_eq(report_node("n1", 1e9, 0, "{\"phase\": \"epilog\"}").reason, "", "said once");
}

Test(node_report, faults_of_the_node_drain_it)
{
    static const char checks[] = "{\"outcome\": \"scratch\", \"checks\": [{\"check\": \"scratch\", "
                                 "\"ok\": false, \"found\": "
                                 "\"cannot write in /scratch: No space left\", \"advice\": \"\"}]}";
    struct node_judged judged = report_node("n1", 1e9 - 1, 100, checks);

    cr_assert_eq(judged.verdict, NODE_DRAIN);
    cr_assert_str_eq(judged.reason, "scratch: cannot write in /scratch: No space left");
    cr_assert_eq(report_node("n1", 1e9, 0, "{\"phase\": \"epilog\"}").verdict, NODE_DRAIN,
                 "an epilog that measured nothing leaves the verdict");
    cr_assert_eq(report_node("n1", 1e9, 100, "{}").verdict, NODE_FINE, "until it is checked again");
}

Test(node_report, missing_data_drain_only_if_another_node_sees_them)
{
    static const char missing[] = "{\"outcome\": \"data\", \"job\": 7, \"data\": [{\"path\": "
                                  "\"/d\", \"ok\": false}]}";
    struct node_judged judged = report_node("n1", 1e9 - 3, 100, missing);

    cr_assert_eq(judged.verdict, NODE_FINE);
    cr_assert(strstr(judged.reason, "job 7 was rejected"), "%s", judged.reason);
    report_node("n2", 1e9 - 2, 100, "{\"data\": [{\"path\": \"/d\", \"ok\": true}]}");
    judged = report_node("n1", 1e9 - 1, 100, missing);
    cr_assert_eq(judged.verdict, NODE_DRAIN);
    cr_assert(strstr(judged.reason, "n2 has them"), "%s", judged.reason);
}

Test(node_report, data_seen_by_another_node_count_for_a_day)
{
    static const char missing[] = "{\"outcome\": \"data\", \"job\": 7, \"data\": [{\"path\": "
                                  "\"/d\", \"ok\": false}]}";
    static const char sees[] = "{\"data\": [7, {\"path\": 7, \"ok\": true}, {\"path\": \"/d\", "
                               "\"ok\": true}, {\"path\": \"/d\", \"ok\": true}]}";

    report_node("n1", 1e9 - 9e4, 100, sees);
    cr_assert_eq(report_node("n2", 1e9 - 9, 100, missing).verdict, NODE_FINE, "a day ago");
    report_node("n1", 1e9 - 8, 100, sees);
    cr_assert_eq(report_node("n2", 1e9 - 7, 100, missing).verdict, NODE_DRAIN);
    report_node("n1", 1e9 - 6, 0, "{\"phase\": \"epilog\"}");
    cr_assert_eq(report_node("n2", 1e9 - 5, 100, missing).verdict, NODE_DRAIN);
    report_node("n2", 1e9 - 5, 100, sees);
    cr_assert_eq(report_node("n2", 1e9 - 4, 100, missing).verdict, NODE_DRAIN);
    report_node("n1", 1e9 - 3, 100, "{}");
    cr_assert_eq(report_node("n2", 1e9 - 2, 100, missing).verdict, NODE_FINE,
                 "neither itself nor what n1 saw before");
}

Test(node_report, many_others_are_judged_by_the_newest_of_them)
{
    char name[32];

    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "n%d", i);
        report_node(name, 1e9 - 1000 + i, i < 150 ? 10 : 100, "{}");
    }
    struct node_judged slow = report_node("n7", 1e9 - 9, 80, "{}");
    cr_assert(strstr(slow.reason, "20 % slower than the median of 128 others"), "%s", slow.reason);
}

Test(node_report, clocks_and_versions_are_named)
{
    struct node_judged judged = report_node("n1", 1e9 - 90, 100, "{\"version\": \"0.0.1\"}");

    cr_assert_eq(judged.verdict, NODE_FINE);
    cr_assert(strstr(judged.reason, "clock is 90 s behind"), "%s", judged.reason);
    cr_assert(strstr(judged.reason, "train-worker is 0.0.1"), "%s", judged.reason);
}

Test(node_report, invalid_reports_are_refused_and_not_stored)
{
    struct problems problems = {0};
    struct node_judged judged;
    struct store_nodes nodes;
    json_t *json =
        json_pack("{s:s, s:i, s:s, s:i}", "phase", "x", "kind", 1, "outcome", "bad", "gflops", -1);

    cr_assert_eq(node_report(store, "n1", json, &limits, 1e9, &judged, &problems, &e), 0);
    cr_assert_eq(problems.count, 5, "kind, t, phase, outcome, gflops");
    problems_clear(&problems);
    json_decref(json);
    cr_assert_eq(store_node_list(store, "", -1, &nodes, &e), 0);
    cr_assert_eq(nodes.count, 0);
}

Test(node_report, history_is_bounded)
{
    for (int i = 0; i < STORE_NODE_CHECKS + 20; i++)
        report_node("n1", 1e9 - 1000 + i, 100, "{}");
    json_t *history = history_of("n1");
    cr_assert_eq(json_array_size(history), STORE_NODE_CHECKS);
    cr_assert_float_eq(json_number_value(json_object_get(json_array_get(history, 0), "t")),
                       1e9 - 1000 + STORE_NODE_CHECKS + 19, 0.1);
    json_decref(history);
}

/* ---- plans */

static double times_for(enum job_launcher launcher, const char *partition, char *name)
{
    struct job_spec spec = {0};
    double times;

    spec.cluster.launcher = launcher;
    spec.cluster.partition = (char *)partition;
    cr_assert_eq(node_slowest(store, &spec, 1e9, &times, name, &e), 0);
    return times;
}

Test(node_report, a_plan_assumes_the_slowest_node_it_may_get)
{
    char name[NODE_NAME_BYTES];

    cr_assert_eq(times_for(JOB_LAUNCHER_SLURM, NULL, name), 1);
    report_node("n1", 1e9 - 9, 100, "{}");
    report_node("n2", 1e9 - 8, 100, "{}");
    report_node("n5", 1e9 - 8, 100, "{}");
    report_node("n3", 1e9 - 7, 80, "{}");
    report_node("n4", 1e9 - 6, 40, "{}");
    cr_assert_float_eq(times_for(JOB_LAUNCHER_SLURM, NULL, name), 1.25, 1e-9,
                       "n4 is drained and will not be used");
    cr_assert_str_eq(name, "n3");
    cr_assert_float_eq(times_for(JOB_LAUNCHER_SLURM, "p", name), 1.25, 1e-9);
    cr_assert_eq(times_for(JOB_LAUNCHER_SLURM, "q", name), 1, "another partition");
    cr_assert_eq(times_for(JOB_LAUNCHER_LOCAL, NULL, name), 1, "this machine is none of them");
}

Test(node_names, are_harmless)
{
    static const char *const good[] = {"n1", "gpu-7.cluster_a", "A"};
    static const char *const bad[] = {
        "",       "-x",    ".x",
        "a b",    "a;b",   "a/b",
        "a\nb",   "ALL",   "all",
        "n[1-2]", "n1,n2", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    char own[NODE_NAME_BYTES];

    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        cr_assert(node_name_is_valid(good[i]), "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_not(node_name_is_valid(bad[i]), "%s", bad[i]);
    cr_assert(node_name_is_valid(node_own_name(own)));
}

Test(node_tell, passes_name_and_reason_and_has_two_seconds)
{
    int status = -1;

    for (int i = 0; status && i < 100; i++) /* on a busy machine two seconds may not do */
        status = node_tell("/bin/true", "n1", "$(x) \"y\"", &e);
    cr_assert_eq(status, 0, "%s", e.text);
    cr_assert_lt(node_tell("/bin/false", "n1", "r", &e), 0);
    cr_assert_lt(node_tell("/proc/none", "n1", "r", &e), 0);
    cr_assert_eq(e.code, ERR_NOT_FOUND);
}

static int check_node(const char *name, double t)
{
    struct store_node_check check = {
        .node = name,
        .kind = "CPU X",
        .phase = "prolog",
        .report = "{}",
        .t = t,
        .figures = {NAN, NAN, NAN},
        .verdict = NODE_FINE
    };
    return store_node_check(store, &check, t, &e);
}

Test(node_report, the_number_of_nodes_is_bounded_and_old_ones_are_replaced)
{
    struct store_nodes nodes;
    char name[32];
    double now = 1e9, later = now + 8 * 86400;

    for (int i = 0; i < STORE_NODES_MAX; i++) {
        snprintf(name, sizeof name, "n%d", i);
        cr_assert_eq(check_node(name, now + i), 0, "%s", e.text);
    }
    cr_assert_eq(check_node("new", now), -ERR_CONFLICT);
    cr_assert(strstr(e.text, "4096 other nodes have reported"), "%s", e.text);
    cr_assert_eq(check_node("n7", now + 9e4), 0, "one that is known goes on reporting");
    cr_assert_eq(check_node("new", later), 0, "%s", e.text);
    cr_assert_eq(store_node_list(store, "", -1, &nodes, &e), 0);
    cr_assert_eq(nodes.count, STORE_NODES_MAX);
    for (size_t i = 0; i < nodes.count; i++)
        cr_assert_str_neq(nodes.items[i].name, "n0", "the oldest is forgotten");
    store_nodes_clear(&nodes);
}

/* Seconds of this thread. */
static double node_busy(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Reports of nodes n0, n1, ... as a prolog's, which do not see /d and are compared with all others
 * of their kind: seconds each. */
static double node_cost(int first, int last, bool blind)
{
    json_t *more =
        json_pack("{s:s, s:[{s:s, s:b}, {s:s, s:b}]}", "outcome", blind ? "data" : "fine", "data",
                  "path", "/d", "ok", 0, "path", "/e", "ok", 1);
    json_t *checks = json_array();
    double began = node_busy();
    char name[32];

    for (int i = 0; i < 20; i++)
        json_array_append_new(checks, json_pack("{s:s, s:b, s:s}", "check", "one of twenty", "ok",
                                                1, "found", "what is found in words"));
    json_object_set_new(more, "checks", checks);
    char *text = json_dumps(more, 0);
    for (int i = first; i < last; i++) {
        snprintf(name, sizeof name, "n%d", i);
        report_node(name, 1e9 - 9, 100, text);
    }
    free(text);
    json_decref(more);
    return (node_busy() - began) / (last - first);
}

static double node_least_cost(int first, int last, bool blind)
{
    double least = INFINITY;

    for (int i = 0; i < 5; i++)
        least = fmin(least, node_cost(first, last, blind));
    return least;
}

/* A job that starts on all of them has each report once. */
Test(node_report, the_cost_of_a_report_does_not_grow_with_the_nodes)
{
    node_cost(0, 64, false);
    double few = node_least_cost(0, 64, false), few_blind = node_least_cost(0, 64, true);
    node_cost(64, 1024, false);
    double many = node_least_cost(0, 64, false), many_blind = node_least_cost(0, 64, true);

    cr_assert_lt(many, 3 * few, "%.0f us with 64 nodes, %.0f us with 1024", 1e6 * few, 1e6 * many);
    cr_assert_lt(many_blind, 3 * few_blind,
                 "without the data: %.0f us with 64 nodes, %.0f us "
                 "with 1024",
                 1e6 * few_blind, 1e6 * many_blind);
}
