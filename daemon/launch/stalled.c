#include "daemon/launch/stalled.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/json.h"
#include "common/run/attempt.h"
#include "common/system/file.h"
#include "common/xalloc.h"
#include "launch/hosts.h"
#include "launch/launch.h"

#define KEPT           "stalled.json"
#define LISTEN_SECONDS 4  /* watchers report twice a second and decide after 3 s */
#define END_SECONDS    60 /* after run_stop only MPI_Finalize remains */
#define SILENT_TIMES   3 /* multiple of stall_seconds, within which every live rank reports twice */
#define RANKS_MAX      (1 << 20)
#define QUIET_BYTES    128

struct progress {
    double at; /* Unix time of the last event except warnings, or of the launch; 0: unknown */
    enum stall_phase phase;
};

static enum stall_phase stalled_phase_after(enum event_type type)
{
    switch (type) {
    case EVENT_RUN_START:
        return STALL_IN_DATA;
    case EVENT_EVAL_PROGRESS:
        return STALL_IN_EVALUATION;
    case EVENT_RUN_STOP:
    case EVENT_FAILED:
        return STALL_IN_END;
    default:
        return STALL_IN_STEP;
    }
}

static struct progress stalled_last_progress(const char *events, double launched_at)
{
    struct progress last = {launched_at, STALL_IN_START};

    for (const char *line = events; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        char type[32];
        double t;
        if (sscanf(line, "{\"seq\": %*d, \"t\": %lf, \"type\": \"%31[a-z_]\"", &t, type) == 2 &&
            event_type_of(type) != EVENT_WARNING)
            last = (struct progress){t, stalled_phase_after(event_type_of(type))};
    }
    return last;
}

/* Returns -1 if there is no such file. */
static double stalled_seconds_since_written(const char *attempt_dir, const char *name, double now)
{
    char path[PATH_MAX];
    struct stat st;

    if (file_path(path, NULL, "%s/%s", attempt_dir, name) || stat(path, &st))
        return -1;
    return fmax(0, now - (double)st.st_mtime);
}

struct stall_reports {
    struct stall_report *hosts;
    size_t host_count, host_room;
    char *waiting; /* (world) */
    int64_t world, workers_per_node, waiting_count;
};

/* Parses "2026-11-21T20:12:15.300Z warning: ..." as Unix time; 0: another form. mpirun may add a
 * prefix (--tag-output, --timestamp-output). */
static double stalled_line_time(const char *line, const char *words)
{
    struct tm tm = {0};

    for (const char *tag; (tag = strstr(line, "<std")) && tag < words && strlen(tag) > 9;)
        line = tag + strlen("<stderr>:");
    const char *rest = strptime(line, "%Y-%m-%dT%H:%M:%S", &tm);
    return rest ? (double)timegm(&tm) : 0;
}

static void stalled_note_host(struct stall_reports *s, const struct stall_report *line)
{
    for (size_t i = 0; i < s->host_count; i++)
        if (strcmp(s->hosts[i].host, line->host) == 0) {
            s->hosts[i] = *line;
            return;
        }
    array_add(s->hosts, s->host_count, s->host_room) = *line;
}

static void stalled_note_line(struct stall_reports *s, const char *line, const char *end,
                              double since)
{
    struct stall_report parsed;
    char text[STALL_REPORT_BYTES];
    const char *words = line;

    while ((words = strchr(words, ':')) && words < end) {
        snprintf(text, sizeof text, "%.*s", (int)(end - words > 2 ? end - words - 2 : 0),
                 words + 2);
        if (stall_report_parse(text, &parsed))
            break;
        words++;
    }
    if (!words || words >= end || stalled_line_time(line, words) < since)
        return;
    if (parsed.rank < 0 || parsed.state != STALL_WAITS) {
        stalled_note_host(s, &parsed);
    } else if (parsed.rank < s->world && !s->waiting[parsed.rank]) {
        s->waiting[parsed.rank] = 1;
        s->waiting_count++;
    }
}

static void stalled_learn_world(const char *attempt_dir, struct stall_reports *s)
{
    char path[PATH_MAX];
    struct error e;
    json_int_t nodes, workers;

    if (file_path(path, NULL, "%s/../job.json", attempt_dir))
        return;
    json_t *job = json_document_load(path, &e);
    if (job &&
        json_unpack(job, "{s:{s:I, s:I}}", "cluster", "nodes", &nodes, "workers_per_node",
                    &workers) == 0 &&
        nodes > 0 && workers > 0 && nodes <= RANKS_MAX / workers) {
        s->world = nodes * workers;
        s->workers_per_node = workers;
        s->waiting = xcalloc((size_t)s->world, 1);
    }
    json_decref(job);
}

static void stalled_name_host(const char *attempt_dir, const char *machine, struct stalled *out)
{
    char *name = hosts_name_of(attempt_dir, machine);

    snprintf(out->host, sizeof out->host, "%s", name ? name : machine);
    free(name);
}

static void stalled_print_quiet(enum stall_phase phase, double quiet, char words[QUIET_BYTES])
{
    char missing[STALL_REPORT_BYTES];

    stall_report_missing(phase, missing);
    snprintf(words, QUIET_BYTES, "%.80s%s for %.0f s", missing,
             phase == STALL_IN_STEP ? " ended" : "", quiet);
}

static void stalled_judge_rank(const char *attempt_dir, const struct stall_report *line,
                               double quiet, struct stalled *out)
{
    char words[QUIET_BYTES];

    out->rank = line->rank;
    out->phase = line->phase;
    stalled_name_host(attempt_dir, line->host, out);
    stalled_print_quiet(line->phase, quiet, words);
    snprintf(out->reason, sizeof out->reason, "rank %d on %s %s: %s", line->rank, out->host,
             stall_state_words(line->state), words);
}

static bool stalled_has_reported(const struct stall_reports *s, const char *machine)
{
    for (size_t i = 0; i < s->host_count; i++)
        if (strcmp(s->hosts[i].host, machine) == 0)
            return true;
    return false;
}

static bool stalled_find_silent(const char *attempt_dir, const struct stall_reports *s,
                                char host[128])
{
    struct hosts_taken taken;
    bool found = false;

    if (!hosts_read_taken(attempt_dir, &taken))
        return false;
    for (size_t i = 0; i < taken.count && !found; i++)
        if (!stalled_has_reported(s, taken.machines[i])) {
            snprintf(host, 128, "%s", taken.names[i]);
            found = true;
        }
    hosts_taken_clear(&taken);
    return found;
}

static void stalled_judge_waiting_hosts(const char *attempt_dir, const struct stall_reports *s,
                                        double quiet, struct stalled *out)
{
    char words[QUIET_BYTES];

    out->phase = s->hosts[0].phase;
    stalled_print_quiet(out->phase, quiet, words);
    if (stalled_find_silent(attempt_dir, s, out->host))
        snprintf(out->reason, sizeof out->reason,
                 "host %s does not answer: %s, and its ranks do not report while the others wait "
                 "for them",
                 out->host, words);
    else
        snprintf(out->reason, sizeof out->reason, "all ranks wait for each other: %s%s", words,
                 s->host_count > 1 ? "; every host answers, so the network that MPI uses between "
                                     "them is cut (cluster.interface)"
                                   : "");
}

/* mpirun numbers ranks node by node. */
static void stalled_name_host_of_rank(const char *attempt_dir, const struct stall_reports *s,
                                      struct stalled *out)
{
    struct hosts_taken taken;
    size_t node = s->workers_per_node > 0 ? (size_t)(out->rank / s->workers_per_node) : 0;
    char host[128] = "";

    if (!hosts_read_taken(attempt_dir, &taken)) {
        gethostname(host, sizeof host - 1);
        stalled_name_host(attempt_dir, host, out);
        return;
    }
    if (node < taken.count)
        snprintf(out->host, sizeof out->host, "%s", taken.names[node]);
    hosts_taken_clear(&taken);
}

/* Before MPI_Init completes, ranks do not know each other. */
static void stalled_judge_waiting_ranks(const char *attempt_dir, const struct stall_reports *s,
                                        double quiet, struct stalled *out)
{
    char words[QUIET_BYTES];

    out->phase = STALL_IN_START;
    stalled_print_quiet(out->phase, quiet, words);
    if (s->waiting_count == s->world) {
        snprintf(out->reason, sizeof out->reason,
                 "all ranks wait for each other in MPI_Init: %s; MPI's network may be down "
                 "(cluster.interface)",
                 words);
        return;
    }
    out->rank = 0;
    while (s->waiting[out->rank])
        out->rank++;
    stalled_name_host_of_rank(attempt_dir, s, out);
    snprintf(out->reason, sizeof out->reason,
             "rank %lld on %s does not report while others wait for it in MPI_Init: %s",
             (long long)out->rank, out->host, words);
}

static bool stalled_judge_by_words(const char *attempt_dir, const struct stall_reports *s,
                                   double quiet, struct stalled *out)
{
    for (size_t i = 0; i < s->host_count; i++)
        if (s->hosts[i].state <= STALL_STARVED) {
            stalled_judge_rank(attempt_dir, &s->hosts[i], quiet, out);
            return true;
        }
    for (size_t i = 0; i < s->host_count; i++)
        if (s->hosts[i].state != STALL_WAITS)
            return false;
    if (s->host_count > 0)
        stalled_judge_waiting_hosts(attempt_dir, s, quiet, out);
    else if (s->waiting_count > 0)
        stalled_judge_waiting_ranks(attempt_dir, s, quiet, out);
    return s->host_count > 0 || s->waiting_count > 0;
}

static bool stalled_judge_processes(struct stall_look *l, const struct progress *last, double now,
                                    struct stalled *out)
{
    struct process_stopped found;
    char words[QUIET_BYTES];

    if (!l->launcher || l->launcher->survivors(l->process, l->attempt_dir) == 0 ||
        !process_set_find_stopped(&l->process->members, l->process->pid, &found)) {
        l->stopped_since = 0;
        return false;
    }
    if (l->stopped_since <= 0)
        l->stopped_since = now;
    if (now - l->stopped_since < LISTEN_SECONDS)
        return false;
    out->phase = last->phase;
    out->rank = found.rank;
    stalled_print_quiet(last->phase, now - last->at, words);
    if (found.rank >= 0) {
        struct stall_reports reports = {0};
        stalled_learn_world(l->attempt_dir, &reports);
        stalled_name_host_of_rank(l->attempt_dir, &reports,
                                  out); /* as named by the job, not by this machine */
        free(reports.waiting);
        snprintf(out->reason, sizeof out->reason, "rank %lld on %s %s: %s", (long long)found.rank,
                 out->host, stall_state_words(STALL_STOPPED), words);
    } else {
        snprintf(out->reason, sizeof out->reason, "%s (process %lld) %s: %s", found.name,
                 (long long)found.pid, stall_state_words(STALL_STOPPED), words);
    }
    return true;
}

double stalled_longest_silence(double stall_seconds)
{
    return SILENT_TIMES * stall_seconds + LISTEN_SECONDS;
}

static bool stalled_judge_silence(const struct stall_look *l, const struct progress *last,
                                  double now, struct stalled *out)
{
    double enough = stalled_longest_silence(l->stall_seconds);
    double log = stalled_seconds_since_written(l->attempt_dir, "stdout.log", now);
    char words[QUIET_BYTES];

    if (!l->launcher || now - last->at < enough || log < enough)
        return false;
    out->phase = last->phase;
    stalled_print_quiet(last->phase, now - last->at, words);
    snprintf(out->reason, sizeof out->reason,
             "no rank reports any more: %s; their hosts, or mpirun's daemons there, hang", words);
    return true;
}

static bool stalled_judge(struct stall_look *l, const struct progress *last, double now,
                          struct stalled *out)
{
    struct stall_reports reports = {0};
    char words[QUIET_BYTES];

    *out = (struct stalled){.rank = -1};
    if (stalled_judge_processes(l, last, now, out))
        return true;
    if (l->stopped_since > 0)
        return false; /* a later call decides */
    if (last->phase == STALL_IN_END && !l->launcher)
        return false;
    if (last->phase == STALL_IN_END) {
        out->phase = STALL_IN_END;
        stalled_print_quiet(STALL_IN_END, now - last->at, words);
        snprintf(out->reason, sizeof out->reason, "mpirun does not end by itself: %s", words);
        return true;
    }
    stalled_learn_world(l->attempt_dir, &reports);
    char *log = attempt_read_tail(l->attempt_dir, "stdout.log");
    /* Ranks report every stall_seconds; the rest allows for differences between clocks. */
    double since =
        fmax(last->at + l->stall_seconds / 2, now - 1.5 * l->stall_seconds - LISTEN_SECONDS);
    for (const char *line = log, *end; *line; line = end + (*end == '\n')) {
        end = line + strcspn(line, "\n");
        stalled_note_line(&reports, line, end, since);
    }
    bool found = stalled_judge_by_words(l->attempt_dir, &reports, now - last->at, out) ||
                 stalled_judge_silence(l, last, now, out);
    free(log);
    free(reports.hosts);
    free(reports.waiting);
    return found;
}

bool stalled_look(struct stall_look *l, double now, struct stalled *out)
{
    double written = stalled_seconds_since_written(l->attempt_dir, "events.jsonl", now);

    if (l->stall_seconds <= 0 || (written >= 0 && written < LISTEN_SECONDS))
        return false;
    char *events = attempt_read_tail(l->attempt_dir, "events.jsonl");
    struct progress last = stalled_last_progress(events, l->launched_at);
    double limit = last.phase == STALL_IN_END ? fmin(l->stall_seconds, END_SECONDS)
                                              : l->stall_seconds + LISTEN_SECONDS;
    bool found = last.at > 0 && now - last.at >= limit && stalled_judge(l, &last, now, out);
    free(events);
    return found;
}

int stalled_keep(const char *attempt_dir, const struct stalled *s, struct error *e)
{
    char path[PATH_MAX];
    json_t *body =
        json_pack("{s:s, s:s, s:I, s:s}", "reason", s->reason, "phase", stall_phase_name(s->phase),
                  "rank", (json_int_t)s->rank, "host", s->host);
    char *text = must_alloc(json_dumps(body, 0));
    int status = file_path(path, e, "%s/" KEPT, attempt_dir);

    if (!status)
        status = file_write_atomic(path, text, strlen(text), e);
    free(text);
    json_decref(body);
    return status;
}

bool stalled_read(const char *attempt_dir, struct stalled *s)
{
    char path[PATH_MAX];
    const char *reason, *host, *phase = "train";
    json_int_t rank;
    struct error e;

    *s = (struct stalled){.rank = -1};
    json_t *body =
        file_path(path, &e, "%s/" KEPT, attempt_dir) ? NULL : json_document_load(path, &e);
    bool good = body && json_unpack(body, "{s:s, s?s, s:I, s:s}", "reason", &reason, "phase",
                                    &phase, "rank", &rank, "host", &host) == 0;
    if (good) {
        snprintf(s->reason, sizeof s->reason, "%s", reason);
        snprintf(s->host, sizeof s->host, "%s", host);
        s->rank = rank;
        s->phase = stall_phase_of(phase);
    }
    json_decref(body);
    return good;
}
