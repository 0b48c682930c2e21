#include "daemon/launch/stalled.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/event.h"
#include "common/file.h"
#include "common/json.h"
#include "common/stall_line.h"
#include "daemon/launch/hosts.h"

#define KEPT "stalled.json"
#define LISTEN_SECONDS                                                                             \
    4 /* all watchers have spoken: they look twice a second, and judge after 3 s */
#define HOSTS_MAX 64

/* ---------------------------------------------------------------- how long */

/* When the run last got on: the time of its last event that is no warning. 0: there is none. */
static double last_progress(const char *events)
{
    double last = 0;

    for (const char *line = events; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        char type[32];
        double t;
        if (sscanf(line, "{\"seq\": %*d, \"t\": %lf, \"type\": \"%31[a-z_]\"", &t, type) == 2 &&
            event_type_of(type) != EVENT_WARNING)
            last = t;
    }
    return last;
}

static bool was_written_within(const char *attempt_dir, const char *name, double seconds,
                               double now)
{
    char path[PATH_MAX];
    struct stat st;

    return (size_t)snprintf(path, sizeof path, "%s/%s", attempt_dir, name) >= sizeof path ||
           stat(path, &st) || now - (double)st.st_mtime < seconds;
}

/* ---------------------------------------------------------------- what the watchers say */

struct said {
    bool stopped;               /* a rank does not run */
    bool slow;                  /* a rank reads or computes */
    int rank;                   /* of the first */
    char host[128];             /* of the first */
    const char *words;          /* of the first */
    char hosts[HOSTS_MAX][128]; /* that say that their ranks wait */
    size_t host_count;
};

/* "2026-11-21T20:12:15.300Z warning: ..." in Unix seconds; 0: it does not begin so. */
static double time_of(const char *line)
{
    struct tm tm = {0};
    const char *rest = strptime(line, "%Y-%m-%dT%H:%M:%S", &tm);
    return rest ? (double)timegm(&tm) : 0;
}

static void take_rank(struct said *s, int rank, const char *host, const char *words)
{
    static const char *const bad[] = {STALL_STOPPED, STALL_DEAD, STALL_STARVED};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (!s->stopped && strncmp(words, bad[i], strlen(bad[i])) == 0) {
            s->stopped = true;
            s->rank = rank;
            s->words = bad[i];
            snprintf(s->host, sizeof s->host, "%s", host);
            return;
        }
    s->slow = true;
}

static void take_host(struct said *s, const char *host)
{
    for (size_t i = 0; i < s->host_count; i++)
        if (strcmp(s->hosts[i], host) == 0)
            return;
    if (s->host_count < HOSTS_MAX)
        snprintf(s->hosts[s->host_count++], sizeof s->hosts[0], "%s", host);
}

static void take_line(struct said *s, const char *line, double since)
{
    const char *end = line + strcspn(line, "\n"), *at = strstr(line, "no step for ");
    char host[128];
    int rank, words = 0;

    if (!at || at > end || time_of(line) < since)
        return;
    if (sscanf(at, "no step for %*f s: rank %d on %127s %n", &rank, host, &words) == 2 && words)
        take_rank(s, rank, host, at + words);
    else if (sscanf(at, "no step for %*f s on %127[^:]: %n", host, &words) == 1 && words)
        take_host(s, host);
}

static void listen(struct said *s, const char *log, double since)
{
    for (const char *line = log; *line; line += strcspn(line, "\n"), line += *line == '\n')
        take_line(s, line, since);
}

/* ---------------------------------------------------------------- the verdict */

static void name_host(const char *attempt_dir, const char *machine, struct stalled *out)
{
    char *name = hosts_name_of(attempt_dir, machine);

    snprintf(out->host, sizeof out->host, "%s", name ? name : machine);
    free(name);
}

static bool has_spoken(const struct said *s, const char *machine)
{
    for (size_t i = 0; i < s->host_count; i++)
        if (strcmp(s->hosts[i], machine) == 0)
            return true;
    return false;
}

/* The first of the job's hosts that said nothing, as the job names it; false: all spoke. */
static bool find_silent(const char *attempt_dir, const struct said *s, char host[128])
{
    struct hosts_taken taken;
    bool found = false;

    if (!hosts_read_taken(attempt_dir, &taken))
        return false;
    for (size_t i = 0; i < taken.count && !found; i++)
        if (!has_spoken(s, taken.machines[i])) {
            snprintf(host, 128, "%s", taken.names[i]);
            found = true;
        }
    hosts_taken_clear(&taken);
    return found;
}

static bool judge(const char *attempt_dir, const struct said *s, double quiet, struct stalled *out)
{
    *out = (struct stalled){.rank = -1};
    if (s->stopped) {
        out->rank = s->rank;
        name_host(attempt_dir, s->host, out);
        snprintf(out->reason, sizeof out->reason, "rank %d on %s %s: no step ended for %.0f s",
                 s->rank, out->host, s->words, quiet);
        return true;
    }
    if (s->slow || s->host_count == 0)
        return false;
    if (find_silent(attempt_dir, s, out->host))
        snprintf(out->reason, sizeof out->reason,
                 "host %s does not answer: no step ended for %.0f s, and its ranks say nothing "
                 "while the others wait for them",
                 out->host, quiet);
    else
        snprintf(out->reason, sizeof out->reason,
                 "all ranks wait for each other: no step ended for %.0f s%s", quiet,
                 s->host_count > 1 ? "; every host answers, so the network that MPI uses between "
                                     "them is cut (cluster.interface)"
                                   : "");
    return true;
}

bool stalled_look(const char *attempt_dir, double stall_seconds, double now, struct stalled *out)
{
    struct said said = {0};
    bool found = false;

    if (stall_seconds <= 0 || was_written_within(attempt_dir, "events.jsonl", LISTEN_SECONDS, now))
        return false;
    char *events = failure_read_tail(attempt_dir, "events.jsonl");
    double last = events ? last_progress(events) : 0;
    if (last > 0 && now - last >= stall_seconds + LISTEN_SECONDS) {
        char *log = failure_read_tail(attempt_dir, "stdout.log");
        /* Half of it for clocks that differ from host to host. */
        listen(&said, log ? log : "", last + stall_seconds / 2);
        found = judge(attempt_dir, &said, now - last, out);
        free(log);
    }
    free(events);
    return found;
}

/* ---------------------------------------------------------------- kept */

int stalled_keep(const char *attempt_dir, const struct stalled *s, struct error *e)
{
    char path[PATH_MAX];
    json_t *body = json_pack("{s:s, s:I, s:s}", "reason", s->reason, "rank", (json_int_t)s->rank,
                             "host", s->host);
    char *text = body ? json_dumps(body, 0) : NULL;
    int status = text ? 0 : error_set(e, ERR_NO_MEMORY, "no memory for the cause of a stall");

    if (!status && (size_t)snprintf(path, sizeof path, "%s/" KEPT, attempt_dir) >= sizeof path)
        status = error_set(e, ERR_INVALID, "the run directory's path is too long");
    if (!status)
        status = file_write_atomic(path, text, strlen(text), e);
    free(text);
    json_decref(body);
    return status;
}

bool stalled_read(const char *attempt_dir, struct stalled *s)
{
    char path[PATH_MAX];
    const char *reason, *host;
    json_int_t rank;
    struct error e;

    *s = (struct stalled){.rank = -1};
    if ((size_t)snprintf(path, sizeof path, "%s/" KEPT, attempt_dir) >= sizeof path)
        return false;
    json_t *body = json_document_load(path, &e);
    bool good = body && json_unpack(body, "{s:s, s:I, s:s}", "reason", &reason, "rank", &rank,
                                    "host", &host) == 0;
    if (good) {
        snprintf(s->reason, sizeof s->reason, "%s", reason);
        snprintf(s->host, sizeof s->host, "%s", host);
        s->rank = rank;
    }
    json_decref(body);
    return good;
}
