#include "common/net/network.h"

#include <string.h>

#include "common/assert_always.h"

static void network_add_conv(const struct arch_conv *conv, void *context)
{
    struct network *n = context;
    assert_always(n->conv_count < NETWORK_CONVS);
    n->convs[n->conv_count++] = *conv;
}

/* The length of the block's name: "layer1.0.conv2" belongs to block "layer1.0." */
static size_t network_block_prefix(const char *name)
{
    const char *dot = strchr(name, '.');
    return dot && (dot = strchr(dot + 1, '.')) ? (size_t)(dot + 1 - name) : 0;
}

static void network_group_blocks(struct network *n)
{
    const char *open = "";

    for (int i = 1; i < n->conv_count; i++) {
        const char *name = n->convs[i].name;
        size_t prefix = network_block_prefix(name);
        if (network_block_prefix(open) != prefix || strncmp(open, name, prefix) != 0) {
            assert_always(n->block_count < NETWORK_BLOCKS);
            n->blocks[n->block_count++] = (struct network_block){.first = i, .downsample = -1};
        }
        open = name;
        struct network_block *b = &n->blocks[n->block_count - 1];
        if (!strncmp(name + prefix, "downsample", 10))
            b->downsample = i;
        else
            b->convs++;
    }
}

void network_make(const struct arch_shape *shape, struct network *out)
{
    out->conv_count = out->block_count = 0;
    arch_each_conv(shape, network_add_conv, out);
    network_group_blocks(out);
    out->frozen_convs = out->frozen_blocks = 0;
    while (out->frozen_convs < out->conv_count &&
           arch_is_frozen(shape, out->convs[out->frozen_convs].name))
        out->frozen_convs++;
    while (out->frozen_blocks < out->block_count &&
           out->blocks[out->frozen_blocks].first < out->frozen_convs)
        out->frozen_blocks++;
    out->pools = shape->stem == JOB_STEM_IMAGENET;
    out->blurs = out->pools && shape->blur_pool;
    out->pooled_size = out->convs[out->blocks[0].first].in_size;
}

size_t network_floats(const struct arch_conv *conv)
{
    return (size_t)conv->out_size * (size_t)conv->out_size * (size_t)conv->out_channels;
}

int network_block_last(const struct network_block *block)
{
    return block->first + block->convs - 1;
}

struct stages {
    struct arch_conv *convs;
    int count;
};

static void network_cnn_add_conv(const struct arch_conv *conv, void *context)
{
    struct stages *s = context;
    s->convs[s->count++] = *conv;
}

void cnn_lay_out(const struct arch_shape *shape, bool inference, struct cnn_layout *out)
{
    *out = (struct cnn_layout){0};
    arch_each_conv(shape, network_cnn_add_conv, &(struct stages){out->convs, 0});
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
