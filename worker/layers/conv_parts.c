#include "worker/layers/conv_parts.h"

#include "worker/kernels/tile_gemm.h"

/* CONV_PIXEL: as many images as fill a product. */
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

bool conv_by_pixel(const struct conv *c, int images)
{
    return c->algorithm == CONV_PIXEL && images >= PIXEL_IMAGES;
}
