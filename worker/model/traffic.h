/*
 * What the passes move between memory and processor, counted as operations are: by the sizes of
 * their tensors.
 *
 * A pass counts each activation, gradient and weight that it reads and has not made itself, once,
 * and each that it makes, once. A store is one access, as in STREAM: that it may read the line
 * first is not counted. So this is what memory has to move if the caches are empty when a pass
 * begins and hold everything that it needs again: a lower bound, except for what is small enough to
 * stay in the caches from one pass to the next. dry_run.h counts another thing: the work of the
 * kernels outside of products, most of it on tiles in the caches.
 */
#pragma once

#include "common/run/trace.h"
#include "worker/model/precision.h"

/* Ends a layer's span and adds the bytes of its pass to those of the model. */
static inline void traffic_end_layer(struct model *m, double span, const char *category,
                                     const char *name, double flops, double bytes)
{
    m->moved_bytes += bytes;
    trace_end_layer(span, category, name, flops, bytes);
}

/* z of a unit, or a tensor of the same size */
static inline double traffic_of_output(const struct model *m, const struct unit *u)
{
    return (double)(m->ops->bytes * unit_pixels(u) * unit_channels(u)) * m->n;
}

/* Its input as the convolution reads it: with a stride larger than the kernel, some pixels only. */
static inline double traffic_of_input(const struct model *m, const struct unit *u)
{
    const struct window *w = &u->conv.window;
    size_t side = (size_t)(w->kernel < w->stride ? w->out * w->kernel : w->in);
    bool floats = u == m->layout->units && !m->config.bf16_images;
    size_t bytes = floats ? sizeof(float) : m->ops->bytes;

    return (double)(bytes * side * side * (size_t)w->channels) * m->n;
}

/* The gradient of its input, which has all pixels */
static inline double traffic_of_input_gradient(const struct model *m, const struct unit *u)
{
    size_t numbers = conv_pixels_in(&u->conv) * (size_t)u->conv.window.channels;
    return (double)(m->ops->bytes * numbers) * m->n;
}

static inline double traffic_of_weights(const struct unit *u)
{
    return (double)(sizeof(float) * conv_weights(&u->conv));
}

/* Of both directions: input, output and, in training, taps */
static inline double traffic_of_max_pool(const struct model *m, const struct window *w)
{
    double x = (double)(w->in * w->in * w->channels) * m->n * (double)m->ops->bytes;
    double y = (double)(w->out * w->out * w->channels) * m->n;

    return x + y * (double)m->ops->bytes + (m->evaluating ? 0 : y);
}

/* Of a low-pass filter, in either direction */
static inline double traffic_of_blur(const struct model *m, const struct window *w)
{
    return (double)((w->in * w->in + w->out * w->out) * w->channels) * m->n * (double)m->ops->bytes;
}

/* Forward: x, y and weights. Backward: x, dx and dy; weights and their gradient. */
static inline double traffic_of_linear(const struct model *m, const struct linear *l, bool back,
                                       bool accumulate)
{
    size_t weights = l->in * l->out * (back ? 2 + accumulate : 1);
    size_t numbers = l->in * (back ? 2 : 1) + l->out;

    return sizeof(float) * ((double)weights + (double)numbers * m->n);
}
