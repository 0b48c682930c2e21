#include "worker/save/predictions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/run/stall_report.h"
#include "common/system/file.h"
#include "common/text.h"
#include "common/xalloc.h"
#include "worker/watch/stall.h"

enum {
    NAME_BYTES = 128, /* size as in struct dataset_image */
    CALIBRATION_BINS = 15,
    EXAMPLES_MAX = 8,     /* images named of a mistake */
    CELLS_IN_EVENT = 2000 /* keeps a line far below the 256 KiB that the daemon reads */
};

struct prediction {
    int64_t index; /* position in the data set */
    int32_t label; /* -1: the image could not be decoded */
    int32_t top1;
    float p; /* softmax probability of class top1 */
};

struct predictions {
    struct dataset *data; /* borrowed; NULL: synthetic */
    struct prediction *items;
    size_t count, capacity;
};

struct predictions *predictions_create(const struct run *r)
{
    struct predictions *p = xcalloc(1, sizeof *p);

    p->data = r->eval_data;
    return p;
}

void predictions_destroy(struct predictions *p)
{
    if (!p)
        return;
    free(p->items);
    free(p);
}

static struct prediction predictions_make(const float *logits, int classes)
{
    struct prediction best = {.top1 = 0};
    double sum = 0;
    for (int c = 1; c < classes; c++)
        if (logits[c] > logits[best.top1])
            best.top1 = c;
    for (int c = 0; c < classes; c++)
        sum += exp((double)logits[c] - logits[best.top1]);
    best.p = (float)(1.0 / sum);
    return best;
}

int predictions_add(struct predictions *p, const struct loader_batch *batch, const float *logits,
                    int classes, struct error *e)
{
    if (!p)
        return 0;
    size_t count = p->count + (size_t)batch->n;
    struct prediction *more = array_reserve(p->items, count, &p->capacity, sizeof *more);
    if (!more)
        return error_set(e, ERR_NO_MEMORY, "no memory for %zu predictions", count);
    p->items = more;
    for (int i = 0; i < batch->n; i++) {
        struct prediction one = predictions_make(logits + (size_t)i * classes, classes);
        one.index = batch->indices[i];
        one.label = batch->labels[i];
        p->items[p->count++] = one;
    }
    return 0;
}

static int predictions_by_index(const void *a, const void *b)
{
    int64_t x = ((const struct prediction *)a)->index, y = ((const struct prediction *)b)->index;
    return (x > y) - (x < y);
}

/* The name in a class folder is its path; in a shard the record has to be read. */
static void predictions_name(struct predictions *p, int64_t index, char name[NAME_BYTES])
{
    struct dataset_image image;
    struct error e;

    if (!p->data) {
        snprintf(name, NAME_BYTES, "synthetic");
        return;
    }
    if (dataset_format(p->data) == DATASET_FOLDER) {
        const char *path = dataset_file(p->data, dataset_entry(p->data, index)->file);
        snprintf(name, NAME_BYTES, "%s", file_base_name(path));
        return;
    }
    if (dataset_read(p->data, index, &image, &e))
        snprintf(name, NAME_BYTES, "image %lld", (long long)index);
    else
        snprintf(name, NAME_BYTES, "%s", image.name);
    dataset_image_release(&image);
}

static int predictions_write_csv(struct predictions *p, const char *path, struct error *e)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    if (!out)
        return error_set(e, ERR_NO_MEMORY, "no memory for %s", path);
    fputs("file,label,top1,p\n", out);
    for (size_t i = 0; i < p->count; i++) {
        char name[NAME_BYTES];
        predictions_name(p, p->items[i].index, name);
        text_print_csv(out, name);
        fprintf(out, ",%d,%d,%.6g\n", p->items[i].label, p->items[i].top1, p->items[i].p);
        stall_progress_add(1);
    }
    fclose(out);
    int status = file_write_atomic(path, text, bytes, e);
    free(text);
    return status;
}

static int predictions_gather(struct predictions *p, struct run *r, struct error *e)
{
    void *all;
    size_t bytes;
    int status = 0;

    if (traincomm_gather(r->comm, p->items, p->count * sizeof *p->items, &all, &bytes)) {
        status = error_set(e, ERR_NO_MEMORY, "no memory for the predictions of all ranks");
    } else if (r->rank == 0) {
        free(p->items);
        p->items = all;
        p->count = bytes / sizeof *p->items;
        qsort(p->items, p->count, sizeof *p->items, predictions_by_index);
    }
    return status;
}

static double predictions_calibration_error(const struct predictions *p)
{
    double gaps[CALIBRATION_BINS] = {0}, images = 0, sum = 0;

    for (size_t i = 0; i < p->count; i++) {
        const struct prediction *one = &p->items[i];
        int bin = (int)ceil((double)one->p * CALIBRATION_BINS) - 1;
        if (one->label < 0)
            continue;
        gaps[bin < 0 ? 0 : bin] += (double)one->p - (one->label == one->top1);
        images++;
    }
    for (int b = 0; b < CALIBRATION_BINS; b++)
        sum += fabs(gaps[b]);
    return images > 0 ? sum / images : NAN;
}

static int predictions_by_cell(const void *a, const void *b)
{
    const struct prediction *x = a, *y = b;
    int64_t d = x->label != y->label ? x->label - (int64_t)y->label : x->top1 - (int64_t)y->top1;

    return d ? (d > 0) - (d < 0) : predictions_by_index(a, b);
}

/* Returns [label, predicted, images, [image, ...]] of the images from `first` on, and moves it
 * behind them. */
static json_t *predictions_take_cell(const struct predictions *p, size_t *first)
{
    const struct prediction *of = &p->items[*first], *one = of, *end = p->items + p->count;
    json_t *examples = json_array();

    for (; one < end && one->label == of->label && one->top1 == of->top1; one++)
        if (one->label != one->top1 && one - of < EXAMPLES_MAX)
            json_array_append_new(examples, json_integer(one->index));
    *first += (size_t)(one - of);
    return json_pack("[i,i,I,o]", of->label, of->top1, (json_int_t)(one - of), examples);
}

/* Warns once that accuracies are those of fewer classes. The predictions must be by cell. */
static int predictions_warn_of_missing(const struct predictions *p, struct run *r, int64_t step,
                                       struct error *e)
{
    int classes = (int)r->spec->model.classes, seen = 0, first = 0, before = -1;
    char message[160];

    for (size_t i = 0; i < p->count; before = p->items[i++].label) {
        seen += p->items[i].label > before;
        first += p->items[i].label == first;
    }
    bool told = r->counted_labels || !p->data || seen == 0 || seen == classes;
    r->counted_labels = true; /* with none at all, loader_judge_bad reports the error */
    snprintf(message, sizeof message,
             "data.eval has no images of %d of the %d classes, the first of them is %d: accuracies "
             "are those of the other classes",
             classes - seen, classes, first);
    return told ? 0 : run_warn(r, step, message, e);
}

static int predictions_report(struct predictions *p, struct run *r, int64_t step, struct error *e)
{
    int64_t cells = 0;
    size_t at = 0;
    int status;

    qsort(p->items, p->count, sizeof *p->items, predictions_by_cell);
    status = predictions_warn_of_missing(p, r, step, e);
    while (at < p->count && p->items[at].label < 0)
        at++;
    while (!status && at < p->count) {
        json_t *list = json_array();
        while (at < p->count && json_array_size(list) < CELLS_IN_EVENT)
            json_array_append_new(list, predictions_take_cell(p, &at));
        report_begin(r->report, EVENT_CONFUSION);
        report_int(r->report, "step", step);
        report_int(r->report, "from", cells);
        report_json(r->report, "cells", list);
        status = report_end(r->report, e);
        cells += (int64_t)json_array_size(list);
        json_decref(list);
    }
    qsort(p->items, p->count, sizeof *p->items, predictions_by_index);
    return status;
}

int predictions_finish(struct predictions *p, struct run *r, int64_t step, int with,
                       double *calibration_error, struct error *e)
{
    char path[PATH_MAX];
    int status = predictions_gather(p, r, e);

    if (status || r->rank != 0)
        return run_agree(r, status, e);
    file_path(path, NULL, "%s/predictions.csv", r->attempt_dir);
    *calibration_error = predictions_calibration_error(p);
    if (with & PREDICTIONS_CELLS)
        status = predictions_report(p, r, step, e);
    stall_doing(r->stall, STALL_FILES);
    if (!status && (with & PREDICTIONS_FILE))
        status = predictions_write_csv(p, path, e);
    stall_doing(r->stall, STALL_COMPUTE);
    return run_agree(r, status, e);
}
