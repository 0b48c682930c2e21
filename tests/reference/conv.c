#include <stdlib.h>
#include <string.h>

#include "tests/reference/reference.h"

/* Where tap (ky, kx) of an output pixel reads in an image, or -1. */
static ptrdiff_t pixel_under(const struct window *w, int oy, int ox, int ky, int kx)
{
    int iy = oy * w->stride + ky - w->pad, ix = ox * w->stride + kx - w->pad;
    if (iy < 0 || iy >= w->in || ix < 0 || ix >= w->in)
        return -1;
    return (ptrdiff_t)iy * w->in + ix;
}

/* One input channel of a pixel that a tap reads, with all outputs of its group. */
struct meeting {
    size_t x, w, z; /* the first elements that meet: one of x, `outputs` of w and z */
    size_t outputs;
};

/* Calls visit for every product x w that belongs to a z, in runs of outputs. */
static void each_meeting(const struct conv *c, int n, void (*visit)(const struct meeting *, void *),
                         void *context)
{
    const struct window *g = &c->window;
    size_t per_group = (size_t)(g->channels / c->groups),
           out_per_group = (size_t)(c->out_channels / c->groups);
    size_t ci = (size_t)g->channels, co = (size_t)c->out_channels;
    size_t in = (size_t)g->in * (size_t)g->in, out = (size_t)g->out * (size_t)g->out;
    size_t taps = (size_t)g->kernel * (size_t)g->kernel;

    for (size_t row = 0; row < (size_t)n * out; row++)
        for (size_t t = 0; t < taps; t++) {
            ptrdiff_t p = pixel_under(g, (int)(row % out) / g->out, (int)(row % out) % g->out,
                                      (int)t / g->kernel, (int)t % g->kernel);
            for (size_t i = 0; p >= 0 && i < ci; i++) {
                size_t first = i / per_group * out_per_group;
                visit(&(struct meeting){(row / out * in + (size_t)p) * ci + i,
                                        (t * per_group + i % per_group) * co + first,
                                        row * co + first, out_per_group},
                      context);
            }
        }
}

struct sums {
    const float *a, *b;
    double *z;
};

static void add_forward(const struct meeting *m, void *context)
{
    const struct sums *s = context;
    const float *w = s->b + m->w;
    double *z = s->z + m->z, x = s->a[m->x];

    for (size_t o = 0; o < m->outputs; o++)
        z[o] += x * w[o];
}

struct gradient_sums {
    const float *w, *x, *dz;
    double *dx, *dw;
};

static void add_backward(const struct meeting *m, void *context)
{
    const struct gradient_sums *s = context;
    const float *w = s->w + m->w, *dz = s->dz + m->z;
    double *dw = s->dw + m->w, x = s->x[m->x], dx = 0;

    for (size_t o = 0; o < m->outputs; o++) {
        dx += (double)dz[o] * w[o];
        dw[o] += dz[o] * x;
    }
    s->dx[m->x] += dx;
}

static void round_to(float *to, double *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (float)from[i];
    free(from);
}

void conv_forward_reference(const struct conv *c, const float *w, const float *x, float *z, int n)
{
    size_t count =
        (size_t)n * (size_t)c->window.out * (size_t)c->window.out * (size_t)c->out_channels;
    struct sums s = {.a = x, .b = w, .z = calloc(count, sizeof(double))};
    each_meeting(c, n, add_forward, &s);
    round_to(z, s.z, count);
}

void conv_backward_reference(const struct conv *c, const float *w, const float *x, const float *dz,
                             int n, float *dx, float *dw)
{
    size_t count =
        (size_t)n * (size_t)c->window.in * (size_t)c->window.in * (size_t)c->window.channels;
    struct gradient_sums s = {w, x, dz, calloc(count, sizeof(double)),
                              calloc(conv_weights(c), sizeof(double))};
    each_meeting(c, n, add_backward, &s);
    round_to(dx, s.dx, count);
    round_to(dw, s.dw, conv_weights(c));
}
