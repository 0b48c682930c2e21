#include "worker/layers/conv_grouped.h"

#include <string.h>

#include "common/run/trace.h"
#include "worker/team/dry_run.h"
#include "worker/kernels/tile_size.h"
#include "worker/layers/conv_shape.h"

#define INLINE static inline __attribute__((always_inline))

/* Sums kept in registers: pixels of a strip (forward, input gradient); three taps by so many
 * channels of a group (weights; with 16 registers some of them spill). */
enum { KERNEL = 3, TAPS = 9, STRIP = VEC == 16 ? 14 : 7, WEIGHT_CHANNELS = 4 };

/* Channels are processed in slices: a vector of small groups, or one large group. */
struct slices {
    size_t group;    /* channels per group */
    size_t width;    /* channels per slice */
    size_t channels; /* of the tensor */
    size_t padded;   /* height and width of an input with its border */
    size_t in, out, stride;
};

static struct slices conv_grouped_slices_of(const struct conv *c)
{
    size_t group = (size_t)(c->window.channels / c->groups);
    return (struct slices){group,
                           group > tile_vec() ? group : tile_vec(),
                           (size_t)c->window.channels,
                           (size_t)c->window.in + 2,
                           (size_t)c->window.in,
                           (size_t)c->window.out,
                           (size_t)c->window.stride};
}

bool conv_grouped_takes(const struct conv *c)
{
    int group = c->window.channels / c->groups, width = (int)tile_vec();
    return c->window.channels == c->out_channels && group >= 4 && !(group & (group - 1)) &&
           c->window.channels % (group > width ? group : width) == 0 &&
           c->window.kernel == KERNEL && c->window.pad == 1 && c->window.stride <= 2;
}

static size_t conv_grouped_slice_weights(const struct slices *s)
{
    return TAPS * s->group * s->width;
}

static size_t conv_grouped_slice_count(const struct slices *s)
{
    return s->channels / s->width;
}

static bool conv_grouped_counts_slice(const struct slices *s)
{
    return dry_run_products(s->out * s->out, s->width, TAPS * s->group);
}

/* To (slice, ky, kx, input channel of the group, output channel). */
static void conv_grouped_pack(const struct slices *s, struct parallel_range of, const float *w,
                              float *to)
{
    if (dry_run_moves(2 * (of.end - of.first) * conv_grouped_slice_weights(s)))
        return;
    to += of.first * conv_grouped_slice_weights(s);
    for (size_t at = of.first * s->width; at < of.end * s->width; at += s->width)
        for (size_t row = 0; row < TAPS * s->group; row++, to += s->width)
            memcpy(to, w + row * s->channels + at, s->width * sizeof *to);
}

/* For the kernel rotated by 180 degrees, with channels swapped within the groups. */
static void grouped_pack_turned(const struct slices *s, struct parallel_range of, const float *w,
                                float *to)
{
    if (dry_run_moves(2 * (of.end - of.first) * conv_grouped_slice_weights(s)))
        return;
    to += of.first * conv_grouped_slice_weights(s);
    for (size_t at = of.first * s->width; at < of.end * s->width; at += s->width)
        for (size_t t = 0; t < TAPS; t++, to += s->group * s->width)
            for (size_t i = 0; i < s->group; i++) {
                const float *row = w + ((TAPS - 1 - t) * s->group + i) * s->channels + at;
                for (size_t group = 0; group < s->width; group += s->group)
                    for (size_t o = 0; o < s->group; o++)
                        to[o * s->width + group + i] = row[group + o];
            }
}

/* Prefetches the next slice: the hardware prefetcher does not follow strides of all channels. */
static void conv_grouped_copy_padded(const struct slices *s, const float *from, size_t size,
                                     float *to)
{
    size_t row = (size + 2) * s->width;

    if (dry_run_moves(2 * size * size * s->width))
        return;
    memset(to, 0, (row + s->width) * sizeof *to);
    to += row + s->width;
    for (size_t y = 0; y < size; y++) {
        for (size_t x = 0; x < size; x++, from += s->channels, to += s->width)
            for (size_t i = 0; i < s->width; i += VEC) {
                __builtin_prefetch(from + s->width + i, 0, 2);
                vec_store(to + i, vec_load(from + i));
            }
        memset(to, 0, 2 * s->width * sizeof *to);
        to += 2 * s->width;
    }
    memset(to, 0, (row - s->width) * sizeof *to);
}

static vec_int conv_grouped_group_starts(size_t group)
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
    return vec_pick(pixel, starts + (int)channel);
}

/* One vector of channels of `pixels` consecutive outputs; from: upper left tap of the first. An
 * input channel is broadcast once and used by all outputs of the strip that see it. */
INLINE void strip(const struct slices *s, size_t pixels, size_t stride, bool several,
                  const float *from, const float *w, float *z, bool add)
{
    vec sum[STRIP];
    vec_int starts = conv_grouped_group_starts(s->group);
    size_t tap = s->group * s->width;

#pragma GCC unroll 14
    for (size_t p = 0; p < pixels; p++)
        sum[p] = add ? vec_load(z + p * s->channels) : (vec){0};
    for (size_t ky = 0; ky < KERNEL; ky++, from += s->padded * s->width, w += 2 * tap)
        for (size_t i = 0; i < s->group; i++, w += s->width) {
            vec weights[KERNEL] = {vec_load(w), vec_load(w + tap), vec_load(w + 2 * tap)};
#pragma GCC unroll 30
            for (size_t q = 0; q < (pixels - 1) * stride + KERNEL; q++) {
                vec x = of_group(from + q * s->width, several, starts, i);
#pragma GCC unroll 3
                for (size_t kx = 0; kx < KERNEL && kx <= q; kx++)
                    if ((q - kx) % stride == 0 && (q - kx) / stride < pixels)
                        sum[(q - kx) / stride] += x * weights[kx];
            }
        }
#pragma GCC unroll 14
    for (size_t p = 0; p < pixels; p++)
        vec_store(z + p * s->channels, sum[p]);
}

/* Backward with stride 2: a row of dx from up to two rows of dz, whose pixel x is at pixel 2 x of
 * dx. At that pixel only the middle tap of the rotated kernel applies; between two, its first tap
 * for x and its last for x + 1. Of the rows of taps, `first_ky` and every second one see pixels.
 * `pixels` of dz, `valid` of dx; from: first pixel of dz for first_ky. */
INLINE void strip_back(const struct slices *s, size_t pixels, size_t valid, size_t first_ky,
                       bool several, const float *from, const float *w, float *dx, bool add)
{
    vec sum[STRIP];
    vec_int starts = conv_grouped_group_starts(s->group);
    size_t tap = s->group * s->width;

#pragma GCC unroll 14
    for (size_t p = 0; p < 2 * pixels; p++)
        sum[p] = add && p < valid ? vec_load(dx + p * s->channels) : (vec){0};
    for (size_t ky = first_ky; ky < KERNEL; ky += 2, from += (s->out + 2) * s->width)
        for (size_t i = 0; i < s->group; i++) {
            const float *row = w + ky * KERNEL * tap + i * s->width;
            vec first = vec_load(row), middle = vec_load(row + tap), last = vec_load(row + 2 * tap);
#pragma GCC unroll 8
            for (size_t q = 0; q <= pixels; q++) {
                vec d = of_group(from + q * s->width, several, starts, i);
                if (q > 0)
                    sum[2 * q - 1] += d * last;
                if (q < pixels) {
                    sum[2 * q] += d * middle;
                    sum[2 * q + 1] += d * first;
                }
            }
        }
#pragma GCC unroll 14
    for (size_t p = 0; p < 2 * pixels; p++)
        if (p < valid)
            vec_store(dx + p * s->channels, sum[p]);
}

#define STRIPS(name, stride, several)                                                              \
    static void name(const struct slices *s, size_t pixels, const float *from, const float *w,     \
                     float *z, bool add)                                                           \
    {                                                                                              \
        if (pixels == STRIP)                                                                       \
            strip(s, STRIP, stride, several, from, w, z, add);                                     \
        else if (pixels == 7)                                                                      \
            strip(s, 7, stride, several, from, w, z, add);                                         \
        else if (pixels == 4)                                                                      \
            strip(s, 4, stride, several, from, w, z, add);                                         \
        else                                                                                       \
            strip(s, 1, stride, several, from, w, z, add);                                         \
    }

STRIPS(strip_of_groups, 1, true)
STRIPS(strip_of_one_group, 1, false)
STRIPS(strip_of_groups_apart, 2, true)
STRIPS(strip_of_one_group_apart, 2, false)

#define BACKS(name, several)                                                                       \
    static void name(const struct slices *s, size_t pixels, size_t valid, size_t first_ky,         \
                     const float *from, const float *w, float *dx, bool add)                       \
    {                                                                                              \
        if (pixels == STRIP / 2)                                                                   \
            strip_back(s, STRIP / 2, valid, first_ky, several, from, w, dx, add);                  \
        else if (pixels == 2)                                                                      \
            strip_back(s, 2, valid, first_ky, several, from, w, dx, add);                          \
        else                                                                                       \
            strip_back(s, 1, valid, first_ky, several, from, w, dx, add);                          \
    }

BACKS(back_of_groups, true)
BACKS(back_of_one_group, false)

static size_t conv_grouped_next_strip(size_t pixels)
{
    return pixels >= STRIP ? STRIP : pixels >= 7 ? 7 : pixels >= 4 ? 4 : 1;
}

static size_t conv_grouped_next_back(size_t pixels)
{
    return pixels >= STRIP / 2 ? STRIP / 2 : pixels >= 2 ? 2 : 1;
}

static void grouped_convolve(const struct slices *s, const float *padded, const float *w,
                             size_t size, size_t stride, float *z, bool add)
{
    bool several = s->group<VEC, apart = stride> 1;

    if (conv_grouped_counts_slice(s))
        return;
    for (size_t v = 0; v < s->width; v += VEC)
        for (size_t y = 0; y < size; y++)
            for (size_t x = 0, n; x < size; x += n) {
                const float *from = padded + (y * stride * s->padded + x * stride) * s->width;
                float *to = z + (y * size + x) * s->channels + v;
                n = conv_grouped_next_strip(size - x);
                if (several)
                    (apart ? strip_of_groups_apart : strip_of_groups)(s, n, from, w + v, to, add);
                else
                    (apart ? strip_of_one_group_apart : strip_of_one_group)(s, n, from, w + v, to,
                                                                            add);
            }
}

static void grouped_convolve_back(const struct slices *s, const float *dz, const float *w,
                                  float *dx, bool add)
{
    if (conv_grouped_counts_slice(s))
        return;
    for (size_t v = 0; v < s->width; v += VEC)
        for (size_t y = 0; y < s->in; y++)
            for (size_t x = 0, n; x < s->out; x += n) {
                const float *from = dz + ((y / 2 + 1) * (s->out + 2) + x + 1) * s->width;
                float *to = dx + (y * s->in + 2 * x) * s->channels + v;
                size_t first_ky = y % 2 ? 0 : 1, valid = s->in - 2 * x;
                n = conv_grouped_next_back(s->out - x);
                if (s->group < VEC)
                    back_of_groups(s, n, valid, first_ky, from, w + v, to, add);
                else
                    back_of_one_group(s, n, valid, first_ky, from, w + v, to, add);
            }
}

static void conv_grouped_forward_slice(const struct slices *s, const float *weights, const float *x,
                                       float *z, size_t image, size_t slice, float *padded)
{
    size_t at = slice * s->width;
    double piece = trace_begin();

    conv_grouped_copy_padded(s, x + image * s->in * s->in * s->channels + at, s->in, padded);
    trace_part(piece, TRACE_IM2COL);
    piece = trace_begin();
    grouped_convolve(s, padded, weights + slice * conv_grouped_slice_weights(s), s->out, s->stride,
                     z + image * s->out * s->out * s->channels + at, false);
    trace_part(piece, TRACE_GEMM);
}

/* Gradient of a row of three taps by WEIGHT_CHANNELS channels of a group, from a whole image. Input
 * pixel q contributes to output q - kx by tap kx (stride 2: (q - kx) / 2); dz's border stands for
 * missing outputs. x: the row's first pixel for the first row of outputs; dz: the border before
 * that row. */
INLINE void weights_of_row(const struct slices *s, size_t stride, bool several, const float *x,
                           const float *dz, size_t channel, float *dw)
{
    vec sum[KERNEL][WEIGHT_CHANNELS] = {0};
    vec_int starts = conv_grouped_group_starts(s->group);
    size_t width = s->width;

    for (size_t y = 0; y < s->out; y++, x += stride * s->padded * width, dz += (s->out + 2) * width)
        for (size_t q = 0; q < (stride > 1 ? s->out + 1 : s->out + 2); q++) {
            const float *pixel = x + stride * q * width;
            vec now = vec_load(dz + (q + 1) * width), before = vec_load(dz + q * width);
            vec long_before = stride > 1 ? now : vec_load(dz + q * width - width);
#pragma GCC unroll 4
            for (size_t i = 0; i < WEIGHT_CHANNELS; i++) {
                vec v = of_group(pixel, several, starts, channel + i);
                sum[0][i] += v * now;
                if (stride > 1) {
                    sum[2][i] += v * before;
                    sum[1][i] += of_group(pixel + width, several, starts, channel + i) * now;
                } else {
                    sum[1][i] += v * before;
                    sum[2][i] += v * long_before;
                }
            }
        }
#pragma GCC unroll 12
    for (size_t j = 0; j < KERNEL * WEIGHT_CHANNELS; j++) {
        float *to =
            dw + (j / WEIGHT_CHANNELS * s->group + channel + j % WEIGHT_CHANNELS) * s->width;
        vec_store(to, vec_load(to) + sum[j / WEIGHT_CHANNELS][j % WEIGHT_CHANNELS]);
    }
}

#define WEIGHTS(name, stride, several)                                                             \
    static void name(const struct slices *s, const float *x, const float *dz, size_t channel,      \
                     float *dw)                                                                    \
    {                                                                                              \
        weights_of_row(s, stride, several, x, dz, channel, dw);                                    \
    }

WEIGHTS(weights_of_groups, 1, true)
WEIGHTS(weights_of_one_group, 1, false)
WEIGHTS(weights_of_groups_apart, 2, true)
WEIGHTS(weights_of_one_group_apart, 2, false)

static void conv_grouped_weights_of_slice(const struct slices *s, const float *padded,
                                          const float *dz, float *dw)
{
    bool several = s->group<VEC, apart = s->stride> 1;

    if (conv_grouped_counts_slice(s))
        return;
    for (size_t ky = 0; ky < KERNEL; ky++)
        for (size_t v = 0; v < s->width; v += VEC)
            for (size_t i = 0; i < s->group; i += WEIGHT_CHANNELS) {
                const float *x = padded + ky * s->padded * s->width;
                const float *d = dz + (s->out + 2) * s->width + v;
                float *to = dw + ky * KERNEL * s->group * s->width + v;
                if (several)
                    (apart ? weights_of_groups_apart : weights_of_groups)(s, x, d, i, to);
                else
                    (apart ? weights_of_one_group_apart : weights_of_one_group)(s, x, d, i, to);
            }
}

struct slice_work {
    const float *turned; /* weights of all slices */
    float *padded, *dz;
};

/* Also adds the slice's weight gradient to dw, which may be NULL. */
static void conv_grouped_backward_slice(const struct slices *s, const struct conv_backward *b,
                                        size_t image, size_t slice, const struct slice_work *work,
                                        float *dw)
{
    size_t at = slice * s->width, in = image * s->in * s->in * s->channels + at;
    const float *turned = work->turned + slice * conv_grouped_slice_weights(s);
    double piece = trace_begin();

    conv_grouped_copy_padded(s, b->dz + image * s->out * s->out * s->channels + at, s->out,
                             work->dz);
    if (dw)
        conv_grouped_copy_padded(s, b->x + in, s->in, work->padded);
    trace_part(piece, TRACE_IM2COL);
    piece = trace_begin();
    if (dw)
        conv_grouped_weights_of_slice(s, work->padded, work->dz, dw);
    if (b->dx && s->stride > 1)
        grouped_convolve_back(s, work->dz, turned, b->dx + in, b->add_dx);
    else if (b->dx)
        grouped_convolve(s, work->dz, turned, s->in, 1, b->dx + in, b->add_dx);
    trace_part(piece, TRACE_GEMM);
}

/* ---- slices of images are shared, slice by slice; a single thread has all slices of an image one
 * after the other, while it is in cache */

static size_t conv_grouped_own_work_floats(const struct slices *s)
{
    return (s->padded * s->padded + (s->out + 2) * (s->out + 2)) * s->width;
}

size_t conv_grouped_team_floats(const struct conv *c)
{
    return 2 * conv_weights(c);
}

size_t conv_grouped_own_floats(const struct conv *c)
{
    struct slices s = conv_grouped_slices_of(c);
    return conv_grouped_own_work_floats(&s) + 2 * conv_grouped_slice_weights(&s);
}

struct slice_of_image {
    size_t image, slice;
};

static struct slice_of_image conv_grouped_slice_at(const struct slices *s, size_t i, size_t images,
                                                   bool single)
{
    size_t count = conv_grouped_slice_count(s);

    if (single)
        return (struct slice_of_image){i / count, i % count};
    return (struct slice_of_image){i % images, i / images};
}

/* For the slice of an image; by a single thread for the whole image, at its first or last slice. */
static void conv_grouped_call_hook(const struct slices *s, conv_rows *hook,
                                   struct slice_of_image at, size_t pixels, bool single, bool last,
                                   void *context)
{
    struct parallel_block rows = {at.image * pixels, pixels, at.slice * s->width, s->width};

    if (single && at.slice != (last ? conv_grouped_slice_count(s) - 1 : 0))
        return;
    if (single)
        rows = (struct parallel_block){at.image * pixels, pixels, 0, s->channels};
    conv_call_hook(hook, rows, context);
}

struct grouped_forward {
    const struct slices *s;
    const struct conv_part *part;
    const float *x;
    float *z;
    conv_rows *done;
    void *context;
};

static void grouped_forward_piece(const struct parallel_piece *piece, void *context)
{
    const struct grouped_forward *f = context;
    const struct slices *s = f->s;
    size_t images = (size_t)f->part->images;
    bool single = conv_part_is_single(f->part);
    struct parallel_range mine =
        parallel_range(conv_grouped_slice_count(s) * images, parallel_piece_share(piece));

    for (size_t i = mine.first; i < mine.end; i++) {
        struct slice_of_image at = conv_grouped_slice_at(s, i, images, single);
        conv_grouped_forward_slice(s, f->part->memory->team, f->x, f->z, at.image, at.slice,
                                   conv_part_own(f->part));
        conv_grouped_call_hook(s, f->done, at, s->out * s->out, single, true, f->context);
    }
}

void conv_grouped_forward(const struct conv_part *part, const float *w, const float *x, float *z,
                          conv_rows *done, void *context)
{
    struct slices s = conv_grouped_slices_of(part->c);
    struct grouped_forward f = {&s, part, x, z, done, context};
    size_t count = conv_grouped_slice_count(&s), parts = (size_t)part->share.parts;

    conv_grouped_pack(&s, parallel_range(count, part->share), w, part->memory->team);
    parallel_barrier(part->share);
    parallel_take(part->share, count * (size_t)part->images / parts, grouped_forward_piece, &f);
}

/* Threads that have a part of a slice's weight gradient. */
struct sharers {
    int first, last;
};

static struct sharers conv_grouped_sharers_of(const struct slices *s, size_t slice, size_t images,
                                              int parts)
{
    size_t all = conv_grouped_slice_count(s) * images;
    return (struct sharers){parallel_owner(slice * images, all, parts),
                            parallel_owner((slice + 1) * images - 1, all, parts)};
}

/* A thread's sums of a slice: the team's if the slice is its own. */
static float *conv_grouped_sums_of(const struct slices *s, const struct conv_part *part, int thread,
                                   size_t slice)
{
    size_t images = (size_t)part->images, weights = conv_grouped_slice_weights(s);
    struct sharers sharers = conv_grouped_sharers_of(s, slice, images, part->share.parts);
    struct parallel_share of = {thread, part->share.parts};
    size_t first = parallel_range(conv_grouped_slice_count(s) * images, of).first / images;

    if (sharers.first == sharers.last)
        return part->memory->team + conv_weights(part->c) + slice * weights;
    return part->memory->own[thread] + conv_grouped_own_work_floats(s) +
           (first == slice ? 0 : weights);
}

static void conv_grouped_unpack(const struct slices *s, const struct conv_part *part,
                                const struct conv_backward *b)
{
    size_t rows = TAPS * s->group, images = (size_t)part->images;
    struct parallel_range mine = parallel_range(conv_grouped_slice_count(s) * rows, part->share);

    if (dry_run_moves(2 * (mine.end - mine.first) * s->width))
        return;
    for (size_t i = mine.first; i < mine.end; i++) {
        size_t slice = i / rows, row = i % rows;
        struct sharers sharers = conv_grouped_sharers_of(s, slice, images, part->share.parts);
        float *to = b->dw + row * s->channels + slice * s->width;
        for (int t = sharers.first; t <= sharers.last; t++) {
            const float *from = conv_grouped_sums_of(s, part, t, slice) + row * s->width;
            bool add = b->add_dw || t > sharers.first;
            if (parallel_is_empty(conv_grouped_slice_count(s) * images,
                                  (struct parallel_share){t, part->share.parts}))
                continue;
            for (size_t k = 0; k < s->width; k++)
                to[k] = add ? to[k] + from[k] : from[k];
        }
    }
}

void conv_grouped_backward(const struct conv_part *part, const struct conv_backward *b)
{
    struct slices s = conv_grouped_slices_of(part->c);
    size_t n = (size_t)part->images, in = s.in * s.in, out = s.out * s.out;
    struct parallel_range mine = parallel_range(conv_grouped_slice_count(&s) * n, part->share);
    float *own = conv_part_own(part);
    struct slice_work work = {part->memory->team, own, own + s.padded * s.padded * s.width};
    bool single = conv_part_is_single(part);

    if (b->dx)
        grouped_pack_turned(&s, parallel_range(conv_grouped_slice_count(&s), part->share), b->w,
                            part->memory->team);
    parallel_barrier(part->share);
    for (size_t i = mine.first; i < mine.end; i++) {
        struct slice_of_image at = conv_grouped_slice_at(&s, i, n, single);
        float *dw = b->dw ? conv_grouped_sums_of(&s, part, part->share.part, at.slice) : NULL;
        if (dw && (i == mine.first || at.image == 0) && !dry_run)
            memset(dw, 0, conv_grouped_slice_weights(&s) * sizeof *dw);
        conv_grouped_call_hook(&s, b->ready, at, out, single, false, b->context);
        conv_grouped_backward_slice(&s, b, at.image, at.slice, &work, dw);
        if (b->dx)
            conv_grouped_call_hook(&s, b->done, at, in, single, true, b->context);
    }
    parallel_barrier(part->share);
    if (b->dw)
        conv_grouped_unpack(&s, part, b);
}
