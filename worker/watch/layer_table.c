#include "worker/watch/layer_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORWARD, BACKWARD, WAYS };

struct layer {
    char name[48];
    double seconds[WAYS], work[WAYS];
    double parts[WAYS][TRACE_PARTS]; /* seconds of all threads */
    double largest[WAYS];            /* shares of a thread, by seconds */
};

struct table {
    struct layer *layers;
    size_t count, steps;
    int threads;
};

static struct layer *layer_of(struct table *t, const char *name)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->layers[i].name, name) == 0)
            return &t->layers[i];
    struct layer *l = &t->layers[t->count++];
    memset(l, 0, sizeof *l);
    snprintf(l->name, sizeof l->name, "%s", name);
    return l;
}

static void layer_table_add_span(struct table *t, const struct trace_span *s)
{
    int way;

    if (strcmp(s->category, "step") == 0)
        t->steps++;
    if (strcmp(s->category, "forward") == 0)
        way = FORWARD;
    else if (strcmp(s->category, "backward") == 0)
        way = BACKWARD;
    else
        return;
    struct layer *l = layer_of(t, s->name);
    l->seconds[way] += s->end - s->start;
    l->work[way] += s->work;
    l->largest[way] += s->largest_share * (s->end - s->start);
    for (int i = 0; i < TRACE_PARTS; i++)
        l->parts[way][i] += s->parts[i];
}

static void layer_table_write_way(FILE *out, const struct table *t, const struct layer *l, int way,
                                  double peak)
{
    double seconds = l->seconds[way], work = l->work[way], steps = t->steps ? (double)t->steps : 1;
    double gflops = seconds > 0 ? work / seconds * 1e-9 : 0;

    if (seconds > 0)
        fprintf(out, " %11.2f", 1e3 * seconds / steps);
    else
        fprintf(out, " %11s", "-");
    if (work > 0)
        fprintf(out, " %8.1f", gflops);
    else
        fprintf(out, " %8s", "-");
    if (work > 0 && peak > 0)
        fprintf(out, " %5.0f %%", 100 * gflops / peak);
    else
        fprintf(out, " %7s", "-");
    for (int i = 0; i < TRACE_PARTS; i++)
        if (work > 0 && seconds > 0)
            fprintf(out, " %4.0f %%", 100 * l->parts[way][i] / (seconds * t->threads));
        else
            fprintf(out, " %6s", "-");
    if (work > 0 && l->largest[way] > 0)
        fprintf(out, " %6.2f", l->largest[way] / seconds);
    else
        fprintf(out, " %6s", "-");
}

static void layer_table_write(FILE *out, const struct table *t, const struct layer *l, double peak)
{
    fprintf(out, "%-26s", l->name);
    for (int way = 0; way < WAYS; way++)
        layer_table_write_way(out, t, l, way, peak);
    fputc('\n', out);
}

static void layer_table_add(struct layer *sum, const struct layer *l)
{
    for (int way = 0; way < WAYS; way++) {
        sum->seconds[way] += l->seconds[way];
        sum->work[way] += l->work[way];
        if (l->work[way] > 0)
            sum->largest[way] += l->largest[way];
        for (int i = 0; i < TRACE_PARTS; i++)
            sum->parts[way][i] += l->parts[way][i];
    }
}

static void layer_table_write_head(FILE *out, const struct table *t, double peak)
{
    fprintf(out,
            "Rank 0, mean of %zu steps; SGEMM peak of a rank %.1f GFLOP/s, by processor "
            "time; convolutions count as direct, so Winograd's may be above it.\n"
            "im2col (or Winograd's transforms), products and bn (batch norm's sums and gradients, "
            "taken while a tile is in the cache) are shares of a layer's time, and so is wait: the "
            "threads' for each other.\n"
            "share: the thread that worked longest over the mean of all.\n\n"
            "%-26s",
            t->steps, peak, "layer");
    for (int way = 0; way < WAYS; way++)
        fprintf(out, " %11s %8s %7s %6s %6s %6s %6s %6s",
                way == FORWARD ? "forward ms" : "backward ms", "GFLOP/s", "peak", "im2col", "gemm",
                "bn", "wait", "share");
    fputc('\n', out);
}

static void layer_table_write_table(FILE *out, const struct table *t, double peak)
{
    struct layer sum = {.name = "all"};

    layer_table_write_head(out, t, peak);
    for (size_t i = 0; i < t->count; i++) {
        layer_table_write(out, t, &t->layers[i], peak);
        layer_table_add(&sum, &t->layers[i]);
    }
    layer_table_write(out, t, &sum, peak);
}

char *layer_table(const struct trace_span *spans, size_t count, int threads, double peak_gflops)
{
    struct table t = {.layers = calloc(count + 1, sizeof *t.layers), .threads = threads};
    char *text = NULL;
    size_t bytes;

    if (!t.layers)
        return NULL;
    for (size_t i = 0; i < count; i++)
        layer_table_add_span(&t, &spans[i]);
    FILE *out = open_memstream(&text, &bytes);
    if (out) {
        layer_table_write_table(out, &t, peak_gflops);
        fclose(out);
    }
    free(t.layers);
    return text;
}
