#include "common/net/bf16_grid.h"

static size_t grid_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t grid_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Measured optimum of the L2 cache used by a group of images (or rows, for a 1x1); larger if the
 * weights, which are read once per group, are large. */
enum { GROUP_BYTES = 400 * 1024, LARGE_GROUP_BYTES = 1024 * 1024, LARGE_WEIGHTS = 512 * 1024 };

size_t bf16_grid_lead(const struct bf16_grid *g, size_t f)
{
    return f < g->pad ? (g->pad - f + g->stride - 1) / g->stride : 0;
}

size_t bf16_grid_end(const struct bf16_grid *g, size_t f)
{
    return (g->in + g->pad - f + g->stride - 1) / g->stride;
}

size_t bf16_grid_reach(const struct bf16_grid *g, size_t f)
{
    return (g->kernel - 1 - f) / g->stride;
}

/* Makes rows so wide that reads beyond their end hit the zeros at the start of the next row. */
static void bf16_grid_set_width(struct bf16_grid *g)
{
    g->lead = 0;
    for (size_t f = 0; f < g->phases; f++)
        if (bf16_grid_reach(g, f) > bf16_grid_lead(g, f))
            g->lead = grid_max(g->lead, bf16_grid_reach(g, f) - bf16_grid_lead(g, f));
    g->width = g->out + g->lead;
    for (size_t f = 0; f < g->phases; f++) {
        size_t reads = g->out + bf16_grid_reach(g, f);
        g->width = grid_max(g->width, bf16_grid_end(g, f));
        g->width = grid_max(g->width, reads - grid_min(bf16_grid_lead(g, f), reads));
    }
}

/* Covers the last taps of x and dz, and the last chunk of the first layer's rows of the kernel. */
static void bf16_grid_set_slack(struct bf16_grid *g)
{
    size_t taps = grid_max(bf16_grid_reach(g, 0), g->lead + bf16_grid_lead(g, 0));

    g->slack = taps * (g->width + 1);
    if (bf16_grid_is_first(g))
        g->slack += BF16_CHUNK;
}

size_t bf16_grid_laid(const struct bf16_grid *g, size_t positions)
{
    return bf16_round_up(bf16_round_up(positions, BF16_ROWS) + g->slack, 32);
}

bool bf16_grid_ends_with_lines(const struct bf16_grid *g)
{
    return g->stride == 1;
}

bool bf16_grid_is_large(const struct bf16_grid *g)
{
    return g->kernel * g->kernel * g->gi * g->co > LARGE_WEIGHTS;
}

static size_t bf16_grid_group_bytes(const struct bf16_grid *g)
{
    return bf16_grid_is_large(g) ? LARGE_GROUP_BYTES : GROUP_BYTES;
}

/* Not of the first layer, whose chunks hold several taps. */
static void bf16_grid_leave_out_taps(struct bf16_grid *g)
{
    size_t last = (g->out - 1) * g->stride;

    if (bf16_grid_is_first(g))
        return;
    g->tap_first = g->pad - grid_min(g->pad, last);
    g->kernel = grid_min(g->kernel, g->in + g->pad) - g->tap_first;
    g->pad -= g->tap_first;
}

struct bf16_grid bf16_grid_make(const struct arch_conv *c)
{
    struct bf16_grid g = {.in = (size_t)c->in_size,
                          .out = (size_t)c->out_size,
                          .stride = (size_t)c->stride,
                          .kernel = (size_t)c->kernel,
                          .weights_side = (size_t)c->kernel,
                          .pad = (size_t)c->padding,
                          .ci = (size_t)c->in_channels,
                          .co = (size_t)c->out_channels,
                          .gi = (size_t)(c->in_channels / c->groups),
                          .go = (size_t)(c->out_channels / c->groups)};

    bf16_grid_leave_out_taps(&g);
    g.phases = grid_min(g.stride, g.kernel);
    g.chunks_in = grid_max(g.gi, BF16_CHUNK) / BF16_CHUNK;
    g.chunks_out = grid_max(g.go, BF16_CHUNK) / BF16_CHUNK;
    bf16_grid_set_width(&g);
    bf16_grid_set_slack(&g);
    g.x_in_place = g.kernel == 1 && g.stride == 1 && !g.pad;
    g.dz_in_place = g.kernel == 1 && g.width == g.out;
    size_t channels = grid_max(g.ci, g.co) * sizeof(bf16);
    g.rows = grid_max(bf16_grid_group_bytes(&g) / (g.width * g.width * channels), 1) * g.width;
    g.in_place = grid_max(bf16_grid_group_bytes(&g) / channels & ~(size_t)31, 64);
    return g;
}

static size_t bf16_grid_share_rows(const struct bf16_grid *g, size_t images, int threads)
{
    size_t parts = threads > 0 ? (size_t)threads : 1;
    size_t rows = (images * g->width + parts - 1) / parts;

    return bf16_grid_ends_with_lines(g) ? rows : rows + g->width - g->out;
}

void bf16_grid_share(struct bf16_grid *g, size_t images, int threads)
{
    size_t rows = bf16_grid_share_rows(g, images, threads);

    g->rows = grid_min(g->rows, rows);
    g->in_place = grid_min(g->in_place, grid_max(bf16_round_up(rows * g->out, 32), 64));
}

bool bf16_grid_is_first(const struct bf16_grid *g)
{
    return g->ci < BF16_CHUNK;
}

static void *bf16_grid_carve(char *memory, size_t *used, size_t bytes)
{
    void *p = memory ? memory + *used : NULL;
    *used += bf16_round_up(bytes, 64);
    return p;
}

size_t bf16_grid_positions(const struct bf16_grid *g)
{
    return g->x_in_place ? g->in_place : g->rows * g->width;
}

size_t bf16_first_layer_rows(const struct bf16_grid *g)
{
    return bf16_round_up(g->kernel * g->kernel * g->ci, 32);
}

struct bf16_scratch bf16_scratch_of(const struct bf16_grid *g, enum bf16_use use, void *memory)
{
    struct bf16_scratch s = {0};
    size_t n = bf16_grid_positions(g), phases = g->phases * g->phases, all = bf16_grid_laid(g, n);
    size_t taps = g->kernel * g->kernel, chunks = grid_max(g->chunks_in, g->chunks_out);
    bool first = bf16_grid_is_first(g);

    /* Row lengths that do not map to the same lines of the L1 cache. */
    s.ld = all + (all / 32 % 2 ? 0 : 32);
    s.chunk = bf16_grid_carve(memory, &s.bytes, (taps * chunks + g->kernel * 32) * sizeof *s.chunk);
    s.pixel = bf16_grid_carve(memory, &s.bytes, (n + BF16_ROWS) * sizeof *s.pixel);
    if (!g->x_in_place)
        s.x = bf16_grid_carve(memory, &s.bytes,
                              phases * all * (first ? g->stride : 1) * g->ci * sizeof *s.x);
    if (use == BF16_FORWARD)
        return s;
    s.block = bf16_grid_carve(memory, &s.bytes, (all / 32 + 1) * sizeof *s.block);
    s.tail = bf16_grid_carve(memory, &s.bytes, 32 * grid_max(g->ci, g->co) * sizeof *s.tail);
    if (use == BF16_BACKWARD)
        s.x_columns =
            bf16_grid_carve(memory, &s.bytes,
                            (first ? g->stride * g->stride : phases) * g->ci * s.ld * sizeof *s.x);
    if (first) {
        s.dw = bf16_grid_carve(memory, &s.bytes, bf16_first_layer_rows(g) * g->co * sizeof *s.dw);
        s.dz = bf16_grid_carve(memory, &s.bytes, BF16_BLOCK_POSITIONS * g->co * sizeof *s.dz);
        s.dz_panels =
            bf16_grid_carve(memory, &s.bytes, BF16_BLOCK_POSITIONS * g->co * sizeof *s.dz);
        s.left = bf16_grid_carve(memory, &s.bytes,
                                 bf16_first_layer_rows(g) * BF16_LEFT_LD * sizeof *s.left);
        return s;
    }
    s.dz = bf16_grid_carve(memory, &s.bytes, (g->dz_in_place ? 0 : all * g->co) * sizeof *s.dz);
    if (use == BF16_BACKWARD)
        s.dz_panels =
            bf16_grid_carve(memory, &s.bytes, bf16_round_up(n, 32) * g->co * sizeof *s.dz);
    return s;
}

enum {
    SHARED_READS = 16,     /* of factors in a cache, as fast as one of a part of dw in memory */
    UNEVEN_POSITIONS = 64, /* of a block, whose products are as fast as adding its part */
};

size_t bf16_grid_dw_blocks(const struct bf16_grid *g)
{
    return g->kernel * g->kernel * (g->gi / BF16_CHUNK) * (g->co / BF16_COLUMNS);
}

static size_t bf16_grid_image_positions(const struct bf16_grid *g)
{
    return g->x_in_place ? g->out * g->out : g->width * g->width;
}

size_t bf16_shared_images(const struct bf16_grid *g, int threads)
{
    size_t parts = threads > 0 ? (size_t)threads : 1, blocks = bf16_grid_dw_blocks(g);
    size_t most = (blocks + parts - 1) / parts * parts;

    if (threads < 2 || g->gi != g->ci || bf16_grid_is_first(g))
        return 0;
    size_t images = SHARED_READS * g->kernel * g->kernel * grid_max(g->ci, g->co) /
                    bf16_grid_image_positions(g);
    if (most == blocks)
        return images;
    size_t even =
        UNEVEN_POSITIONS * parts * blocks / (most - blocks) / bf16_grid_image_positions(g);
    return grid_min(images, even);
}

struct bf16_shared bf16_shared_of(const struct bf16_grid *g, size_t images, int threads)
{
    size_t n = bf16_grid_share_rows(g, images, threads) * g->width, most = bf16_grid_positions(g);
    struct bf16_shared s = {0};

    s.pieces = (n + most - 1) / most;
    n = grid_min(n, most);
    s.ld = bf16_grid_laid(g, n);
    s.ld += s.ld / 32 % 2 ? 0 : 32;
    s.columns_bytes = bf16_round_up(g->phases * g->phases * g->ci * s.ld * sizeof(bf16), 64);
    s.piece_bytes = s.columns_bytes + bf16_round_up(n, 32) * g->co * sizeof(bf16);
    return s;
}

static size_t bf16_grid_shared_bytes(const struct bf16_grid *g, size_t images, int threads)
{
    size_t most = 0;

    for (int t = 1; t <= threads; t++) {
        struct bf16_shared s = bf16_shared_of(g, images, t);
        most = grid_max(most, (size_t)t * s.pieces * s.piece_bytes);
    }
    return most;
}

struct network_bytes {
    struct bf16_thread_bytes most;
    bool backward;
    size_t images;
    int threads;
};

static void bf16_grid_add_convolution(const struct arch_conv *c, void *context)
{
    struct network_bytes *n = context;
    struct bf16_grid g = bf16_grid_make(c);
    size_t dw = g.weights_side * g.weights_side * g.gi * g.co * sizeof(float);

    enum bf16_use use = BF16_FORWARD;
    size_t shared = n->backward ? grid_min(n->images, bf16_shared_images(&g, n->threads)) : 0;

    if (n->backward)
        use = shared == n->images ? BF16_BACKWARD_SHARED : BF16_BACKWARD;
    bf16_grid_share(&g, n->images, n->threads);
    n->most.scratch = grid_max(n->most.scratch, bf16_scratch_of(&g, use, NULL).bytes);
    if (!n->backward)
        return;
    if (shared)
        n->most.shared = grid_max(n->most.shared, bf16_grid_shared_bytes(&g, shared, n->threads));
    if (shared < n->images)
        n->most.dw = grid_max(n->most.dw, dw);
}

struct bf16_thread_bytes bf16_thread_bytes_of(const struct arch_shape *shape, bool backward,
                                              size_t images, int threads)
{
    struct network_bytes n = {.backward = backward, .images = images, .threads = threads};

    arch_each_conv(shape, bf16_grid_add_convolution, &n);
    return n.most;
}
