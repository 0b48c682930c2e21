#include "daemon/launch/failure.h"

#include <errno.h>
#include <jansson.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/run/attempt.h"
#include "common/system/file.h"
#include "common/xalloc.h"
#include "daemon/launch/stalled.h"
#include "launch/hosts.h"

#define LAST_LINES 3
#define LINE_BYTES 200 /* of each quoted line */

/* ---------------------------------------------------------------- mpirun's messages */

static bool failure_read_signal(const char *log, struct failure_rank *r)
{
    /* Search after mpirun's name, which depends on how it was called. */
    const char *at = strstr(log, " noticed that process rank ");
    long long rank, signal_number;

    if (!at || sscanf(at,
                      " noticed that process rank %lld with PID %*d on node %127s exited on signal "
                      "%lld",
                      &rank, r->host, &signal_number) != 3)
        return false;
    r->rank = rank;
    r->signal = signal_number;
    return true;
}

/* Reads the message of a failed keepalive, in which Open MPI may name the node. */
static bool failure_read_lost_host(const char *log, struct failure_rank *r)
{
    const char *at = strstr(log, "lost communication with a remote daemon");

    if (!at)
        return false;
    r->host_lost = true;
    at = strstr(at, "Remote daemon:");
    if (at && sscanf(at, "Remote daemon: %*[^ \n] on node %127s", r->host) != 1)
        r->host[0] = '\0';
    return true;
}

static bool failure_read_exit(const char *log, struct failure_rank *r)
{
    const char *at = strstr(log, "The first process to do so was:");
    long long rank, code;

    /* "[[8073,1],2]", or "[prterun-HOST-13@1,2]" from Open MPI 5. */
    at = at ? strstr(at, "Process name: [") : NULL;
    size_t length = at ? strcspn(at, "\n") : 0;
    for (const char *comma = at; comma && (comma = strchr(comma, ',')) && comma < at + length;)
        at = ++comma;
    if (!at || sscanf(at, "%lld] Exit code: %lld", &rank, &code) != 2)
        return false;
    r->rank = rank;
    r->exit_code = code;
    return true;
}

static bool failure_read_abort(const char *log, struct failure_rank *r)
{
    const char *at = strstr(log, "MPI_ABORT was invoked on rank ");
    const char *number = at ? strcasestr(at, "errorcode") : NULL;
    long long rank, code;

    /* "with errorcode 7", or "Errorcode: 7" from Open MPI 5. */
    if (!number || sscanf(at, "MPI_ABORT was invoked on rank %lld", &rank) != 1 ||
        sscanf(number + strlen("errorcode"), "%*[: ]%lld", &code) != 1)
        return false;
    r->rank = rank;
    r->exit_code = code;
    r->aborted = true;
    return true;
}

bool failure_read_log(const char *log, struct failure_rank *r)
{
    *r = (struct failure_rank){.rank = -1, .signal = -1, .exit_code = -1};
    return failure_read_signal(log, r) || failure_read_lost_host(log, r) ||
           failure_read_exit(log, r) || failure_read_abort(log, r);
}

static bool failure_read_mpi_error(const char *log, struct failure_rank *r, char *words,
                                   size_t bytes)
{
    const char *at = strstr(log, "*** An error occurred in ");
    const char *process = at ? strstr(at, "*** reported by process [") : NULL;
    const char *kind = at ? strstr(at, "*** MPI_ERR_") : NULL;
    char call[64];
    long long rank;

    if (!kind || !process || sscanf(at, "*** An error occurred in %63[A-Za-z_]", call) != 1 ||
        sscanf(process, "*** reported by process [%*u,%lld]", &rank) != 1)
        return false;
    r->rank = rank;
    snprintf(words, bytes, "%s ended with %.*s", call, (int)strcspn(kind + 4, "\n"), kind + 4);
    return true;
}

/* Reads how ranks of Open MPI 5 end when another rank, which is not named, has disappeared. */
static bool failure_read_closed(const char *log, char *words, size_t bytes)
{
    const char *at = strstr(log, "*** An error occurred in Socket closed");
    const char *by = at ? strstr(at, " due to process rank ") : NULL;
    char host[128];
    long long rank;

    if (!by || sscanf(by, " due to process rank %lld with PID %*d on node %127s calling", &rank,
                      host) != 2)
        return false;
    snprintf(words, bytes,
             "another rank disappeared: rank %lld on %s found its connection to it "
             "closed",
             rank, host);
    return true;
}

/* ---------------------------------------------------------------- last lines */

/* Matches lines of Open MPI itself, such as a crash's stack trace; the last three are UCX's. */
static bool failure_is_trace(const char *line, size_t length)
{
    static const char *const formats[] = {
        " [%*[^]:[]:%*[0-9]]%n",        /* "[host:01234] ..." */
        " [%*[^]:[]][[%*d,%*d],%*d]%n", /* "[host][[JOB,0],RANK][FILE:LINE:FUNC] ..." */
        "%*d more %*[a-z] %*[a-z] sent help message%n", /* Open MPI 5, for a banner already shown */
        " [%*[^]:[]:%*[0-9] :%*d:%*d]%n",
        "====%n",
        "%*d /%*[^ ] [0x%n",
    };
    char text[512];

    snprintf(text, sizeof text, "%.*s", (int)length, line);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        int end = 0;
        sscanf(text, formats[i], &end);
        if (end > 0)
            return true;
    }
    return false;
}

struct lines {
    const char *at[LAST_LINES];
    size_t length[LAST_LINES];
    size_t count;
};

static void failure_collect_lines(const char *log, bool banners, struct lines *lines)
{
    bool in_banner = false;

    for (const char *line = log; *line;) {
        size_t length = strcspn(line, "\n");
        bool blank = strspn(line, " \t\r") >= length;
        bool is_rule = length >= 60 && strspn(line, "-") >= length;
        bool is_full = lines->count == LAST_LINES;
        in_banner = in_banner != is_rule;
        if (!is_rule && !blank && in_banner == banners && !failure_is_trace(line, length) &&
            !(banners && is_full)) {
            if (is_full) {
                memmove(lines->at, lines->at + 1, (LAST_LINES - 1) * sizeof *lines->at);
                memmove(lines->length, lines->length + 1, (LAST_LINES - 1) * sizeof *lines->length);
                lines->count--;
            }
            lines->at[lines->count] = line;
            lines->length[lines->count++] = length;
        }
        line += length + (line[length] == '\n');
    }
}

/* Quotes lines without their indentation; between banner lines, removes only the indentation common
 * to all, because they may be a table. */
static void failure_lines(const char *log, bool banners, const char *between, char *text,
                          size_t bytes)
{
    struct lines lines = {0};
    size_t blanks[LAST_LINES], least = SIZE_MAX;

    text[0] = '\0';
    failure_collect_lines(log, banners, &lines);
    FILE *out = lines.count ? must_alloc(fmemopen(text, bytes, "w")) : NULL;
    for (size_t i = 0; i < lines.count; i++) {
        blanks[i] = strspn(lines.at[i], " \t\r");
        least = blanks[i] < least ? blanks[i] : least;
    }
    for (size_t i = 0; i < lines.count; i++) {
        size_t cut = *between == '\n' ? least : blanks[i], length = lines.length[i] - cut;
        fputs(i ? between : "", out);
        for (size_t k = 0; k < length && k < LINE_BYTES; k++) {
            unsigned char c = (unsigned char)lines.at[i][cut + k];
            fputc(c < ' ' || c == 127 ? ' ' : c, out);
        }
    }
    if (out)
        fclose(out);
    text[bytes - 1] = '\0';
}

void failure_last_lines(const char *log, char *text, size_t bytes)
{
    failure_lines(log, false, "; ", text, bytes);
}

/* ---------------------------------------------------------------- reasons */

void failure_signal_words(int64_t signal_number, char *text, size_t bytes)
{
    const char *name = sigabbrev_np((int)signal_number);
    const char *words = sigdescr_np((int)signal_number);

    if (name && words)
        snprintf(text, bytes, "signal %d (SIG%s, %s)", (int)signal_number, name, words);
    else
        snprintf(text, bytes, "signal %d", (int)signal_number);
}

#define OF_WORKERS "; last lines of the log: "
#define OF_MPIRUN  "; mpirun: "

size_t failure_cause_length(const char *reason)
{
    const char *log = strstr(reason, OF_WORKERS);

    log = log ? log : strstr(reason, OF_MPIRUN);
    return log ? (size_t)(log - reason) : strlen(reason);
}

static void failure_append(struct verdict *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void failure_append(struct verdict *v, const char *format, ...)
{
    size_t used = strlen(v->reason);
    va_list args;

    va_start(args, format);
    vsnprintf(v->reason + used, sizeof v->reason - used, format, args);
    va_end(args);
}

static void failure_add_last_lines(struct verdict *v, const char *log, bool only_workers)
{
    char lines[FAILURE_TEXT_BYTES];
    const char *title = OF_WORKERS;

    failure_last_lines(log, lines, sizeof lines);
    if (!lines[0] && !only_workers) {
        failure_lines(log, true, " ", lines, sizeof lines);
        title = OF_MPIRUN;
    }
    if (lines[0])
        failure_append(v, "%s%s", title, lines);
}

/* mpirun exits with 128 + the signal of a rank, possibly without a message. 132 (SIGILL) is
 * excluded, because it is also the exit code for workers that could not be started. */
static bool failure_is_signal_code(int64_t code)
{
    return code == 134 || code == 135 || code == 136 || code == 137 || code == 139 || code == 143;
}

static void failure_name_rank(struct verdict *v, const struct launch_exit *how, bool said)
{
    struct failure_rank *r = &v->who;
    char words[128];

    if (!said)
        r->signal = how->signal >= 0                    ? how->signal
                    : failure_is_signal_code(how->code) ? how->code - 128
                                                        : -1;
    if (!said && r->signal < 0)
        r->exit_code = how->code;
    if (r->signal >= 0)
        failure_signal_words(r->signal, words, sizeof words);
    if (r->host_lost)
        snprintf(v->reason, sizeof v->reason,
                 "host %s no longer answers: its network, the machine or Open MPI's daemon "
                 "there has failed",
                 r->host[0] ? r->host : "(not known)");
    else if (said && r->signal >= 0)
        snprintf(v->reason, sizeof v->reason, "rank %lld on %s was ended by %s", (long long)r->rank,
                 r->host, words);
    else if (said)
        snprintf(v->reason, sizeof v->reason, "rank %lld %s with exit code %lld",
                 (long long)r->rank, r->aborted ? "called MPI_Abort" : "ended",
                 (long long)r->exit_code);
    else if (r->signal >= 0)
        snprintf(v->reason, sizeof v->reason, "%s was ended by %s",
                 how->signal >= 0 ? "mpirun" : "a worker", words);
    else if (how->code > 0)
        snprintf(v->reason, sizeof v->reason, "mpirun ended with exit code %lld",
                 (long long)how->code);
    else
        snprintf(v->reason, sizeof v->reason, "the workers ended without reporting a result");
}

static void failure_judge_by_log(struct verdict *v, const struct launch_exit *how, const char *log)
{
    bool said = failure_read_log(log, &v->who);
    const struct failure_rank *r = &v->who;
    char words[256];

    failure_name_rank(v, how, said);
    if (!said && v->who.signal < 0 && failure_read_closed(log, words, sizeof words))
        snprintf(v->reason, sizeof v->reason, "%s", words);
    if (failure_read_mpi_error(log, &v->who, words, sizeof words))
        failure_append(v, "; on rank %lld %s", (long long)v->who.rank, words);
    if (v->phase[0])
        failure_append(v, " in phase %s", v->phase);
    if (r->signal == 9)
        failure_append(v, "; unless someone killed it, the kernel ran out of memory: see dmesg");
    else if (r->signal < 0 && r->exit_code == ATTEMPT_EXIT_NO_SPACE)
        failure_append(v, ": No space left on device");
    else if (r->signal > 0 && strstr(log, "failed to map segment from shared object"))
        failure_append(v, ": Cannot allocate memory for a shared library");
    if (v->step > 0)
        failure_append(v, "; the last step was %lld", (long long)v->step);
    failure_add_last_lines(v, log, said);
}

/* ---------------------------------------------------------------- the verdict */

static const char *failure_phase_after(enum event_type type)
{
    switch (type) {
    case EVENT_RUN_START:
        return "data";
    case EVENT_STEP:
    case EVENT_EVAL:
    case EVENT_CHECKPOINT:
        return "train";
    case EVENT_EVAL_PROGRESS:
        return "evaluate";
    default:
        return NULL;
    }
}

static void failure_read_outcome(const char *events, json_t **run_stop, json_t **failed,
                                 struct verdict *v)
{
    *run_stop = *failed = NULL;
    for (const char *line = events; *line;) {
        size_t length = strcspn(line, "\n");
        json_t *event = line[length] == '\n' ? json_loadb(line, length, 0, NULL) : NULL;
        const char *name = json_string_value(json_object_get(event, "type"));
        enum event_type type = name ? event_type_of(name) : EVENT_TYPE_COUNT;
        json_t **kept = type == EVENT_RUN_STOP ? run_stop : type == EVENT_FAILED ? failed : NULL;
        if (kept) {
            json_decref(*kept);
            *kept = json_incref(event);
        } else if (type == EVENT_STEP) {
            v->step = json_get_integer(event, "step", 0);
        } else if (type == EVENT_CHECKPOINT) {
            v->checkpoint = json_get_integer(event, "step", 0);
        }
        if (failure_phase_after(type))
            snprintf(v->phase, sizeof v->phase, "%s", failure_phase_after(type));
        json_decref(event);
        line += length + (line[length] == '\n');
    }
}

static void failure_judge_by_failed_event(struct verdict *v, const json_t *failed)
{
    const char *host = json_string_value(json_object_get(failed, "host"));
    const char *phase = json_string_value(json_object_get(failed, "phase"));
    const char *reason = json_string_value(json_object_get(failed, "reason"));
    const json_t *rank = json_object_get(failed, "rank");

    char where[256] = "";

    v->who.rank = json_is_integer(rank) ? json_integer_value(rank) : 0;
    if (host && *host)
        snprintf(where, sizeof where, "rank %lld on %.128s%s", (long long)v->who.rank, host,
                 phase ? ", " : "");
    snprintf(v->who.host, sizeof v->who.host, "%s", host ? host : "");
    snprintf(v->phase, sizeof v->phase, "%s", phase ? phase : "");
    /* The cause comes first, because lists truncate the reason. */
    snprintf(v->reason, sizeof v->reason, "%s", reason ? reason : "failed without giving a reason");
    if (*where || phase)
        failure_append(v, " (%s%s%s)", where, phase ? "phase " : "", phase ? phase : "");
}

static const char *failure_stop_words(enum failure_stop why)
{
    if (why == FAILURE_CANCELLED)
        return "cancelled on request";
    if (why == FAILURE_GROWS)
        return "stopped to go on with more hosts";
    return why == FAILURE_TIME_LIMIT
               ? "stopped at its time limit (cluster.time_limit)"
               : "the workers were stopped by a signal that traind did not send";
}

static void failure_judge_by_stall(struct verdict *v, const struct stalled *stall)
{
    v->who.rank = stall->rank;
    snprintf(v->who.host, sizeof v->who.host, "%s", stall->host);
    snprintf(v->phase, sizeof v->phase, "%s", stall_phase_name(stall->phase));
    v->outside = true;
    snprintf(v->reason, sizeof v->reason, v->step > 0 ? "%s; the last step was %lld" : "%s",
             stall->reason, (long long)v->step);
}

static bool failure_judge_by_hosts(const char *attempt_dir, struct verdict *v)
{
    struct hosts_found found;

    if (!hosts_read(attempt_dir, &found))
        return false;
    snprintf(v->phase, sizeof v->phase, "start");
    snprintf(v->reason, sizeof v->reason, "%s", found.problems ? found.problems : "");
    v->hosts_missing = true;
    hosts_found_clear(&found);
    return true;
}

static bool failure_has_succeeded(const json_t *run_stop)
{
    const char *status = json_string_value(json_object_get(run_stop, "status"));
    return status && strcmp(status, "success") == 0;
}

static void failure_judge_by_run_stop(struct verdict *v, const json_t *run_stop,
                                      const struct launch_exit *how, enum failure_stop why)
{
    const char *status = json_string_value(json_object_get(run_stop, "status"));
    long long step = json_get_integer(run_stop, "step", 0);

    if (failure_has_succeeded(run_stop)) {
        v->state = JOB_SUCCEEDED;
        if (how->code > 0 || how->signal > 0)
            snprintf(v->reason, sizeof v->reason,
                     "complete; mpirun ended with an error after the end of the run");
        else
            snprintf(v->reason, sizeof v->reason, "%.300s", json_get_text(run_stop, "reason", ""));
    } else if (why || (status && strcmp(status, "failed") != 0)) {
        v->state = JOB_CANCELLED;
        snprintf(v->reason, sizeof v->reason, step > 0 ? "%s after step %lld" : "%s",
                 failure_stop_words(why), step);
    } else {
        snprintf(v->reason, sizeof v->reason, "the workers ended the run with status %s",
                 status ? status : "null");
    }
}

static bool failure_judge_by_missing_folder(const char *attempt_dir, struct verdict *v)
{
    char run_dir[PATH_MAX];

    if (access(attempt_dir, F_OK) == 0 || errno != ENOENT)
        return false;
    snprintf(run_dir, sizeof run_dir, "%s", attempt_dir);
    const char *missing = access(dirname(run_dir), F_OK) ? run_dir : attempt_dir;
    snprintf(v->reason, sizeof v->reason,
             "the folder %.900s no longer exists: it was removed or renamed while the job ran",
             missing);
    return true;
}

#define OWN_FAULT_EXIT                                                                             \
    2 /* train-worker's exit code for wrong usage, an invalid document or divergence */

void failure_judge(const char *attempt_dir, const struct launch_exit *how, enum failure_stop why,
                   struct verdict *v)
{
    json_t *run_stop = NULL, *failed = NULL;
    char *events = attempt_read_tail(attempt_dir, "events.jsonl");
    char *log = attempt_read_tail(attempt_dir, "stdout.log");

    *v = (struct verdict){
        .state = JOB_FAILED, .who = {.rank = -1, .signal = -1, .exit_code = -1}
    };
    failure_read_outcome(events, &run_stop, &failed, v);
    failure_lines(log, false, "\n", v->lines, sizeof v->lines);
    struct stalled stall;
    struct failure_rank lost;
    /* mpirun stops the ranks after losing a host, and they may end normally. */
    if (run_stop && !why && !failure_has_succeeded(run_stop) &&
        failure_read_lost_host(log, &lost)) {
        json_decref(run_stop);
        run_stop = NULL;
    }
    bool stalled = why == FAILURE_STALLED && stalled_read(attempt_dir, &stall);
    /* After the end of the run, its own events decide. */
    bool has_ended = stalled && stall.phase == STALL_IN_END && (run_stop || failed);
    if (has_ended)
        why = FAILURE_NOT_STOPPED;
    if (stalled && !has_ended && !failure_has_succeeded(run_stop)) {
        failure_judge_by_stall(v, &stall);
    } else if (!run_stop && !why && how->code == HOSTS_MISSING_EXIT &&
               failure_judge_by_hosts(attempt_dir, v)) {
        ; /* the verdict is complete */
    } else if (run_stop) {
        failure_judge_by_run_stop(v, run_stop, how, why);
    } else if (why && !(why == FAILURE_GROWS && failed)) {
        v->state = JOB_CANCELLED;
        snprintf(v->reason, sizeof v->reason, "%s%s", failure_stop_words(why),
                 how->signal == 9 || how->code == 137 ? "; its workers did not stop in time and "
                                                        "were killed"
                                                      : "");
    } else if (failed) {
        failure_judge_by_failed_event(v, failed);
        v->own_fault = how->code == OWN_FAULT_EXIT;
    } else if (failure_judge_by_missing_folder(attempt_dir, v)) {
        ; /* the verdict is complete */
    } else if (how->code < 0 && how->signal < 0 && !*events && !*log) {
        v->state = JOB_QUEUED;
        snprintf(v->reason, sizeof v->reason, "the daemon ended before launching the job");
    } else {
        failure_judge_by_log(v, how, log);
        v->own_fault = v->who.exit_code == OWN_FAULT_EXIT;
    }
    v->grows = v->goes_on = why == FAILURE_GROWS && v->state == JOB_CANCELLED;
    if (has_ended) {
        if (v->state == JOB_SUCCEEDED && !*v->reason)
            snprintf(v->reason, sizeof v->reason, "complete");
        failure_append(v, "; %s, so it was ended", stall.reason);
    }
    json_decref(run_stop);
    json_decref(failed);
    free(events);
    free(log);
}

json_t *failure_to_json(const struct verdict *v, int64_t attempt)
{
    const char *name = v->who.signal < 0 ? NULL : sigabbrev_np((int)v->who.signal);
    json_t *log = json_array();

    for (const char *line = v->lines; *line; line += strcspn(line, "\n"), line += *line == '\n')
        json_array_append_new(
            log, json_stringn(line, strcspn(line, "\n"))); /* NULL if it is not valid UTF-8 */
    json_t *signal = v->who.signal < 0 ? json_null()
                     : name            ? json_sprintf("SIG%s", name)
                                       : json_sprintf("%lld", (long long)v->who.signal);
    return json_pack(
        "{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "attempt", (json_int_t)attempt,
        "step", (json_int_t)v->step, "rank", json_integer_or_null(v->who.rank >= 0, v->who.rank),
        "host", json_text_or_null(v->who.host), "phase", json_text_or_null(v->phase), "signal",
        signal, "exit_code", json_integer_or_null(v->who.exit_code >= 0, v->who.exit_code),
        "reason", json_text_or_null(v->reason), "label", json_text_or_null(v->label), "log", log);
}
