#include "worker/layers/conv_grouped.h"

#include <string.h>

#include "common/trace.h"
#include "worker/kernels/vec.h"

#define INLINE static inline __attribute__((always_inline))

/* Sums that stay in registers: pixels of a strip (forward); three taps of so many channels of a
 * group (weights). */
enum { KERNEL = 3, TAPS = 9, STRIP = VEC == 16 ? 14 : 7, WEIGHT_CHANNELS = 4 };

/* Channels are worked on in slices: a vector of small groups, or one large group. */
struct slices {
    size_t group;    /* channels a group */
    size_t width;    /* channels a slice */
    size_t channels; /* of the tensor */
    size_t padded;   /* height and width of an input with its border */
    size_t in, out, stride;
};

static struct slices slices_of(const struct conv *c)
{
    size_t group = (size_t)(c->window.channels / c->groups);
    return (struct slices){group,
                           group > VEC ? group : VEC,
                           (size_t)c->window.channels,
                           (size_t)c->window.in + 2,
                           (size_t)c->window.in,
                           (size_t)c->window.out,
                           (size_t)c->window.stride};
}

bool conv_grouped_takes(const struct conv *c)
{
    int group = c->window.channels / c->groups;
    return c->window.channels == c->out_channels && group >= 4 && !(group & (group - 1)) &&
           c->window.channels % (group > VEC ? group : VEC) == 0 && c->window.kernel == KERNEL &&
           c->window.pad == 1 && c->window.stride <= 2;
}

static size_t slice_weights(const struct slices *s)
{
    return TAPS * s->group * s->width;
}

/* Weights, their gradient, an input slice with its border, a slice of dz. */
size_t conv_grouped_scratch_floats(const struct conv *c)
{
    struct slices s = slices_of(c);
    return 2 * conv_weights(c) + (s.padded * s.padded + s.out * s.out) * s.width;
}

/* To (slice, ky, kx, channel of the group that is read, channel written). */
static void pack(const struct slices *s, const float *w, float *to)
{
    for (size_t at = 0; at < s->channels; at += s->width)
        for (size_t row = 0; row < TAPS * s->group; row++, to += s->width)
            memcpy(to, w + row * s->channels + at, s->width * sizeof *to);
}

/* The same of the kernel that leads back: turned by 180 degrees, channels swapped within the
 * groups. */
static void pack_turned(const struct slices *s, const float *w, float *to)
{
    for (size_t at = 0; at < s->channels; at += s->width)
        for (size_t t = 0; t < TAPS; t++)
            for (size_t o = 0; o < s->group; o++)
                for (size_t i = 0; i < s->width; i++) {
                    size_t in_group = i % s->group, written = at + i - in_group + o;
                    *to++ = w[((TAPS - 1 - t) * s->group + in_group) * s->channels + written];
                }
}

static void unpack(const struct slices *s, const float *from, float *dw, bool add)
{
    for (size_t at = 0; at < s->channels; at += s->width)
        for (size_t row = 0; row < TAPS * s->group; row++, from += s->width) {
            float *to = dw + row * s->channels + at;
            for (size_t i = 0; i < s->width; i++)
                to[i] = add ? to[i] + from[i] : from[i];
        }
}

/* A slice of an image (size, size, channels), its pixels `step` apart, inside a border of zeros. */
static void copy_padded(const struct slices *s, const float *from, size_t size, size_t step,
                        float *to)
{
    size_t row = s->padded * s->width;

    if (step > 1) {
        memset(to, 0, s->padded * row * sizeof *to);
    } else {
        memset(to, 0, row * sizeof *to);
        memset(to + (s->padded - 1) * row, 0, row * sizeof *to);
    }
    for (size_t y = 0; y < size; y++) {
        float *line = to + (y * step + 1) * row;
        memset(line, 0, s->width * sizeof *to);
        for (size_t x = 0; x < size; x++, from += s->channels)
            for (size_t i = 0; i < s->width; i += VEC)
                vec_store(line + (x * step + 1) * s->width + i, vec_load(from + i));
        memset(line + (s->padded - 1) * s->width, 0, s->width * sizeof *to);
    }
}

static void copy_slice(const struct slices *s, const float *from, float *to)
{
    for (size_t p = 0; p < s->out * s->out; p++)
        for (size_t i = 0; i < s->width; i += VEC)
            vec_store(to + p * s->width + i, vec_load(from + p * s->channels + i));
}

/* For each lane, the number of the first channel of its group. */
static vec_int group_starts(size_t group)
{
    vec_int v;
    for (int i = 0; i < VEC; i++)
        v[i] = i & ~((int)group - 1);
    return v;
}

/* Channel `channel` of each lane's own group: of several groups in a vector, or of a large one. */
INLINE vec of_group(const float *pixel, bool several, vec_int starts, size_t channel)
{
    if (!several)
        return vec_all(pixel[channel]);
#if defined __AVX512F__
    return (vec)_mm512_permutexvar_ps((__m512i)(starts + (int)channel), (__m512)vec_load(pixel));
#elif defined __AVX2__
    return (vec)_mm256_permutevar8x32_ps((__m256)vec_load(pixel), (__m256i)(starts + (int)channel));
#else
    vec v;
    for (int i = 0; i < VEC; i++)
        v[i] = pixel[(size_t)starts[i] + channel];
    return v;
#endif
}

/* One vector of channels of `pixels` outputs in a row; from: the upper left tap of the first. */
INLINE void strip(const struct slices *s, size_t pixels, bool several, const float *from,
                  size_t step, const float *w, float *z, bool add)
{
    vec sum[STRIP];
    vec_int starts = group_starts(s->group);

#pragma GCC unroll 14
    for (size_t p = 0; p < pixels; p++)
        sum[p] = add ? vec_load(z + p * s->channels) : (vec){0};
    for (size_t t = 0; t < TAPS; t++) {
        const float *tap = from + (t / KERNEL * s->padded + t % KERNEL) * s->width;
        for (size_t i = 0; i < s->group; i++, w += s->width) {
            vec weight = vec_load(w);
#pragma GCC unroll 14
            for (size_t p = 0; p < pixels; p++)
                sum[p] += of_group(tap + p * step, several, starts, i) * weight;
        }
    }
#pragma GCC unroll 14
    for (size_t p = 0; p < pixels; p++)
        vec_store(z + p * s->channels, sum[p]);
}

#define STRIPS(name, several)                                                                      \
    static void name(const struct slices *s, size_t pixels, const float *from, size_t step,        \
                     const float *w, float *z, bool add)                                           \
    {                                                                                              \
        if (pixels == STRIP)                                                                       \
            strip(s, STRIP, several, from, step, w, z, add);                                       \
        else if (pixels == 7)                                                                      \
            strip(s, 7, several, from, step, w, z, add);                                           \
        else if (pixels == 4)                                                                      \
            strip(s, 4, several, from, step, w, z, add);                                           \
        else                                                                                       \
            strip(s, 1, several, from, step, w, z, add);                                           \
    }

STRIPS(strip_of_groups, true)
STRIPS(strip_of_one_group, false)

static size_t next_strip(size_t pixels)
{
    return pixels >= STRIP ? STRIP : pixels >= 7 ? 7 : pixels >= 4 ? 4 : 1;
}

/* A slice (size, size) of the outputs, at z in rows of all channels. */
static void convolve(const struct slices *s, const float *padded, const float *w, size_t size,
                     size_t stride, float *z, bool add)
{
    size_t step = stride * s->width;

    for (size_t v = 0; v < s->width; v += VEC)
        for (size_t y = 0; y < size; y++)
            for (size_t x = 0, n; x < size; x += n) {
                const float *from = padded + (y * stride * s->padded + x * stride) * s->width;
                float *to = z + (y * size + x) * s->channels + v;
                n = next_strip(size - x);
                if (s->group < VEC)
                    strip_of_groups(s, n, from, step, w + v, to, add);
                else
                    strip_of_one_group(s, n, from, step, w + v, to, add);
            }
}

void conv_grouped_forward(const struct conv *c, const float *w, const float *x, float *z,
                          size_t first, size_t end, float *scratch, conv_rows *done, void *context)
{
    struct slices s = slices_of(c);
    float *padded = scratch + 2 * conv_weights(c);
    size_t pixels = s.out * s.out;

    pack(&s, w, scratch);
    for (size_t i = first; i < end; i++) {
        for (size_t at = 0; at < s.channels; at += s.width) {
            double piece = trace_begin();
            copy_padded(&s, x + i * s.in * s.in * s.channels + at, s.in, 1, padded);
            trace_part(piece, TRACE_IM2COL);
            piece = trace_begin();
            convolve(&s, padded, scratch + at / s.width * slice_weights(&s), s.out, s.stride,
                     z + i * pixels * s.channels + at, false);
            trace_part(piece, TRACE_GEMM);
        }
        if (done)
            done(i * pixels, pixels, context);
    }
}

/* A row of outputs' share in the weights of three taps and WEIGHT_CHANNELS channels of a group. */
INLINE void weights_of_row(const struct slices *s, bool several, const float *from, const float *dz,
                           size_t channel, float *dw)
{
    vec sum[KERNEL][WEIGHT_CHANNELS];
    vec_int starts = group_starts(s->group);

#pragma GCC unroll 12
    for (size_t j = 0; j < KERNEL * WEIGHT_CHANNELS; j++)
        sum[j / WEIGHT_CHANNELS][j % WEIGHT_CHANNELS] = vec_load(
            dw + (j / WEIGHT_CHANNELS * s->group + channel + j % WEIGHT_CHANNELS) * s->width);
    for (size_t x = 0; x < s->out; x++, from += s->stride * s->width, dz += s->width) {
        vec d = vec_load(dz);
#pragma GCC unroll 12
        for (size_t j = 0; j < KERNEL * WEIGHT_CHANNELS; j++)
            sum[j / WEIGHT_CHANNELS][j % WEIGHT_CHANNELS] +=
                of_group(from + j / WEIGHT_CHANNELS * s->width, several, starts,
                         channel + j % WEIGHT_CHANNELS) *
                d;
    }
#pragma GCC unroll 12
    for (size_t j = 0; j < KERNEL * WEIGHT_CHANNELS; j++)
        vec_store(dw + (j / WEIGHT_CHANNELS * s->group + channel + j % WEIGHT_CHANNELS) * s->width,
                  sum[j / WEIGHT_CHANNELS][j % WEIGHT_CHANNELS]);
}

static void weights_of_slice(const struct slices *s, const float *padded, const float *dz,
                             float *dw)
{
    for (size_t y = 0; y < s->out; y++)
        for (size_t ky = 0; ky < KERNEL; ky++)
            for (size_t v = 0; v < s->width; v += VEC)
                for (size_t i = 0; i < s->group; i += WEIGHT_CHANNELS) {
                    const float *from = padded + (y * s->stride + ky) * s->padded * s->width;
                    const float *d = dz + y * s->out * s->width + v;
                    float *to = dw + ky * KERNEL * s->group * s->width + v;
                    if (s->group < VEC)
                        weights_of_row(s, true, from, d, i, to);
                    else
                        weights_of_row(s, false, from, d, i, to);
                }
}

static void backward_image(const struct slices *s, const struct conv_backward *b, size_t image,
                           const float *turned, float *dw, float *padded, float *dz)
{
    for (size_t at = 0; at < s->channels; at += s->width) {
        size_t weights = at / s->width * slice_weights(s);
        const float *from = b->dz + image * s->out * s->out * s->channels + at;
        size_t in = image * s->in * s->in * s->channels + at;

        double piece = trace_begin();
        copy_slice(s, from, dz);
        copy_padded(s, b->x + in, s->in, 1, padded);
        trace_part(piece, TRACE_IM2COL);
        piece = trace_begin();
        weights_of_slice(s, padded, dz, dw + weights);
        trace_part(piece, TRACE_GEMM);
        if (!b->dx)
            continue;
        piece = trace_begin();
        copy_padded(s, from, s->out, s->stride, padded);
        trace_part(piece, TRACE_IM2COL);
        piece = trace_begin();
        convolve(s, padded, turned + weights, s->in, 1, b->dx + in, b->add_dx);
        trace_part(piece, TRACE_GEMM);
    }
}

void conv_grouped_backward(const struct conv *c, const struct conv_backward *b, size_t first,
                           size_t end)
{
    struct slices s = slices_of(c);
    size_t weights = conv_weights(c), in = s.in * s.in, out = s.out * s.out;
    float *dw = b->scratch + weights, *padded = dw + weights;

    memset(dw, 0, weights * sizeof *dw);
    if (b->dx)
        pack_turned(&s, b->w, b->scratch);
    for (size_t i = first; i < end; i++) {
        if (b->ready)
            b->ready(i * out, out, b->context);
        backward_image(&s, b, i, b->scratch, dw, padded, padded + s.padded * s.padded * s.width);
        if (b->dx && b->done)
            b->done(i * in, in, b->context);
    }
    unpack(&s, dw, b->dw, b->add_dw);
}
