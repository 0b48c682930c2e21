#include "worker/layers/conv_shape.h"

#include <string.h>

#include "worker/kernels/tile_gemm.h"
#include "worker/kernels/tile_size.h"

/* CONV_PIXEL: maximum height of images. */
enum { PIXEL_SIZE = 4 };

struct conv conv_make(int in_size, int in_channels, int out_channels, int kernel, int stride,
                      int pad, int groups)
{
    struct conv c = {window_make(in_size, in_channels, kernel, stride, pad),
                     out_channels,
                     groups,
                     CONV_GROUPED,
                     {CONV_NO_WINOGRAD}};

    conv_choose_gemm(&c, JOB_GEMM_AUTO);
    return c;
}

static bool shape_is_own(enum job_gemm gemm)
{
    return gemm == JOB_GEMM_AUTO ? ISA_TILE_PAYS : gemm == JOB_GEMM_OWN;
}

const char *conv_gemm_name(enum job_gemm gemm)
{
    return shape_is_own(gemm) ? "own" : "openblas";
}

void conv_choose_gemm(struct conv *c, enum job_gemm gemm)
{
    const struct window *w = &c->window;
    bool fits = tile_gemm_takes((size_t)w->channels) && tile_gemm_takes((size_t)c->out_channels);

    if (c->groups > 1)
        return;
    if (gemm == JOB_GEMM_OPENBLAS)
        memset(c->winograd, 0, sizeof c->winograd);
    c->algorithm = shape_is_own(gemm) ? CONV_TILE : CONV_OPENBLAS;
    if (shape_is_own(gemm) && fits && w->out <= PIXEL_SIZE && (w->kernel > 1 || w->stride > 1))
        c->algorithm = CONV_PIXEL;
}

size_t conv_weights(const struct conv *c)
{
    return conv_matrix_rows(c) * (size_t)c->out_channels;
}

/* CONV_PIXEL: number of images that fill a product. */
enum { PIXEL_IMAGES = 48 };

bool conv_turns_kernel(const struct conv *c)
{
    return (c->algorithm != CONV_OPENBLAS || c->winograd[CONV_WEIGHTS]) && c->window.stride == 1 &&
           c->window.kernel > 1 && c->window.kernel == 2 * c->window.pad + 1 &&
           tile_gemm_takes((size_t)c->window.channels);
}

struct window conv_turned_window(const struct conv *c)
{
    struct window w = c->window;
    w.channels = c->out_channels;
    return w;
}

struct conv_runs conv_weight_runs(const struct conv *c)
{
    const struct window *w = &c->window;
    size_t taps = (size_t)window_taps(w), ch = (size_t)w->channels, k = (size_t)w->kernel;
    size_t from = (size_t)w->tap_first;

    if (taps == k)
        return (struct conv_runs){1, k * k * ch, 0, 0};
    return (struct conv_runs){taps, taps * ch, (from * k + from) * ch, k * ch};
}

bool conv_uses_tile(const struct conv *c, size_t n)
{
    return c->algorithm != CONV_OPENBLAS && tile_gemm_takes(n);
}

bool conv_part_by_pixel(const struct conv_part *p)
{
    return p->c->algorithm == CONV_PIXEL && p->images / p->share.parts >= PIXEL_IMAGES;
}
