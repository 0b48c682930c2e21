#include "daemon/node/node_self.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"

#define LOOK_SECONDS   0.1 /* while the check runs */
#define LONGEST        20.0
#define AGAIN_SECONDS  86400.0
#define FAILED_SECONDS 3600.0 /* before the next try */
#define REPORT_BYTES   65536  /* what a pipe holds, so that the worker never waits for us */

struct node_self {
    struct store *store;
    struct job_manager *jobs;
    double idle_since; /* monotonic, as are the others */
    double next_at;
    pid_t pid; /* of the check; 0: none runs */
    int output;
    double began;
};

struct node_self *node_self_create(struct store *s, struct job_manager *m)
{
    struct node_self *n = calloc(1, sizeof *n);

    if (n)
        *n = (struct node_self){
            .store = s, .jobs = m, .idle_since = clock_monotonic(), .output = -1};
    return n;
}

static void end(struct node_self *n, int signal_number)
{
    if (n->pid && signal_number)
        kill(n->pid, signal_number);
    if (n->pid && signal_number)
        waitpid(n->pid, NULL, 0);
    if (n->output >= 0)
        close(n->output);
    n->pid = 0;
    n->output = -1;
}

static void begin(struct node_self *n, const char *worker, double now)
{
    char *argv[] = {(char *)worker, (char *)"--self-check", (char *)"--json", NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];

    n->next_at = now + FAILED_SECONDS;
    if (pipe2(ends, O_CLOEXEC))
        return;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    int failed = posix_spawnp(&n->pid, worker, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    n->output = ends[0];
    n->began = now;
    if (!failed)
        return;
    n->pid = 0;
    end(n, 0);
    log_warning("this machine cannot be checked: %s: %s", worker, strerror(failed));
}

static void take(struct node_self *n, const struct node_limits *limits, char *text)
{
    char name[NODE_NAME_BYTES];
    struct problems problems = {0};
    struct node_judged judged;
    struct error e = {0};
    json_t *report = json_loads(text, 0, NULL);

    if (!report) {
        log_warning("this machine's check gave no report");
        return;
    }
    json_object_set_new(report, "phase", json_string("self"));
    int status = node_report(n->store, node_own_name(name), report, limits, clock_now(), &judged,
                             &problems, &e);
    json_decref(report);
    if (status || problems.count)
        log_warning("this machine's check was not stored: %s",
                    status ? e.text : problems.items[0].message);
    problems_clear(&problems);
}

/* True: the check has ended. */
static bool look(struct node_self *n, const struct node_limits *limits, double now)
{
    char text[REPORT_BYTES];
    size_t got = 0;
    ssize_t more = 1;

    if (waitpid(n->pid, NULL, WNOHANG) == 0)
        return false;
    while (got < sizeof text - 1 && (more = read(n->output, text + got, sizeof text - 1 - got)) > 0)
        got += (size_t)more;
    text[got] = '\0';
    end(n, 0);
    n->next_at = now + AGAIN_SECONDS;
    take(n, limits, text);
    return true;
}

double node_self_round(struct node_self *n, const struct node_self_settings *settings)
{
    double now = clock_monotonic();
    struct job_slots slots;

    job_manager_slots(n->jobs, &slots);
    if (slots.used) {
        if (n->pid)
            n->next_at = now; /* it is made up for */
        end(n, SIGKILL);
        n->idle_since = now;
        return INFINITY;
    }
    if (n->pid) {
        if (!look(n, &settings->limits, now) && now - n->began > LONGEST)
            end(n, SIGKILL);
        return n->pid ? LOOK_SECONDS : fmax(n->next_at - now, 1);
    }
    if (settings->idle_seconds <= 0)
        return INFINITY;
    double due = fmax(n->idle_since + settings->idle_seconds, n->next_at);
    if (now < due)
        return due - now;
    begin(n, settings->worker, now);
    return n->pid ? LOOK_SECONDS : FAILED_SECONDS;
}

void node_self_destroy(struct node_self *n)
{
    if (n)
        end(n, SIGKILL);
    free(n);
}
