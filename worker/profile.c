#include "worker/profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/trace.h"
#include "worker/layer_table.h"
#include "worker/peak.h"

#define PINGS 50 /* the fastest of them says the offset */
#define TAG   7

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

/* ---- clocks */

/* Rank 0's side: the offset of the other's clock is best known from the fastest answer, to half its
 * time (Cristian 1989). */
static void ping(MPI_Comm comm, int other, double answer[2])
{
    double fastest = INFINITY, there;

    for (int i = 0; i < PINGS; i++) {
        double sent = clock_monotonic();
        MPI_Send(&sent, 1, MPI_DOUBLE, other, TAG, comm);
        MPI_Recv(&there, 1, MPI_DOUBLE, other, TAG, comm, MPI_STATUS_IGNORE);
        double back = clock_monotonic();
        if (back - sent < fastest) {
            fastest = back - sent;
            answer[0] = there - (sent + back) / 2;
            answer[1] = fastest / 2;
        }
    }
    MPI_Send(answer, 2, MPI_DOUBLE, other, TAG, comm);
}

static void answer_pings(MPI_Comm comm, double result[2])
{
    for (int i = 0; i < PINGS; i++) {
        double sent, now;
        MPI_Recv(&sent, 1, MPI_DOUBLE, 0, TAG, comm, MPI_STATUS_IGNORE);
        now = clock_monotonic();
        MPI_Send(&now, 1, MPI_DOUBLE, 0, TAG, comm);
    }
    MPI_Recv(result, 2, MPI_DOUBLE, 0, TAG, comm, MPI_STATUS_IGNORE);
}

static void align_clocks(struct profile *p)
{
    const struct run *r = p->run;
    double mine[2] = {0, 0}, other[2];

    if (r->rank != 0)
        answer_pings(r->comm, mine);
    else
        for (int i = 1; i < r->world; i++)
            ping(r->comm, i, other);
    p->offset = mine[0];
    p->error = mine[1];
}

static void start(struct profile *p)
{
    align_clocks(p);
    p->zero = clock_monotonic();
    MPI_Bcast(&p->zero, 1, MPI_DOUBLE, 0, p->run->comm);
    trace_start(SPANS_MAX / (size_t)p->run->world);
    p->state = RUNS;
}

/* ---- one rank's part of the file */

static void write_name(FILE *out, const char *what, int rank, int thread, const char *name)
{
    fprintf(out,
            "{\"ph\": \"M\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d, \"args\": {\"name\": "
            "\"%s\"}},\n",
            what, rank, thread, name);
}

static void write_names(const struct profile *p, FILE *out, size_t dropped)
{
    const struct run *r = p->run;
    char host[64] = "", name[128];

    gethostname(host, sizeof host - 1);
    snprintf(name, sizeof name, "rank %d on %s", r->rank, host);
    write_name(out, "process_name", r->rank, 0, name);
    fprintf(out,
            "{\"ph\": \"M\", \"name\": \"process_labels\", \"pid\": %d, \"args\": {\"labels\": "
            "\"clock within %.1f us of "
            "rank 0's\", \"clock_offset_us\": %.3f, \"clock_error_us\": %.3f, \"spans_dropped\": "
            "%zu}},\n",
            r->rank, p->error * 1e6, p->offset * 1e6, p->error * 1e6, dropped);
    for (int t = 0; trace_thread_name(t); t++)
        write_name(out, "thread_name", r->rank, t, trace_thread_name(t));
}

/* Of a layer: means of the threads, to be compared with its duration. */
static void write_parts(FILE *out, const struct trace_span *s, int threads)
{
    static const char *const names[TRACE_PARTS] = {"im2col_ms", "gemm_ms", "bn_ms"};

    for (int i = 0; i < TRACE_PARTS; i++)
        if (s->parts[i] > 0)
            fprintf(out, ", \"%s\": %.4f", names[i], 1e3 * s->parts[i] / threads);
}

static void write_span(const struct profile *p, FILE *out, const struct trace_span *s)
{
    double seconds = s->end - s->start;

    fprintf(out,
            "{\"ph\": \"X\", \"name\": \"%s\", \"cat\": \"%s\", \"pid\": %d, \"tid\": %d, \"ts\": "
            "%.3f, \"dur\": %.3f",
            s->name, s->category, p->run->rank, s->thread, (s->start - p->offset - p->zero) * 1e6,
            seconds * 1e6);
    if (s->work > 0 && strcmp(s->category, "all-reduce") == 0) {
        fprintf(out, ", \"args\": {\"bytes\": %.0f, \"gb_per_sec\": %.3f}", s->work,
                s->work / seconds * 1e-9);
    } else if (s->work > 0) {
        fprintf(out, ", \"args\": {\"gflop\": %.4f, \"gflops\": %.2f", s->work * 1e-9,
                s->work / seconds * 1e-9);
        write_parts(out, s, p->run->threads);
        fputc('}', out);
    }
    fputs("},\n", out);
}

static char *rank_text(const struct profile *p, const struct trace_span *spans, size_t count,
                       size_t dropped, size_t *bytes)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, bytes);

    if (!out)
        return NULL;
    write_names(p, out, dropped);
    for (size_t i = 0; i < count; i++)
        write_span(p, out, &spans[i]);
    fclose(out);
    return text;
}

/* ---- all ranks */

/* Appends a rank's text to *all, of *used bytes. */
static int append(char **all, size_t *used, const char *text, size_t bytes, struct error *e)
{
    char *grown = realloc(*all, *used + bytes + 1);

    if (!grown)
        return error_set(e, ERR_NO_MEMORY, "no memory for the trace of all ranks");
    *all = grown;
    memcpy(grown + *used, text, bytes);
    *used += bytes;
    grown[*used] = '\0';
    return 0;
}

static int receive_and_append(MPI_Comm comm, int rank, char **all, size_t *used, struct error *e)
{
    MPI_Status envelope;
    int bytes, status;

    MPI_Probe(rank, TAG, comm, &envelope);
    MPI_Get_count(&envelope, MPI_BYTE, &bytes);
    char *text = malloc((size_t)bytes + 1);
    if (!text) /* truncated on purpose: the sender must not wait for ever */
        MPI_Abort(comm, 1);
    MPI_Recv(text, bytes, MPI_BYTE, rank, TAG, comm, MPI_STATUS_IGNORE);
    status = append(all, used, text, (size_t)bytes, e);
    free(text);
    return status;
}

/* Rank 0 gets the texts of all, in the order of the ranks, as one JSON array. */
static int gather(const struct run *r, const char *text, size_t bytes, char **all, struct error *e)
{
    size_t used = 0;
    int status = 0;

    if (r->rank != 0) {
        MPI_Send(text, (int)bytes, MPI_BYTE, 0, TAG, r->comm);
        return 0;
    }
    status = append(all, &used, "[\n", 2, e);
    if (!status)
        status = append(all, &used, text, bytes, e);
    for (int i = 1; i < r->world; i++) {
        int other = receive_and_append(r->comm, i, all, &used, e);
        status = status ? status : other;
    }
    if (!status)
        memcpy(*all + used - 2, "\n]", 2); /* over the last comma */
    return status;
}

static int write_file(const struct run *r, const char *name, const char *text, struct error *e)
{
    char path[PATH_MAX + 32];

    snprintf(path, sizeof path, "%s/%s", r->attempt_dir, name);
    return file_write_atomic(path, text, strlen(text), e);
}

static int write_all(struct profile *p, const struct trace_span *spans, size_t count,
                     size_t dropped, struct error *e)
{
    struct run *r = p->run;
    char *all = NULL;
    size_t bytes = 0;
    double peak = peak_sgemm_gflops(r->comm, r->threads) / r->world;
    char *text = rank_text(p, spans, count, dropped, &bytes);
    int status = text ? 0 : error_set(e, ERR_NO_MEMORY, "no memory for a trace");

    status = agree_on_error(r->comm, status, e, &r->failed_at);
    if (!status)
        status = gather(r, text, bytes, &all, e);
    if (!status && r->rank == 0)
        status = write_file(r, "trace.json", all, e);
    free(all);
    free(text);
    if (!status && r->rank == 0) {
        char *table = layer_table(spans, count, r->threads, peak);
        status = table ? write_file(r, "layers.txt", table, e)
                       : error_set(e, ERR_NO_MEMORY, "no memory for the table of layers");
        free(table);
    }
    return agree_on_error(r->comm, status, e, &r->failed_at);
}

static int warn_of_dropped(struct profile *p, size_t dropped, struct error *e)
{
    struct run *r = p->run;
    long long all = 0, mine = (long long)dropped;
    char words[160];
    int status = 0;

    MPI_Allreduce(&mine, &all, 1, MPI_LONG_LONG, MPI_SUM, r->comm);
    snprintf(words, sizeof words,
             "profile.steps: the trace holds its first %d spans, %lld more were left out; trace "
             "fewer steps",
             SPANS_MAX, all);
    if (all > 0)
        status = run_warn(r, r->spec->profile.last_step, words, e);
    return agree_on_error(r->comm, status, e, &r->failed_at);
}

static int end(struct profile *p, struct error *e)
{
    struct trace_span *spans;
    size_t dropped;

    trace_stop();
    p->state = DONE;
    size_t count = trace_take(&spans, &dropped);
    int status = write_all(p, spans, count, dropped, e);
    free(spans);
    return status ? status : warn_of_dropped(p, dropped, e);
}

int profile_before_step(struct profile *p, int64_t step, struct error *e)
{
    if (p->state == RUNS && step > p->run->spec->profile.last_step)
        return end(p, e);
    if (p->state == WAITS && step >= p->run->spec->profile.first_step &&
        step <= p->run->spec->profile.last_step)
        start(p);
    return 0;
}

int profile_finish(struct profile *p, struct error *e)
{
    struct run *r = p->run;
    char words[160];

    if (p->state == RUNS)
        return end(p, e);
    if (p->state == DONE)
        return 0;
    p->state = DONE;
    snprintf(words, sizeof words,
             "profile.steps [%lld, %lld]: the run had no such step, nothing was traced",
             (long long)r->spec->profile.first_step, (long long)r->spec->profile.last_step);
    return agree_on_error(r->comm, run_warn(r, r->plan->train_steps, words, e), e, &r->failed_at);
}
