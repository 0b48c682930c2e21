#include "worker/data/resample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void resample_filter_free(struct resample_filter *f)
{
    free(f->start);
    free(f->weights);
    *f = (struct resample_filter){0};
}

static int reserve(struct resample_filter *f, int outputs, int taps, struct error *e)
{
    size_t starts = (size_t)outputs, weights = (size_t)outputs * (size_t)taps;

    if (starts > f->start_room) {
        free(f->start);
        f->start = malloc(starts * sizeof *f->start);
        f->start_room = f->start ? starts : 0;
    }
    if (weights > f->weights_room) {
        free(f->weights);
        f->weights = malloc(weights * sizeof *f->weights);
        f->weights_room = f->weights ? weights : 0;
    }
    f->outputs = outputs;
    f->taps = taps;
    if (!f->start || !f->weights)
        return error_set(e, ERR_NO_MEMORY, "no memory for a filter of %zu weights", weights);
    memset(f->weights, 0, weights * sizeof *f->weights);
    return 0;
}

/* As Pillow's precompute_coeffs (libImaging/Resample.c): the centre of output i is (i + 0.5) *
 * scale, the triangle's support is max(scale, 1), its ends are rounded to whole pixels, and the
 * weights are normalised. */
int resample_filter_triangle(struct resample_filter *f, int inputs, int size, int first, int count,
                             struct error *e)
{
    double scale = (double)inputs / size, support = scale < 1 ? 1 : scale;
    int taps = 2 * (int)ceil(support) + 1;

    if (taps > inputs)
        taps = inputs;
    int rc = reserve(f, count, taps, e);
    if (rc)
        return rc;
    for (int i = 0; i < count; i++) {
        double center = (first + i + 0.5) * scale, sum = 0;
        int from = (int)(center - support + 0.5), end = (int)(center + support + 0.5);
        from = from < 0 ? 0 : from;
        end = end > inputs ? inputs : end;
        int start = from + taps > inputs ? inputs - taps : from;
        float *weights = f->weights + (size_t)i * (size_t)taps;
        for (int x = from; x < end; x++)
            sum += fmax(0, 1 - fabs(x - center + 0.5) / support);
        for (int x = from; x < end; x++)
            weights[x - start] = (float)(fmax(0, 1 - fabs(x - center + 0.5) / support) / sum);
        f->start[i] = start;
    }
    return 0;
}

/* Keys' cubic at distance x in [0, 2]. */
static float cubic(float x)
{
    const float a = -0.75f;
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

int resample_filter_tf_bicubic(struct resample_filter *f, int inputs, int size, struct error *e)
{
    float scale = (float)inputs / (float)size;
    int taps = inputs < 4 ? inputs : 4;

    int rc = reserve(f, size, taps, e);
    if (rc)
        return rc;
    for (int i = 0; i < size; i++) {
        float at = (float)i * scale;
        int in = (int)floorf(at), start = in - 1;
        float phase = (float)lrintf((at - (float)in) * 1024) / 1024;
        float four[4] = {cubic(1 + phase), cubic(phase), cubic(1 - phase), cubic(2 - phase)};
        start = start > inputs - taps ? inputs - taps : start;
        start = start < 0 ? 0 : start;
        for (int k = 0; k < 4; k++) {
            int x = in - 1 + k;
            x = x < 0 ? 0 : x >= inputs ? inputs - 1 : x;
            f->weights[i * taps + x - start] += four[k];
        }
        f->start[i] = start;
    }
    return 0;
}

void resample_filter_flip(struct resample_filter *f)
{
    for (int i = 0, j = f->outputs - 1; i < j; i++, j--) {
        int start = f->start[i];
        f->start[i] = f->start[j];
        f->start[j] = start;
        for (int k = 0; k < f->taps; k++) {
            float *a = f->weights + (size_t)i * (size_t)f->taps + k;
            float *b = f->weights + (size_t)j * (size_t)f->taps + k;
            float weight = *a;
            *a = *b;
            *b = weight;
        }
    }
}

/* row[i] = sum over the taps of weight * source row. */
static void add_rows(const uint8_t *source, size_t stride, const float *weights, int taps,
                     int count, float *restrict row)
{
    for (int i = 0; i < count; i++)
        row[i] = weights[0] * source[i];
    for (int k = 1; k < taps; k++) {
        const uint8_t *restrict from = source + (size_t)k * stride;
        const float weight = weights[k];
        for (int i = 0; i < count; i++)
            row[i] += weight * from[i];
    }
}

static float whole(float value)
{
    value = floorf(value + 0.5f);
    return value < 0 ? 0 : value > 255 ? 255 : value;
}

static void grey_columns(const float *row, const struct resample_filter *f,
                         const struct resample_output *o, float *restrict out)
{
    for (int x = 0; x < f->outputs; x++) {
        const float *from = row + f->start[x], *weights = f->weights + (size_t)x * (size_t)f->taps;
        float value = 0;
        for (int k = 0; k < f->taps; k++)
            value += weights[k] * from[k];
        if (o->round)
            value = whole(value);
        for (int c = 0; c < 3; c++)
            out[3 * x + c] = value * o->scale[c] + o->shift[c];
    }
}

static void rgb_columns(const float *row, const struct resample_filter *f,
                        const struct resample_output *o, float *restrict out)
{
    for (int x = 0; x < f->outputs; x++) {
        const float *from = row + 3 * f->start[x];
        const float *weights = f->weights + (size_t)x * (size_t)f->taps;
        float value[3] = {0, 0, 0};
        for (int k = 0; k < f->taps; k++)
            for (int c = 0; c < 3; c++)
                value[c] += weights[k] * from[3 * k + c];
        for (int c = 0; c < 3; c++) {
            if (o->round)
                value[c] = whole(value[c]);
            out[3 * x + c] = value[c] * o->scale[c] + o->shift[c];
        }
    }
}

/* The columns that any output looks at: an evaluation crop leaves out the sides. */
static void used_inputs(const struct resample_filter *f, int *first, int *end)
{
    *first = f->start[0];
    *end = f->start[0];
    for (int i = 0; i < f->outputs; i++) {
        *first = f->start[i] < *first ? f->start[i] : *first;
        *end = f->start[i] + f->taps > *end ? f->start[i] + f->taps : *end;
    }
}

void resample(const struct jpeg_pixels *in, const struct resample_box *box,
              const struct resample_filter *rows, const struct resample_filter *columns,
              const struct resample_output *output, float *row, float *out)
{
    size_t stride = (size_t)in->width * (size_t)in->channels;
    const uint8_t *corner =
        in->data + (size_t)box->y * stride + (size_t)box->x * (size_t)in->channels;
    int first, end;

    used_inputs(columns, &first, &end);
    first *= in->channels;
    end *= in->channels;
    for (int y = 0; y < rows->outputs; y++, out += 3 * (size_t)columns->outputs) {
        const uint8_t *source = corner + (size_t)rows->start[y] * stride + first;
        const float *weights = rows->weights + (size_t)y * (size_t)rows->taps;
        add_rows(source, stride, weights, rows->taps, end - first, row + first);
        if (in->channels == 1)
            grey_columns(row, columns, output, out);
        else
            rgb_columns(row, columns, output, out);
    }
}
