#include "common/net/cnn.h"

struct stages {
    struct arch_conv *convs;
    int count;
};

static void cnn_add_conv(const struct arch_conv *conv, void *context)
{
    struct stages *s = context;
    s->convs[s->count++] = *conv;
}

void cnn_lay_out(const struct arch_shape *shape, bool inference, struct cnn_layout *out)
{
    *out = (struct cnn_layout){0};
    arch_each_conv(shape, cnn_add_conv, &(struct stages){out->convs, 0});
    arch_linears(shape, out->linears);
    for (int i = 0; i < CNN_STAGES; i++) {
        size_t size = (size_t)out->convs[i].out_size, channels = (size_t)out->convs[i].out_channels;
        out->y[i] = size * size * channels;
        out->pooled[i] = (size / ARCH_CNN_POOL) * (size / ARCH_CNN_POOL) * channels;
        out->floats += out->y[i] + out->pooled[i];
        if (inference)
            continue;
        out->tap[i] = (out->pooled[i] + sizeof(float) - 1) / sizeof(float);
        out->floats += out->tap[i];
        out->largest_y = out->y[i] > out->largest_y ? out->y[i] : out->largest_y;
        out->largest_pooled =
            out->pooled[i] > out->largest_pooled ? out->pooled[i] : out->largest_pooled;
    }
    out->floats += out->largest_y + out->largest_pooled;
}
