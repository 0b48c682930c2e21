#include "worker/layer_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORWARD, BACKWARD, WAYS };

struct layer {
    char name[48];
    double seconds[WAYS], work[WAYS];
};

struct table {
    struct layer *layers;
    size_t count, steps;
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

static void add_span(struct table *t, const struct trace_span *s)
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
}

static void write_way(FILE *out, double seconds, double work, double steps, double peak)
{
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
}

static void write_layer(FILE *out, const struct layer *l, double steps, double peak)
{
    fprintf(out, "%-26s", l->name);
    for (int way = 0; way < WAYS; way++)
        write_way(out, l->seconds[way], l->work[way], steps, peak);
    fputc('\n', out);
}

static void write_table(FILE *out, const struct table *t, double peak)
{
    struct layer sum = {.name = "all"};
    double steps = t->steps ? (double)t->steps : 1;

    fprintf(out,
            "Rank 0, mean of %.0f steps; SGEMM peak of a rank %.1f GFLOP/s.\n"
            "A convolution's time includes im2col and the sums of batch norms around it; backward, "
            "all of them.\n\n"
            "%-26s %11s %8s %7s %11s %8s %7s\n",
            steps, peak, "layer", "forward ms", "GFLOP/s", "peak", "backward ms", "GFLOP/s",
            "peak");
    for (size_t i = 0; i < t->count; i++) {
        write_layer(out, &t->layers[i], steps, peak);
        for (int way = 0; way < WAYS; way++) {
            sum.seconds[way] += t->layers[i].seconds[way];
            sum.work[way] += t->layers[i].work[way];
        }
    }
    write_layer(out, &sum, steps, peak);
}

char *layer_table(const struct trace_span *spans, size_t count, double peak_gflops)
{
    struct table t = {.layers = calloc(count + 1, sizeof *t.layers)};
    char *text = NULL;
    size_t bytes;

    if (!t.layers)
        return NULL;
    for (size_t i = 0; i < count; i++)
        add_span(&t, &spans[i]);
    FILE *out = open_memstream(&text, &bytes);
    if (out) {
        write_table(out, &t, peak_gflops);
        fclose(out);
    }
    free(t.layers);
    return text;
}
