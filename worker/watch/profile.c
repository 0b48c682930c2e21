#include "worker/watch/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/run/trace.h"
#include "common/system/file.h"
#include "worker/watch/layer_table.h"
#include "worker/watch/peak.h"

#define SPANS_MAX                                                                                  \
    400000 /* of all ranks: a file of at most about 100 MB, which viewers still open */

enum state { WAITS, RUNS, DONE };

struct profile {
    struct run *run;
    enum state state;
    double zero;          /* the trace's 0 on rank 0's clock */
    double offset, error; /* this rank's clock less rank 0's, and how wrong that can be: seconds */
};

int profile_create(struct run *r, struct profile **out, struct error *e)
{
    struct profile *p = calloc(1, sizeof *p);

    if (!p)
        return error_set(e, ERR_NO_MEMORY, "no memory for a profile");
    p->run = r;
    p->state = r->spec->profile.has_steps ? WAITS : DONE;
    *out = p;
    return 0;
}

void profile_destroy(struct profile *p)
{
    if (p && p->state == RUNS)
        trace_stop();
    free(p);
}

static void profile_start(struct profile *p)
{
    traincomm_clock_offset(p->run->comm, &p->offset, &p->error);
    p->zero = clock_monotonic();
    traincomm_broadcast(p->run->comm, &p->zero, sizeof p->zero, 0);
    trace_start(SPANS_MAX / (size_t)p->run->world);
    p->state = RUNS;
}

void profile_comm_span(void *context, const char *what, int number, double start, double end,
                       size_t bytes)
{
    bool agrees = strcmp(what, "agree") == 0;
    char name[40];

    (void)context;
    (void)end; /* now */
    if (!atomic_load_explicit(&trace_is_on, memory_order_relaxed))
        return;
    if (gettid() != getpid())
        trace_name_thread("all-reduce");
    snprintf(name, sizeof name, number > 0 ? "%s %d" : "%s", what, number);
    trace_end(start, agrees ? "phase" : "all-reduce", name, (double)bytes);
}

/* ---- one rank's part of the file */

static void profile_write_name(FILE *out, const char *what, int rank, int thread, const char *name)
{
    fprintf(out,
            "{\"ph\": \"M\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d, \"args\": {\"name\": "
            "\"%s\"}},\n",
            what, rank, thread, name);
}

static void profile_write_names(const struct profile *p, FILE *out, size_t dropped)
{
    const struct run *r = p->run;
    char host[64] = "", name[128];

    gethostname(host, sizeof host - 1);
    snprintf(name, sizeof name, "rank %d on %s", r->rank, host);
    profile_write_name(out, "process_name", r->rank, 0, name);
    fprintf(out,
            "{\"ph\": \"M\", \"name\": \"process_labels\", \"pid\": %d, \"args\": {\"labels\": "
            "\"clock within %.1f us of "
            "rank 0's\", \"gemm\": \"%s\", \"clock_offset_us\": %.3f, \"clock_error_us\": %.3f, "
            "\"spans_dropped\": "
            "%zu}},\n",
            r->rank, p->error * 1e6, conv_gemm_name(r->spec->model.gemm), p->offset * 1e6,
            p->error * 1e6, dropped);
    for (int t = 0; trace_thread_name(t); t++)
        profile_write_name(out, "thread_name", r->rank, t, trace_thread_name(t));
}

/* Of a layer: means of the threads, to be compared with its duration. */
static void profile_write_parts(FILE *out, const struct trace_span *s, int threads)
{
    static const char *const names[TRACE_PARTS] = {"im2col_ms", "gemm_ms", "bn_ms", "wait_ms"};

    for (int i = 0; i < TRACE_PARTS; i++)
        if (s->parts[i] > 0)
            fprintf(out, ", \"%s\": %.4f", names[i], 1e3 * s->parts[i] / threads);
}

static void profile_write_span(const struct profile *p, FILE *out, const struct trace_span *s)
{
    double seconds = s->end - s->start;

    fprintf(out,
            "{\"ph\": \"X\", \"name\": \"%s\", \"cat\": \"%s\", \"pid\": %d, \"tid\": %d, \"ts\": "
            "%.3f, \"dur\": %.3f",
            s->name, s->category, p->run->rank, s->thread, (s->start - p->offset - p->zero) * 1e6,
            seconds * 1e6);
    if (!(seconds > 0)) {
        /* no rate: JSON has no infinite number */
    } else if (s->work > 0 && strcmp(s->category, "all-reduce") == 0) {
        fprintf(out, ", \"args\": {\"bytes\": %.0f, \"gb_per_sec\": %.3f}", s->work,
                s->work / seconds * 1e-9);
    } else if (s->work > 0) {
        fprintf(out, ", \"args\": {\"gflop\": %.4f, \"gflops\": %.2f", s->work * 1e-9,
                s->work / seconds * 1e-9);
        profile_write_parts(out, s, p->run->threads);
        if (s->largest_share > 0)
            fprintf(out, ", \"largest_share\": %.3f", s->largest_share);
        fputc('}', out);
    }
    fputs("},\n", out);
}

static char *profile_rank_text(const struct profile *p, const struct trace_span *spans,
                               size_t count, size_t dropped, size_t *bytes)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, bytes);

    if (!out)
        return NULL;
    profile_write_names(p, out, dropped);
    for (size_t i = 0; i < count; i++)
        profile_write_span(p, out, &spans[i]);
    fclose(out);
    return text;
}

/* ---- all ranks */

/* Rank 0 gets the texts of all, in the order of the ranks, as one JSON array. */
static int profile_gather(const struct run *r, const char *text, size_t bytes, char **all,
                          struct error *e)
{
    void *texts;
    size_t used;

    if (traincomm_gather(r->comm, text, bytes, &texts, &used))
        return error_set(e, ERR_NO_MEMORY, "no memory for the trace of all ranks");
    if (r->rank != 0)
        return 0;
    /* without the last line's comma */
    int status = asprintf(all, "[\n%.*s\n]\n", (int)used - 2, (char *)texts) < 0
                     ? error_set(e, ERR_NO_MEMORY, "no memory for the trace of all ranks")
                     : 0;
    free(texts);
    return status;
}

static int profile_write_file(const struct run *r, const char *name, const char *text,
                              struct error *e)
{
    char path[PATH_MAX + 32];

    snprintf(path, sizeof path, "%s/%s", r->attempt_dir, name);
    return file_write_atomic(path, text, strlen(text), e);
}

static int profile_write_all(struct profile *p, const struct trace_span *spans, size_t count,
                             size_t dropped, struct error *e)
{
    struct run *r = p->run;
    char *all = NULL;
    size_t bytes = 0;
    double peak = peak_sgemm_gflops(r->comm, r->threads) / r->world;
    char *text = profile_rank_text(p, spans, count, dropped, &bytes);
    int status = text ? 0 : error_set(e, ERR_NO_MEMORY, "no memory for a trace");

    status = run_agree(r, status, e);
    if (!status)
        status = profile_gather(r, text, bytes, &all, e);
    if (!status && r->rank == 0)
        status = profile_write_file(r, "trace.json", all, e);
    free(all);
    free(text);
    if (!status && r->rank == 0) {
        char *table = layer_table(spans, count, r->threads, peak);
        status = table ? profile_write_file(r, "layers.txt", table, e)
                       : error_set(e, ERR_NO_MEMORY, "no memory for the table of layers");
        free(table);
    }
    return run_agree(r, status, e);
}

static int profile_warn_of_dropped(struct profile *p, size_t dropped, struct error *e)
{
    struct run *r = p->run;
    double all = (double)dropped;
    char words[160];
    int status = 0;

    traincomm_reduce(r->comm, TRAINCOMM_SUM, &all, 1);
    snprintf(words, sizeof words,
             "profile.steps: the trace contains the first %d spans, %.0f more were dropped; trace "
             "fewer steps",
             SPANS_MAX, all);
    if (all > 0)
        status = run_warn(r, r->spec->profile.last_step, words, e);
    return run_agree(r, status, e);
}

static int profile_end(struct profile *p, struct error *e)
{
    struct trace_span *spans;
    size_t dropped;

    trace_stop();
    p->state = DONE;
    size_t count = trace_take(&spans, &dropped);
    int status = profile_write_all(p, spans, count, dropped, e);
    free(spans);
    return status ? status : profile_warn_of_dropped(p, dropped, e);
}

int profile_before_step(struct profile *p, int64_t step, struct error *e)
{
    if (p->state == RUNS && step > p->run->spec->profile.last_step)
        return profile_end(p, e);
    if (p->state == WAITS && step >= p->run->spec->profile.first_step &&
        step <= p->run->spec->profile.last_step)
        profile_start(p);
    return 0;
}

int profile_finish(struct profile *p, struct error *e)
{
    struct run *r = p->run;
    char words[160];

    if (p->state == RUNS)
        return profile_end(p, e);
    if (p->state == DONE)
        return 0;
    p->state = DONE;
    snprintf(words, sizeof words,
             "profile.steps [%lld, %lld]: the run had no such step, nothing was traced",
             (long long)r->spec->profile.first_step, (long long)r->spec->profile.last_step);
    return run_agree(r, run_warn(r, r->plan->train_steps, words, e), e);
}
