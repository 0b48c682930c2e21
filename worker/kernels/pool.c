#include "worker/kernels/pool.h"

#include <math.h>
#include <string.h>

/* One tap of one output pixel: takes over what is larger. */
static void take_larger(const float *x, int c, uint8_t tap, float *best, uint8_t *best_tap)
{
    for (int j = 0; j < c; j++) {
        int larger = x[j] > best[j] || x[j] != x[j];
        best[j] = larger ? x[j] : best[j];
        best_tap[j] = larger ? tap : best_tap[j];
    }
}

static void max_of_pixel(const struct window *w, const float *image, int oy, int ox, float *y,
                         uint8_t *tap)
{
    int c = w->channels;

    for (int j = 0; j < c; j++) {
        y[j] = -INFINITY;
        tap[j] = 0;
    }
    for (int ky = 0; ky < w->kernel; ky++)
        for (int kx = 0; kx < w->kernel; kx++) {
            int iy = oy * w->stride + ky - w->pad, ix = ox * w->stride + kx - w->pad;
            if (iy >= 0 && iy < w->in && ix >= 0 && ix < w->in)
                take_larger(image + (size_t)(iy * w->in + ix) * (size_t)c, c,
                            (uint8_t)(ky * w->kernel + kx), y, tap);
        }
}

void pool_max(const struct window *w, const float *x, int n, float *y, uint8_t *tap)
{
    size_t c = (size_t)w->channels, pixels = (size_t)w->out * (size_t)w->out;
    uint8_t unwanted[4096];

    for (size_t i = 0; i < (size_t)n * pixels; i++)
        max_of_pixel(w, x + i / pixels * (size_t)w->in * (size_t)w->in * c,
                     (int)(i % pixels) / w->out, (int)(i % pixels) % w->out, y + i * c,
                     tap ? tap + i * c : unwanted);
}

static void send_back(const float *dy, const uint8_t *tap, uint8_t wanted, int c, float *dx)
{
    for (int j = 0; j < c; j++)
        dx[j] += tap[j] == wanted ? dy[j] : 0;
}

void pool_max_backward(const struct window *w, const float *dy, const uint8_t *tap, int n, float *dx)
{
    size_t c = (size_t)w->channels, pixels = (size_t)w->out * (size_t)w->out;
    size_t image = (size_t)w->in * (size_t)w->in * c;

    memset(dx, 0, (size_t)n * image * sizeof *dx);
    for (size_t i = 0; i < (size_t)n * pixels; i++) {
        int oy = (int)(i % pixels) / w->out, ox = (int)(i % pixels) % w->out;
        for (int ky = 0; ky < w->kernel; ky++)
            for (int kx = 0; kx < w->kernel; kx++) {
                int iy = oy * w->stride + ky - w->pad, ix = ox * w->stride + kx - w->pad;
                if (iy >= 0 && iy < w->in && ix >= 0 && ix < w->in)
                    send_back(dy + i * c, tap + i * c, (uint8_t)(ky * w->kernel + kx), w->channels,
                              dx + i / pixels * image + (size_t)(iy * w->in + ix) * c);
            }
    }
}

void pool_average(const float *x, int n, int pixels, int c, float *y)
{
    for (int i = 0; i < n; i++, y += c) {
        memset(y, 0, (size_t)c * sizeof *y);
        for (int p = 0; p < pixels; p++, x += c)
            for (int j = 0; j < c; j++)
                y[j] += x[j];
        for (int j = 0; j < c; j++)
            y[j] /= (float)pixels;
    }
}

void pool_average_backward(const float *dy, int n, int pixels, int c, float *dx)
{
    for (int i = 0; i < n; i++, dy += c)
        for (int p = 0; p < pixels; p++, dx += c)
            for (int j = 0; j < c; j++)
                dx[j] = dy[j] / (float)pixels;
}
