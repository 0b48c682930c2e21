#include "worker/kernels/window.h"

/* Does a tap ever hit a real pixel? */
static int window_tap_is_used(const struct window *w, int tap)
{
    for (int o = 0; o < w->out; o++) {
        int i = o * w->stride + tap - w->pad;
        if (i >= 0 && i < w->in)
            return 1;
    }
    return 0;
}

struct window window_make(int in, int channels, int kernel, int stride, int pad)
{
    struct window w = {
        .in = in, .channels = channels, .kernel = kernel, .stride = stride, .pad = pad};
    w.out = (in + 2 * pad - kernel) / stride + 1;
    w.tap_end = kernel;
    while (w.tap_first + 1 < kernel && !window_tap_is_used(&w, w.tap_first))
        w.tap_first++;
    while (w.tap_end - 1 > w.tap_first && !window_tap_is_used(&w, w.tap_end - 1))
        w.tap_end--;
    return w;
}

struct window_hits window_hits_at(const struct window *w, int o)
{
    struct window_hits t = {0, w->kernel, o * w->stride - w->pad};
    if (t.start < 0)
        t.first = -t.start;
    if (t.start + t.end > w->in)
        t.end = w->in - t.start;
    return t;
}
