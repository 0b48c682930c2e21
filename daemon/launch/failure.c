#include "daemon/launch/failure.h"

#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/event.h"

#define TAIL_BYTES (256 * 1024) /* of a log or event file: its end is in there */
#define LAST_LINES 3
#define LINE_BYTES 200 /* of each line shown */

/* The end of a file as a string, from the first whole line on; "" if it cannot be read. */
static char *read_tail(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    char *text = calloc(1, TAIL_BYTES + 1);

    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (text && fd >= 0 && fstat(fd, &st) == 0) {
        off_t from = st.st_size > TAIL_BYTES ? st.st_size - TAIL_BYTES : 0;
        ssize_t n = pread(fd, text, TAIL_BYTES, from);
        text[n > 0 ? n : 0] = '\0';
        char *newline = from ? strchr(text, '\n') : NULL;
        if (newline)
            memmove(text, newline + 1, strlen(newline + 1) + 1);
    }
    if (fd >= 0)
        close(fd);
    return text;
}

/* ---------------------------------------------------------------- mpirun's messages */

static bool read_signal(const char *log, struct failure_rank *r)
{
    /* "mpirun noticed ...", or by what other name it was called */
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

static bool read_exit(const char *log, struct failure_rank *r)
{
    const char *at = strstr(log, "The first process to do so was:");
    long long rank, code;

    if (!at ||
        sscanf(at, "The first process to do so was: Process name: [[%*d,%*d],%lld] Exit code: %lld",
               &rank, &code) != 2)
        return false;
    r->rank = rank;
    r->exit_code = code;
    return true;
}

static bool read_abort(const char *log, struct failure_rank *r)
{
    const char *at = strstr(log, "MPI_ABORT was invoked on rank ");
    long long rank, code;

    if (!at ||
        sscanf(at, "MPI_ABORT was invoked on rank %lld in communicator %*s with errorcode %lld",
               &rank, &code) != 2)
        return false;
    r->rank = rank;
    r->exit_code = code;
    r->aborted = true;
    return true;
}

bool failure_read_log(const char *log, struct failure_rank *r)
{
    *r = (struct failure_rank){.rank = -1, .signal = -1, .exit_code = -1};
    return read_signal(log, r) || read_exit(log, r) || read_abort(log, r);
}

/* ---------------------------------------------------------------- last lines */

static bool is_rule(const char *line, size_t length)
{
    return length >= 60 && strspn(line, "-") >= length;
}

/* "[host:01234] ...": Open MPI's own, among them the stack trace of a crash. */
static bool is_trace(const char *line, size_t length)
{
    char host[128];
    int end = 0;
    if (length < 4 || line[0] != '[')
        return false;
    return sscanf(line, "[%127[^]:[]:%*[0-9]]%n", host, &end) == 1 && end > 0 &&
           (size_t)end <= length;
}

struct lines {
    const char *at[LAST_LINES];
    size_t length[LAST_LINES];
    size_t count;
};

static void keep_line(struct lines *lines, const char *line, size_t length)
{
    if (lines->count == LAST_LINES) {
        memmove(lines->at, lines->at + 1, (LAST_LINES - 1) * sizeof *lines->at);
        memmove(lines->length, lines->length + 1, (LAST_LINES - 1) * sizeof *lines->length);
        lines->count--;
    }
    lines->at[lines->count] = line;
    lines->length[lines->count++] = length;
}

/* The workers' lines, or what stands in mpirun's banners, which are framed by rules. */
static void collect_lines(const char *log, bool banners, struct lines *lines)
{
    bool in_banner = false;

    for (const char *line = log; *line;) {
        size_t length = strcspn(line, "\n");
        const char *start = line + strspn(line, " \t\r");
        bool blank = start >= line + length;
        if (is_rule(line, length))
            in_banner = !in_banner;
        else if (!blank && in_banner == banners && !is_trace(line, length) &&
                 !(banners && lines->count == LAST_LINES)) /* a banner says it at its start */
            keep_line(lines, start, length - (size_t)(start - line));
        line += length + (line[length] == '\n');
    }
}

static void print_lines(const struct lines *lines, const char *between, char *text, size_t bytes)
{
    FILE *out = fmemopen(text, bytes, "w");

    for (size_t i = 0; out && i < lines->count; i++) {
        size_t length = lines->length[i] < LINE_BYTES ? lines->length[i] : LINE_BYTES;
        fputs(i ? between : "", out);
        for (size_t k = 0; k < length; k++) {
            unsigned char c = (unsigned char)lines->at[i][k];
            fputc(c < ' ' || c == 127 ? ' ' : c, out);
        }
    }
    if (out)
        fclose(out);
    text[bytes - 1] = '\0';
}

void failure_last_lines(const char *log, char *text, size_t bytes)
{
    struct lines lines = {0};
    text[0] = '\0';
    collect_lines(log, false, &lines);
    if (lines.count)
        print_lines(&lines, "; ", text, bytes);
}

/* What mpirun itself had to say, when no worker said anything. */
static void banner_words(const char *log, char *text, size_t bytes)
{
    struct lines lines = {0};
    text[0] = '\0';
    collect_lines(log, true, &lines);
    if (lines.count)
        print_lines(&lines, " ", text, bytes);
}

/* ---------------------------------------------------------------- words */

void failure_signal_words(int64_t signal_number, char *text, size_t bytes)
{
    const char *name = sigabbrev_np((int)signal_number);
    const char *words = sigdescr_np((int)signal_number);

    if (name && words)
        snprintf(text, bytes, "signal %d (SIG%s, %s)", (int)signal_number, name, words);
    else
        snprintf(text, bytes, "signal %d", (int)signal_number);
}

static const char *signal_hint(int64_t signal_number)
{
    if (signal_number == 9)
        return "; if nobody did that, the kernel was out of memory: see dmesg";
    return "";
}

static void add_last_lines(struct verdict *v, const char *log, bool only_workers)
{
    char lines[FAILURE_TEXT_BYTES];
    size_t used = strlen(v->reason);
    const char *title = "last lines of the log";

    failure_last_lines(log, lines, sizeof lines);
    if (!lines[0] && !only_workers) {
        banner_words(log, lines, sizeof lines);
        title = "mpirun says";
    }
    if (lines[0])
        snprintf(v->reason + used, sizeof v->reason - used, "; %s: %s", title, lines);
}

/* mpirun ends with 128 + signal of a rank; its words on it may be missing. (132, that would be
 * SIGILL, is also its code for workers that could not be started.) */
static bool is_signal_code(int64_t code)
{
    return code == 134 || code == 135 || code == 136 || code == 137 || code == 139 || code == 143;
}

static void judge_by_log(struct verdict *v, const struct launch_exit *how, const char *log,
                         int64_t step)
{
    struct failure_rank r;
    char words[128];
    bool said = failure_read_log(log, &r);

    if (said && r.signal >= 0) {
        failure_signal_words(r.signal, words, sizeof words);
        snprintf(v->reason, sizeof v->reason, "rank %lld on %s was ended by %s%s",
                 (long long)r.rank, r.host, words, signal_hint(r.signal));
    } else if (said) {
        snprintf(v->reason, sizeof v->reason, "rank %lld %s with exit code %lld", (long long)r.rank,
                 r.aborted ? "called MPI_Abort" : "ended", (long long)r.exit_code);
    } else if (how->signal >= 0) {
        failure_signal_words(how->signal, words, sizeof words);
        snprintf(v->reason, sizeof v->reason, "mpirun was ended by %s%s", words,
                 signal_hint(how->signal));
    } else if (is_signal_code(how->code)) {
        failure_signal_words(how->code - 128, words, sizeof words);
        snprintf(v->reason, sizeof v->reason, "a worker was ended by %s%s", words,
                 signal_hint(how->code - 128));
    } else if (how->code > 0) {
        snprintf(v->reason, sizeof v->reason, "mpirun ended with exit code %lld",
                 (long long)how->code);
    } else {
        snprintf(v->reason, sizeof v->reason, "the workers ended without saying how the run went");
    }
    if (step > 0) {
        size_t used = strlen(v->reason);
        snprintf(v->reason + used, sizeof v->reason - used, "; the last step was %lld",
                 (long long)step);
    }
    add_last_lines(v, log, said);
}

/* ---------------------------------------------------------------- the verdict */

/* The last run_stop and failed events (new references or NULL) and the last step; 0: none. */
static void read_outcome(const char *events, json_t **run_stop, json_t **failed, int64_t *step)
{
    *run_stop = *failed = NULL;
    *step = 0;
    for (const char *line = events; *line;) {
        size_t length = strcspn(line, "\n");
        json_t *event = line[length] == '\n' ? json_loadb(line, length, 0, NULL) : NULL;
        const char *type = json_string_value(json_object_get(event, "type"));
        json_t **kept = NULL;
        if (type && event_type_of(type) == EVENT_RUN_STOP)
            kept = run_stop;
        else if (type && event_type_of(type) == EVENT_FAILED)
            kept = failed;
        else if (type && event_type_of(type) == EVENT_STEP)
            *step = json_integer_value(json_object_get(event, "step"));
        if (kept) {
            json_decref(*kept);
            *kept = json_incref(event);
        }
        json_decref(event);
        line += length + (line[length] == '\n');
    }
}

static void judge_by_failed_event(struct verdict *v, const json_t *failed)
{
    const char *host = json_string_value(json_object_get(failed, "host"));
    const char *phase = json_string_value(json_object_get(failed, "phase"));
    const char *reason = json_string_value(json_object_get(failed, "reason"));
    const json_t *rank = json_object_get(failed, "rank");

    snprintf(v->reason, sizeof v->reason, "rank %lld on %s%s%s: %s",
             json_is_integer(rank) ? (long long)json_integer_value(rank) : 0LL,
             host ? host : "this host", phase ? ", phase " : "", phase ? phase : "",
             reason ? reason : "failed without a reason");
}

static void judge_by_run_stop(struct verdict *v, const json_t *run_stop,
                              const struct launch_exit *how, bool cancel_requested)
{
    const char *status = json_string_value(json_object_get(run_stop, "status"));
    const json_t *step = json_object_get(run_stop, "step");

    if (status && strcmp(status, "success") == 0) {
        v->state = JOB_SUCCEEDED;
        if (how->code > 0 || how->signal > 0)
            snprintf(v->reason, sizeof v->reason,
                     "complete; mpirun ended with an error behind the end of the run");
    } else if (cancel_requested || (status && strcmp(status, "failed") != 0)) {
        v->state = JOB_CANCELLED;
        snprintf(v->reason, sizeof v->reason, "%s after step %lld",
                 cancel_requested
                     ? "cancelled on request"
                     : "the workers were told to stop by a signal that was not traind's",
                 (long long)json_integer_value(step));
    } else {
        snprintf(v->reason, sizeof v->reason, "the workers ended the run with status %s",
                 status ? status : "null");
    }
}

void failure_judge(const char *attempt_dir, const struct launch_exit *how, bool cancel_requested,
                   struct verdict *v)
{
    json_t *run_stop = NULL, *failed = NULL;
    int64_t step;
    char *events = read_tail(attempt_dir, "events.jsonl");
    char *log = read_tail(attempt_dir, "stdout.log");

    *v = (struct verdict){.state = JOB_FAILED};
    read_outcome(events ? events : "", &run_stop, &failed, &step);
    if (run_stop) {
        judge_by_run_stop(v, run_stop, how, cancel_requested);
    } else if (cancel_requested) {
        v->state = JOB_CANCELLED;
        snprintf(v->reason, sizeof v->reason, "cancelled on request");
    } else if (failed) {
        judge_by_failed_event(v, failed);
    } else if (how->code < 0 && how->signal < 0 && events && !*events && log && !*log) {
        v->state = JOB_QUEUED;
        snprintf(v->reason, sizeof v->reason, "the daemon ended before it had launched the job");
    } else {
        judge_by_log(v, how, log ? log : "", step);
    }
    json_decref(run_stop);
    json_decref(failed);
    free(events);
    free(log);
}
