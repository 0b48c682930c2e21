#include "common/image/resample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void resample_filter_free(struct resample_filter *f)
{
    free(f->start);
    free(f->weights);
    *f = (struct resample_filter){0};
}

static int resample_reserve(struct resample_filter *f, int inputs, int outputs, int taps,
                            struct error *e)
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
    f->inputs = inputs;
    f->outputs = outputs;
    f->taps = taps;
    if (!f->start || !f->weights)
        return error_set(e, ERR_NO_MEMORY, "no memory for a filter of %zu weights", weights);
    memset(f->weights, 0, weights * sizeof *f->weights);
    return 0;
}

static void resample_triangle_span(double center, double support, int inputs, int *from, int *end)
{
    *from = (int)(center - support + 0.5);
    *end = (int)(center + support + 0.5);
    *from = *from < 0 ? 0 : *from;
    *end = *end > inputs ? inputs : *end;
}

/* Like Pillow's precompute_coeffs (libImaging/Resample.c): the centre of output i is (i + 0.5) *
 * scale, the triangle's support is max(scale, 1), its ends are rounded to whole pixels, and the
 * weights are normalised. */
int resample_filter_triangle(struct resample_filter *f, int start, int inputs, bool halved,
                             int size, int first, int count, struct error *e)
{
    double scale = (double)inputs / size, support = scale < 1 ? 1 : scale;
    int odd = halved ? start % 2 : 0; /* the first pixel is the second one of its pair */
    int taps = 1, from, end;

    for (int i = 0; i < count; i++) {
        resample_triangle_span((first + i + 0.5) * scale, support, inputs, &from, &end);
        int used = ((end - 1 + odd) >> halved) + 1 - ((from + odd) >> halved);
        taps = used > taps ? used : taps;
    }
    inputs += odd;
    int rc = resample_reserve(f, (inputs + halved) >> halved, count, taps, e);
    if (rc)
        return rc;
    for (int i = 0; i < count; i++) {
        double center = (first + i + 0.5) * scale, sum = 0;
        resample_triangle_span(center, support, inputs - odd, &from, &end);
        int at = (from + odd) >> halved;
        f->start[i] = at + taps > f->inputs ? f->inputs - taps : at;
        float *weights = f->weights + (size_t)i * (size_t)taps;
        for (int x = from; x < end; x++)
            sum += fmax(0, 1 - fabs(x - center + 0.5) / support);
        for (int x = from; x < end; x++)
            weights[((x + odd) >> halved) - f->start[i]] +=
                (float)(fmax(0, 1 - fabs(x - center + 0.5) / support) / sum);
    }
    return 0;
}

static float resample_cubic(float x)
{
    const float a = -0.75f;
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

int resample_filter_tf_bicubic(struct resample_filter *f, int inputs, int size, int first,
                               int count, struct error *e)
{
    float scale = (float)inputs / (float)size;
    int taps = inputs < 4 ? inputs : 4;

    int rc = resample_reserve(f, inputs, count, taps, e);
    if (rc)
        return rc;
    for (int i = 0; i < count; i++) {
        float at = (float)(first + i) * scale;
        int in = (int)floorf(at), start = in - 1;
        float phase = (float)lrintf((at - (float)in) * 1024) / 1024;
        float four[4] = {resample_cubic(1 + phase), resample_cubic(phase),
                         resample_cubic(1 - phase), resample_cubic(2 - phase)};
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

int resample_filter_tf_bilinear(struct resample_filter *f, int inputs, int size, int first,
                                int count, struct error *e)
{
    float scale = (float)inputs / (float)size;
    int taps = inputs < 2 ? inputs : 2;

    int rc = resample_reserve(f, inputs, count, taps, e);
    if (rc)
        return rc;
    for (int i = 0; i < count; i++) {
        float at = (float)(first + i) * scale;
        int low = (int)at;
        low = low > inputs - 1 ? inputs - 1 : low;
        int high = low + 1 < inputs ? low + 1 : low;
        int start = low + taps > inputs ? inputs - taps : low;
        float *weights = f->weights + (size_t)i * (size_t)taps;
        weights[low - start] += 1 - (at - (float)low);
        weights[high - start] += at - (float)low;
        f->start[i] = start;
    }
    return 0;
}

static void resample_swap_weights(float *a, float *b)
{
    float weight = *a;
    *a = *b;
    *b = weight;
}

void resample_filter_flip_outputs(struct resample_filter *f)
{
    size_t taps = (size_t)f->taps;

    for (int i = 0, j = f->outputs - 1; i < j; i++, j--) {
        int start = f->start[i];
        f->start[i] = f->start[j];
        f->start[j] = start;
        for (size_t k = 0; k < taps; k++)
            resample_swap_weights(f->weights + (size_t)i * taps + k,
                                  f->weights + (size_t)j * taps + k);
    }
}

void resample_filter_flip_inputs(struct resample_filter *f)
{
    for (int i = 0; i < f->outputs; i++) {
        float *weights = f->weights + (size_t)i * (size_t)f->taps;
        f->start[i] = f->inputs - f->start[i] - f->taps;
        for (int a = 0, b = f->taps - 1; a < b; a++, b--)
            resample_swap_weights(weights + a, weights + b);
    }
}

void resample_filter_used(const struct resample_filter *f, int *first, int *end)
{
    *first = f->start[0];
    *end = f->start[0];
    for (int i = 0; i < f->outputs; i++) {
        *first = f->start[i] < *first ? f->start[i] : *first;
        *end = f->start[i] + f->taps > *end ? f->start[i] + f->taps : *end;
    }
}

/* row[i] (+)= sum over the taps of weight * source row. Inlined, so that taps is a constant and the
 * loop over i is vectorised. */
static inline __attribute__((always_inline)) void add_taps(const uint8_t *restrict source,
                                                           size_t stride,
                                                           const float *restrict weights, int taps,
                                                           int count, bool add, float *restrict row)
{
    for (int i = 0; i < count; i++) {
        float value = add ? row[i] : 0;
        for (int k = 0; k < taps; k++)
            value += weights[k] * source[(size_t)k * stride + (size_t)i];
        row[i] = value;
    }
}

static void resample_add_rows(const uint8_t *source, size_t stride, const float *weights, int taps,
                              int count, float *row)
{
    for (bool add = false; taps > 0; add = true) {
        if (taps >= 4 && add)
            add_taps(source, stride, weights, 4, count, true, row);
        else if (taps >= 4)
            add_taps(source, stride, weights, 4, count, false, row);
        else if (taps == 3)
            add_taps(source, stride, weights, 3, count, add, row);
        else if (taps == 2)
            add_taps(source, stride, weights, 2, count, add, row);
        else
            add_taps(source, stride, weights, 1, count, add, row);
        source += 4 * stride;
        weights += 4;
        taps -= 4;
    }
}

static float resample_round(float value)
{
    value = floorf(value + 0.5f);
    return value < 0 ? 0 : value > 255 ? 255 : value;
}

static void resample_grey_columns(const float *row, const struct resample_filter *f,
                                  const struct resample_output *o, float *restrict out)
{
    for (int x = 0; x < f->outputs; x++) {
        const float *from = row + f->start[x], *weights = f->weights + (size_t)x * (size_t)f->taps;
        float value = 0;
        for (int k = 0; k < f->taps; k++)
            value += weights[k] * from[k];
        if (o->round)
            value = resample_round(value);
        for (int c = 0; c < o->grey_channels; c++)
            *out++ = value * o->scale[c] + o->shift[c];
    }
}

typedef float pixel __attribute__((vector_size(16)));
typedef float pixel_anywhere __attribute__((vector_size(16), aligned(4)));
typedef int32_t whole_pixel __attribute__((vector_size(16)));

/* Rounds to the nearest of 0 to 255. A vector comparison yields all bits set or none. */
static inline pixel resample_round_pixel(pixel p)
{
    whole_pixel number = __builtin_convertvector(p + 0.5f, whole_pixel);
    number &= number > 0;
    whole_pixel over = number > 255;
    return __builtin_convertvector((number & ~over) | (over & 255), pixel);
}

/* Stores each pixel as four floats, of which the next pixel overwrites the last, except for *last,
 * after which another image may begin. */
static inline __attribute__((always_inline)) void
colour_taps(const float *row, int channels, const struct resample_filter *f, int taps,
            const struct resample_output *o, float *out, float *last)
{
    const pixel scale = {o->scale[0], o->scale[1], o->scale[2], 0};
    const pixel shift = {o->shift[0], o->shift[1], o->shift[2], 0};
    const float *weights = f->weights;

    for (int x = 0; x < f->outputs; x++, weights += taps, out += 3) {
        const float *from = row + channels * f->start[x];
        pixel value = weights[0] * *(const pixel_anywhere *)from;
        for (int k = 1; k < taps; k++)
            value += weights[k] * *(const pixel_anywhere *)(from + k * channels);
        if (o->round)
            value = resample_round_pixel(value);
        value = value * scale + shift;
        if (out == last)
            memcpy(out, &value, 3 * sizeof *out);
        else
            memcpy(out, &value, 4 * sizeof *out);
    }
}

static void resample_colour_columns(const float *row, int channels, const struct resample_filter *f,
                                    const struct resample_output *o, float *out, float *last)
{
    if (channels == 4 && f->taps == 2)
        colour_taps(row, 4, f, 2, o, out, last);
    else if (channels == 4 && f->taps == 3)
        colour_taps(row, 4, f, 3, o, out, last);
    else if (channels == 4 && f->taps == 4)
        colour_taps(row, 4, f, 4, o, out, last);
    else
        colour_taps(row, channels, f, f->taps, o, out, last);
}

void resample(const struct jpeg_pixels *in, const struct resample_box *box,
              const struct resample_filter *rows, const struct resample_filter *columns,
              const struct resample_output *output, float *row, float *out)
{
    size_t channels = (size_t)in->channels, stride = (size_t)in->width * channels;
    size_t channels_out = channels == 1 ? (size_t)output->grey_channels : 3;
    size_t floats = channels_out * (size_t)columns->outputs;
    float *last = out + floats * (size_t)rows->outputs - channels_out;
    int first, end;

    resample_filter_used(columns, &first, &end);
    size_t skip = (size_t)(box->x + first) * channels, into = (size_t)first * channels;
    for (int y = 0; y < rows->outputs; y++, out += floats) {
        const uint8_t *source = in->data + (size_t)(box->y + rows->start[y]) * stride + skip;
        const float *weights = rows->weights + (size_t)y * (size_t)rows->taps;
        resample_add_rows(source, stride, weights, rows->taps, (end - first) * in->channels,
                          row + into);
        if (in->channels == 1)
            resample_grey_columns(row, columns, output, out);
        else
            resample_colour_columns(row, in->channels, columns, output, out, last);
    }
}
