#include "worker/watch/profile.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/run/trace.h"
#include "common/system/file.h"
#include "common/xalloc.h"
#include "worker/check/speed.h"

enum { FORWARD, BACKWARD, WAYS };

struct layer {
    char name[48];
    double seconds[WAYS], work[WAYS], bytes[WAYS];
    double parts[WAYS][TRACE_PARTS]; /* summed over the threads; indexed by direction */
    double largest[WAYS];            /* largest share of any thread, weighted by seconds */
};

struct table {
    struct layer *layers;
    size_t count, steps;
    int threads;
    double images;             /* of all steps */
    double gflops, gb_per_sec; /* SGEMM's and STREAM's, of one rank; 0: unknown */
};

static struct layer *profile_layer_of(struct table *t, const char *name)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->layers[i].name, name) == 0)
            return &t->layers[i];
    struct layer *l = &t->layers[t->count++];
    memset(l, 0, sizeof *l);
    snprintf(l->name, sizeof l->name, "%s", name);
    return l;
}

static void profile_layer_add_span(struct table *t, const struct trace_span *s)
{
    int way;

    if (strcmp(s->category, "step") == 0) {
        t->steps++;
        t->images += s->work;
    }
    if (strcmp(s->category, "forward") == 0)
        way = FORWARD;
    else if (strcmp(s->category, "backward") == 0)
        way = BACKWARD;
    else
        return;
    struct layer *l = profile_layer_of(t, s->name);
    l->seconds[way] += s->end - s->start;
    l->work[way] += s->work;
    l->bytes[way] += s->bytes;
    l->largest[way] += s->largest_share * (s->end - s->start);
    for (int i = 0; i < TRACE_PARTS; i++)
        l->parts[way][i] += s->parts[i];
}

/* A column of `width` characters; "-" instead of a value that is not positive. */
static void profile_layer_write_value(FILE *out, int width, int decimals, double value,
                                      const char *unit)
{
    int digits = width - (int)strlen(unit);

    if (value > 0)
        fprintf(out, " %*.*f%s", digits, decimals, value, unit);
    else
        fprintf(out, " %*s", width, "-");
}

static double profile_layer_ratio(double value, double of)
{
    return of > 0 ? value / of : 0;
}

static void profile_layer_write_way(FILE *out, const struct table *t, const struct layer *l,
                                    int way)
{
    double seconds = l->seconds[way], steps = t->steps ? (double)t->steps : 1;
    double gflops = 1e-9 * profile_layer_ratio(l->work[way], seconds);
    double gb_per_sec = 1e-9 * profile_layer_ratio(l->bytes[way], seconds);

    profile_layer_write_value(out, 11, 2, 1e3 * seconds / steps, "");
    profile_layer_write_value(out, 8, 1, gflops, "");
    profile_layer_write_value(out, 7, 0, 100 * profile_layer_ratio(gflops, t->gflops), " %");
    profile_layer_write_value(out, 8, 2, 1e-6 * profile_layer_ratio(l->bytes[way], t->images), "");
    profile_layer_write_value(out, 6, 1, gb_per_sec, "");
    profile_layer_write_value(out, 6, 0, 100 * profile_layer_ratio(gb_per_sec, t->gb_per_sec),
                              " %");
    for (int i = 0; i < TRACE_PARTS; i++)
        if (seconds > 0)
            fprintf(out, " %4.0f %%", 100 * l->parts[way][i] / (seconds * t->threads));
        else
            fprintf(out, " %6s", "-");
    profile_layer_write_value(out, 6, 2, profile_layer_ratio(l->largest[way], seconds), "");
}

static void profile_layer_write(FILE *out, const struct table *t, const struct layer *l)
{
    fprintf(out, "%-26s", l->name);
    for (int way = 0; way < WAYS; way++)
        profile_layer_write_way(out, t, l, way);
    fputc('\n', out);
}

static void profile_layer_add(struct layer *sum, const struct layer *l)
{
    for (int way = 0; way < WAYS; way++) {
        sum->seconds[way] += l->seconds[way];
        sum->work[way] += l->work[way];
        sum->bytes[way] += l->bytes[way];
        if (l->seconds[way] > 0)
            sum->largest[way] += l->largest[way];
        for (int i = 0; i < TRACE_PARTS; i++)
            sum->parts[way][i] += l->parts[way][i];
    }
}

static void profile_layer_write_head(FILE *out, const struct table *t)
{
    fprintf(
        out,
        "Rank 0, mean of %zu steps; SGEMM peak of a rank %.1f GFLOP/s, by processor "
        "time; convolutions count as direct, so Winograd's may be above it.\n"
        "MB: of an image, moved to and from memory at least: what a layer reads and writes, each "
        "once, as if the caches were empty before it. STREAM: %.1f GB/s.\n"
        "im2col (or Winograd's transforms), products and bn (batch norm's sums and gradients, "
        "taken while a tile is in the cache) are shares of a layer's time, and so is wait: the "
        "threads' for each other.\n"
        "share: the thread that worked longest over the mean of all.\n\n"
        "%-26s",
        t->steps, t->gflops, t->gb_per_sec, "layer");
    for (int way = 0; way < WAYS; way++)
        fprintf(out, " %11s %8s %7s %8s %6s %6s %6s %6s %6s %6s %6s",
                way == FORWARD ? "forward ms" : "backward ms", "GFLOP/s", "peak", "MB", "GB/s",
                "STREAM", "im2col", "gemm", "bn", "wait", "share");
    fputc('\n', out);
}

/* Returns one line per layer in order of first appearance: milliseconds per step, GFLOP/s and MB an
 * image, with GB/s, and their shares of the machine's; the layer's parts; then totals. The caller
 * frees it. t: the threads and the machine's speeds. */
static char *profile_layer_table(struct table *t, const struct trace_span *spans, size_t count)
{
    struct layer sum = {.name = "all"};
    char *text = NULL;
    size_t bytes;

    t->layers = xcalloc(count + 1, sizeof *t->layers);
    for (size_t i = 0; i < count; i++)
        profile_layer_add_span(t, &spans[i]);
    FILE *out = must_alloc(open_memstream(&text, &bytes));
    profile_layer_write_head(out, t);
    for (size_t i = 0; i < t->count; i++) {
        profile_layer_write(out, t, &t->layers[i]);
        profile_layer_add(&sum, &t->layers[i]);
    }
    profile_layer_write(out, t, &sum);
    fclose(out);
    free(t->layers);
    return text;
}

#define SPANS_MAX 400000 /* over all ranks; about 100 MB, the most that viewers can open */

enum state { WAITS, RUNS, DONE };

struct profile {
    struct run *run;
    enum state state;
    double zero; /* time 0 of the trace on rank 0's clock */
    double offset,
        error; /* this rank's clock minus rank 0's, and the uncertainty of that; seconds */
};

struct profile *profile_create(struct run *r)
{
    struct profile *p = xcalloc(1, sizeof *p);

    p->run = r;
    p->state = r->spec->profile.has_steps ? WAITS : DONE;
    return p;
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
    (void)end; /* trace_end takes the time itself */
    if (!atomic_load_explicit(&trace_is_on, memory_order_relaxed))
        return;
    if (gettid() != getpid())
        trace_name_thread("all-reduce");
    snprintf(name, sizeof name, number > 0 ? "%s %d" : "%s", what, number);
    trace_end(start, agrees ? "phase" : "all-reduce", name, (double)bytes);
}

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
        /* Omit the rate if no time has passed: JSON cannot express infinity. */
    } else if (s->work > 0 && strcmp(s->category, "all-reduce") == 0) {
        fprintf(out, ", \"args\": {\"bytes\": %.0f, \"gb_per_sec\": %.6g}", s->work,
                s->work / seconds * 1e-9);
    } else if (strcmp(s->category, "step") == 0) {
        fprintf(out, ", \"args\": {\"images\": %.0f}", s->work);
    } else if (s->work > 0 || s->bytes > 0) {
        fprintf(out, ", \"args\": {\"bytes\": %.0f, \"gb_per_sec\": %.6g", s->bytes,
                s->bytes / seconds * 1e-9);
        if (s->work > 0)
            fprintf(out, ", \"gflop\": %.4f, \"gflops\": %.2f", s->work * 1e-9,
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

static int profile_gather(const struct run *r, const char *text, size_t bytes, char **all,
                          struct error *e)
{
    void *texts;
    size_t used;

    if (traincomm_gather(r->comm, text, bytes, &texts, &used))
        return error_set(e, ERR_NO_MEMORY, "no memory for the trace of all ranks");
    if (r->rank != 0)
        return 0;
    /* Drops the comma after the last line. */
    int status = asprintf(all, "[\n%.*s\n]\n", (int)used - 2, (char *)texts) < 0
                     ? error_set(e, ERR_NO_MEMORY, "no memory for the trace of all ranks")
                     : 0;
    free(texts);
    return status;
}

static int profile_write_file(const struct run *r, const char *name, const char *text,
                              struct error *e)
{
    char path[PATH_MAX];
    int status = file_path(path, e, "%s/%s", r->attempt_dir, name);

    return status ? status : file_write_atomic(path, text, strlen(text), e);
}

static int profile_write_all(struct profile *p, const struct trace_span *spans, size_t count,
                             size_t dropped, struct error *e)
{
    struct run *r = p->run;
    char *all = NULL;
    size_t bytes = 0;
    struct table table = {.threads = r->threads,
                          .gflops = speed_sgemm_peak(r->comm, r->threads) / r->world,
                          .gb_per_sec = speed_stream(r->comm, r->threads) / r->world};
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
        char *layers = profile_layer_table(&table, spans, count);
        status = profile_write_file(r, "layers.txt", layers, e);
        free(layers);
    }
    return run_agree(r, status, e);
}

static int profile_warn_of_dropped(struct profile *p, size_t dropped, struct error *e)
{
    struct run *r = p->run;
    double all = (double)dropped;
    char text[160];
    int status = 0;

    traincomm_reduce(r->comm, TRAINCOMM_SUM, &all, 1);
    snprintf(text, sizeof text,
             "profile.steps: the trace contains the first %d spans, %.0f more were dropped; trace "
             "fewer steps",
             SPANS_MAX, all);
    if (all > 0)
        status = run_warn(r, r->spec->profile.last_step, text, e);
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
    char text[160];

    if (p->state == RUNS)
        return profile_end(p, e);
    if (p->state == DONE)
        return 0;
    p->state = DONE;
    snprintf(text, sizeof text,
             "profile.steps [%lld, %lld]: the run did not reach these steps, nothing was traced",
             (long long)r->spec->profile.first_step, (long long)r->spec->profile.last_step);
    return run_agree(r, run_warn(r, r->plan->train_steps, text, e), e);
}
