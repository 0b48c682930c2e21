#include "daemon/node/node_self.h"

#include <math.h>
#include <stdlib.h>

#include "common/assert_always.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/system/spawn.h"
#include "common/xalloc.h"

#define LOOK_SECONDS   0.1  /* while a check is running */
#define LONGEST        60.0 /* seconds that a check may take; usually one on an idle machine */
#define AGAIN_SECONDS  86400.0
#define FAILED_SECONDS 3600.0 /* before a retry */
#define REPORT_BYTES   65536

#define NODE_SELF_MAGIC 0x0de5e1f0u

struct node_self {
    unsigned magic;
    struct store *store;
    struct job_manager *jobs;
    const char *worker;
    double idle_since; /* monotonic, like the other times */
    double again;      /* seconds before a check made under load is repeated */
    double next_at;
    struct spawn check;
    double began;
};

struct node_self *node_self_create(struct store *s, struct job_manager *m, const char *worker)
{
    struct node_self *n = xmalloc(sizeof *n);

    *n = (struct node_self){.magic = NODE_SELF_MAGIC,
                            .store = s,
                            .jobs = m,
                            .worker = worker,
                            .idle_since = clock_monotonic(),
                            .check = SPAWN_NONE};
    return n;
}

static void node_self_begin(struct node_self *n, double now)
{
    char *const argv[] = {(char *)n->worker, (char *)"--self-check", (char *)"--json", NULL};
    struct spawn_request r = {
        .argv = argv, .stream = {SPAWN_COLLECTED, SPAWN_OURS},
             .limit_bytes = REPORT_BYTES
    };
    struct error e;

    n->next_at = now + FAILED_SECONDS;
    n->began = now;
    if (spawn_begin(&r, &n->check, &e))
        log_warning("cannot check this machine: %s", e.text);
}

/* Stores the check; sets *loaded if the machine was busy. */
static bool node_self_store(struct node_self *n, const struct node_limits *limits, const char *text,
                            bool *loaded)
{
    char name[NODE_NAME_BYTES];
    struct problems problems = {0};
    struct node_judged judged;
    struct error e = {0};
    json_t *report = json_loads(text ? text : "", 0, NULL);

    if (!report) {
        log_warning("the check of this machine printed no report");
        return false;
    }
    json_object_set_new(report, "phase", json_string("self"));
    *loaded = json_number_value(json_object_get(report, "load")) > 0;
    int status = node_report(n->store, node_own_name(name), report, limits, clock_now(), &judged,
                             &problems, &e);
    json_decref(report);
    if (status || problems.count)
        log_warning("cannot store the check of this machine: %s",
                    status ? e.text : problems.items[0].message);
    bool stored = !status && !problems.count;
    problems_clear(&problems);
    return stored;
}

/* Returns whether the check has ended. One made under load is repeated, at growing intervals. */
static bool node_self_poll(struct node_self *n, const struct node_self_settings *settings,
                           double now)
{
    bool loaded = false;

    if (!spawn_look(&n->check, 0))
        return false;
    if (node_self_store(n, &settings->limits, n->check.text[SPAWN_OUT].data, &loaded)) {
        n->again = loaded ? fmin(fmax(2 * n->again, settings->idle_seconds), FAILED_SECONDS) : 0;
        n->next_at = now + (loaded ? n->again : AGAIN_SECONDS);
    }
    spawn_clear(&n->check);
    return true;
}

double node_self_round(struct node_self *n, const struct node_self_settings *settings)
{
    double now = clock_monotonic();
    struct job_slots slots;

    assert_object(n, NODE_SELF_MAGIC);
    job_manager_slots(n->jobs, &slots);
    if (slots.used) {
        if (n->check.pid)
            n->next_at = now; /* repeat the check */
        spawn_clear(&n->check);
        n->idle_since = now;
        return INFINITY;
    }
    if (n->check.pid) {
        if (!node_self_poll(n, settings, now) && now - n->began > LONGEST) {
            log_warning(
                "the check of this machine did not finish within %.0f seconds: the next one is in "
                "an hour",
                LONGEST);
            spawn_clear(&n->check);
        }
        return n->check.pid ? LOOK_SECONDS : fmax(n->next_at - now, 1);
    }
    if (settings->idle_seconds <= 0)
        return INFINITY;
    double due = fmax(n->idle_since + settings->idle_seconds, n->next_at);
    if (now < due)
        return due - now;
    node_self_begin(n, now);
    return n->check.pid ? LOOK_SECONDS : FAILED_SECONDS;
}

void node_self_destroy(struct node_self *n)
{
    if (n)
        spawn_clear(&n->check);
    free(n);
}
