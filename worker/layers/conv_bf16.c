#include "worker/layers/conv_bf16.h"

#include "worker/kernels/bf16_vec.h"
#include "worker/kernels/extent.h"

/* Measured best: what a group of images (or rows, of a 1x1) takes of the second-level cache; more
 * where the weights, which are read once a group, are large. dw's sums are read and written once a
 * block of positions. */
enum {
    GROUP_BYTES = 400 * 1024,
    LARGE_GROUP_BYTES = 1024 * 1024,
    LARGE_WEIGHTS = 512 * 1024,
    BLOCK_POSITIONS = 512,
    LARGE_BLOCK_POSITIONS = 2048,
    LEFT_LD = BLOCK_POSITIONS + 32
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t round_up(size_t x, size_t unit)
{
    return (x + unit - 1) / unit * unit;
}

/* How a convolution lies on its grid of positions. */
struct geometry {
    size_t in, out, stride, kernel, pad, ci, co;
    size_t gi, go;     /* channels of a group */
    size_t chunks_in;  /* of 32 channels of x that a panel of outputs meets at each tap */
    size_t chunks_out; /* of dz that a panel of inputs meets */
    size_t phases;     /* of each direction: the remainders by the stride that have taps */
    size_t width;      /* positions of a row, rows of an image */
    size_t lead;       /* zero rows and columns before dz */
    size_t slack;      /* zero positions behind the last image */
    size_t images;     /* of a group */
    bool x_in_place, dz_in_place;
};

/* Positions of phase f before the first pixel, and before the end of the last one. */
static size_t lead_of(const struct geometry *g, size_t f)
{
    return f < g->pad ? (g->pad - f + g->stride - 1) / g->stride : 0;
}

static size_t end_of(const struct geometry *g, size_t f)
{
    return (g->in + g->pad - f + g->stride - 1) / g->stride;
}

/* The last tap's distance in phase f. */
static size_t reach_of(const struct geometry *g, size_t f)
{
    return (g->kernel - 1 - f) / g->stride;
}

/* So wide that what lies beyond a row's end is a zero of the next row's beginning. */
static void set_width(struct geometry *g)
{
    g->lead = 0;
    for (size_t f = 0; f < g->phases; f++)
        if (reach_of(g, f) > lead_of(g, f))
            g->lead = extent_max(g->lead, reach_of(g, f) - lead_of(g, f));
    g->width = g->out + g->lead;
    for (size_t f = 0; f < g->phases; f++) {
        size_t reads = g->out + reach_of(g, f);
        g->width = extent_max(g->width, end_of(g, f));
        g->width = extent_max(g->width, reads - smaller(lead_of(g, f), reads));
    }
}

static bool large(const struct geometry *g)
{
    return g->kernel * g->kernel * g->gi * g->co > LARGE_WEIGHTS;
}

static size_t group_bytes(const struct geometry *g)
{
    return large(g) ? LARGE_GROUP_BYTES : GROUP_BYTES;
}

static struct geometry geometry_of(const struct conv *c)
{
    const struct window *w = &c->window;
    struct geometry g = {.in = (size_t)w->in,
                         .out = (size_t)w->out,
                         .stride = (size_t)w->stride,
                         .kernel = (size_t)w->kernel,
                         .pad = (size_t)w->pad,
                         .ci = (size_t)w->channels,
                         .co = (size_t)c->out_channels,
                         .gi = (size_t)(w->channels / c->groups),
                         .go = (size_t)(c->out_channels / c->groups)};

    g.phases = smaller(g.stride, g.kernel);
    g.chunks_in = extent_max(g.gi, BF16_CHUNK) / BF16_CHUNK;
    g.chunks_out = extent_max(g.go, BF16_CHUNK) / BF16_CHUNK;
    set_width(&g);
    g.slack = (g.kernel + g.pad + g.lead) * (g.width + 1) + 2 * BF16_ROWS;
    g.x_in_place = g.kernel == 1 && g.stride == 1 && !g.pad;
    g.dz_in_place = g.kernel == 1 && g.width == g.out;
    g.images = group_bytes(&g) / (g.width * g.width * extent_max(g.ci, g.co) * sizeof(bf16));
    g.images = g.images ? g.images : 1;
    return g;
}

static bool is_first_layer(const struct geometry *g)
{
    return g->ci < BF16_CHUNK;
}

bool conv_bf16_takes(const struct conv *c)
{
    struct geometry g = geometry_of(c);

    if (g.co % BF16_COLUMNS || (g.ci % BF16_CHUNK && !(is_first_layer(&g) && c->groups == 1)))
        return false;
    return c->groups == 1 || (g.gi == g.go && (g.gi % BF16_CHUNK == 0 || BF16_CHUNK % g.gi == 0));
}

/* ---------------------------------------------------------------- taps */

/* Calls in the order of panels: phase by phase. */
struct tap {
    size_t fy, fx; /* phase */
    size_t ty, tx; /* distance within it */
};

static size_t tap_of(const struct geometry *g, struct tap t)
{
    return (t.fy + t.ty * g->stride) * g->kernel + t.fx + t.tx * g->stride;
}

/* The next one; of another phase if there is none in this. False behind the last. */
static bool next_tap(const struct geometry *g, struct tap *t)
{
    if (++t->tx <= reach_of(g, t->fx))
        return true;
    t->tx = 0;
    if (++t->ty <= reach_of(g, t->fy))
        return true;
    t->ty = 0;
    if (++t->fx < g->phases)
        return true;
    t->fx = 0;
    return ++t->fy < g->phases;
}

/* Chunks of a row of the kernel, of the first layer. */
static size_t row_chunks(const struct geometry *g)
{
    return round_up(g->kernel * g->ci, BF16_CHUNK) / BF16_CHUNK;
}

/* Chunks of a panel. */
static size_t panel_chunks(const struct geometry *g, enum conv_direction direction)
{
    if (is_first_layer(g))
        return g->kernel * row_chunks(g);
    return g->kernel * g->kernel * (direction == CONV_DATA ? g->chunks_out : g->chunks_in);
}

size_t conv_bf16_panels(const struct conv *c, enum conv_direction direction)
{
    return (size_t)(direction == CONV_DATA ? c->window.channels : c->out_channels) / BF16_COLUMNS;
}

size_t conv_bf16_packed(const struct conv *c, enum conv_direction direction)
{
    struct geometry g = geometry_of(c);
    return conv_bf16_panels(c, direction) * panel_chunks(&g, direction) * BF16_CHUNK_SIZE;
}

/* Of panel j: the first channel of the other side that it meets. */
static size_t base_in(const struct geometry *g, size_t j)
{
    return g->gi == g->ci ? 0 : g->gi < BF16_CHUNK ? j * 32 : j * 32 / g->go * g->gi;
}

static size_t base_out(const struct geometry *g, size_t j)
{
    return g->go == g->co ? 0 : g->go < BF16_CHUNK ? j * 32 : j * 32 / g->gi * g->go;
}

/* 32 channels in and out, of groups of fewer: zero between different groups. */
static void pack_small_groups(const struct geometry *g, const float *w, size_t tap, size_t j,
                              bool transposed, bf16 *chunk)
{
    float block[32 * 32] = {0};

    for (size_t o = 0; o < 32; o++)
        for (size_t i = 0; i < g->gi; i++)
            block[(o / g->gi * g->gi + i) * 32 + o] = w[(tap * g->gi + i) * g->co + j * 32 + o];
    bf16_pack_floats(block, 32, transposed, 32, chunk);
}

static void pack_panel(const struct geometry *g, enum conv_direction direction, const float *w,
                       size_t j, bf16 *chunk)
{
    bool back = direction == CONV_DATA;
    size_t chunks = back ? g->chunks_out : g->chunks_in;
    struct tap t = {0};

    do {
        const float *at = w + tap_of(g, t) * g->gi * g->co;
        if (back)
            at += (j * 32 % g->gi) * g->co + base_out(g, j);
        else
            at += j * 32;
        for (size_t i = 0; i < chunks; i++, chunk += BF16_CHUNK_SIZE)
            if (g->gi < BF16_CHUNK)
                pack_small_groups(g, w, tap_of(g, t), j, back, chunk);
            else
                bf16_pack_floats(at + i * 32 * (back ? 1 : g->co), g->co, back, 32, chunk);
    } while (next_tap(g, &t));
}

static void pack_first_layer(const struct geometry *g, const float *w, size_t j, bf16 *chunk)
{
    size_t rows = g->kernel * g->ci;

    for (size_t ky = 0; ky < g->kernel; ky++)
        for (size_t i = 0; i < rows; i += 32, chunk += BF16_CHUNK_SIZE)
            bf16_pack_floats(w + (ky * rows + i) * g->co + j * 32, g->co, false,
                             smaller(rows - i, 32), chunk);
}

void conv_bf16_pack(const struct conv *c, enum conv_direction direction, const float *w,
                    size_t first, size_t end, bf16 *packed)
{
    struct geometry g = geometry_of(c);
    size_t size = panel_chunks(&g, direction) * BF16_CHUNK_SIZE;

    for (size_t j = first; j < end; j++)
        if (is_first_layer(&g))
            pack_first_layer(&g, w, j, packed + j * size);
        else
            pack_panel(&g, direction, w, j, packed + j * size);
}

/* ---------------------------------------------------------------- scratch memory */

struct scratch {
    bf16 *x;         /* (phases^2, positions + slack, ci) */
    bf16 *x_columns; /* (phases^2, ci, ld): x transposed */
    bf16 *dz;        /* (positions + slack, co) */
    bf16 *dz_panels; /* (co / 32, positions / 32, ...) */
    bf16 *tail;      /* (32, the more channels) */
    bf16 *left;      /* of the first layer: (its rows, LEFT_LD) */
    float *dw;       /* of the first layer: its rows up to a multiple of 32 */
    int32_t *pixel;  /* (positions): of a tensor */
    size_t *chunk;   /* (chunks of a panel) */
    size_t *block;   /* (chunks of a block of positions) */
    size_t ld;       /* of x_columns */
    size_t bytes;
};

static void *carve(char *memory, size_t *used, size_t bytes)
{
    void *p = memory ? memory + *used : NULL;
    *used += round_up(bytes, 64);
    return p;
}

/* Positions of a group; of a 1x1 in place, rows. */
static size_t positions_of(const struct geometry *g)
{
    if (g->x_in_place)
        return extent_max(group_bytes(g) / (extent_max(g->ci, g->co) * sizeof(bf16)) & ~(size_t)31,
                          64);
    return g->images * g->width * g->width;
}

static size_t first_layer_rows(const struct geometry *g)
{
    return round_up(g->kernel * g->kernel * g->ci, 32);
}

/* memory NULL: only its size. */
static struct scratch scratch_of(const struct geometry *g, bool backward, void *memory)
{
    struct scratch s = {0};
    size_t n = positions_of(g), phases = g->phases * g->phases, all = round_up(n + g->slack, 32);
    size_t taps = g->kernel * g->kernel, chunks = extent_max(g->chunks_in, g->chunks_out);
    bool first = is_first_layer(g);

    /* rows that do not fall on each other in the first-level cache */
    s.ld = all + (all / 32 % 2 ? 0 : 32);
    s.chunk = carve(memory, &s.bytes, (taps * chunks + g->kernel * 32) * sizeof *s.chunk);
    s.pixel = carve(memory, &s.bytes, all * sizeof *s.pixel);
    if (!g->x_in_place)
        s.x = carve(memory, &s.bytes, phases * all * (first ? g->stride : 1) * g->ci * sizeof *s.x);
    if (!backward)
        return s;
    s.block = carve(memory, &s.bytes, (all / 32 + 1) * sizeof *s.block);
    s.x_columns = carve(memory, &s.bytes,
                        (first ? g->stride * g->stride : phases) * g->ci * s.ld * sizeof *s.x);
    s.tail = carve(memory, &s.bytes, 32 * extent_max(g->ci, g->co) * sizeof *s.tail);
    if (first) {
        s.dw = carve(memory, &s.bytes, first_layer_rows(g) * g->co * sizeof *s.dw);
        s.dz = carve(memory, &s.bytes, BLOCK_POSITIONS * g->co * sizeof *s.dz);
        s.dz_panels = carve(memory, &s.bytes, BLOCK_POSITIONS * g->co * sizeof *s.dz);
        s.left = carve(memory, &s.bytes, first_layer_rows(g) * LEFT_LD * sizeof *s.left);
        return s;
    }
    s.dz = carve(memory, &s.bytes, (g->dz_in_place ? 0 : all * g->co) * sizeof *s.dz);
    s.dz_panels = carve(memory, &s.bytes, round_up(n, 32) * g->co * sizeof *s.dz);
    return s;
}

size_t conv_bf16_scratch_bytes(const struct conv *c, bool backward)
{
    struct geometry g = geometry_of(c);
    return scratch_of(&g, backward, NULL).bytes;
}

/* ---------------------------------------------------------------- positions */

/* Images of (size, size, c) as positions: (row, column) of an image is its pixel (stride row + fy -
 * pad, stride column + fx - pad), or zero. */
struct layout {
    size_t size, c, stride, fy, fx, pad, width;
};

static void zero(bf16 *to, size_t n)
{
    memset(to, 0, n * sizeof *to);
}

static void lay_row(const struct layout *l, const bf16 *line, bf16 *to)
{
    size_t before = l->fx < l->pad ? (l->pad - l->fx + l->stride - 1) / l->stride : 0;
    size_t end = smaller((l->size + l->pad - l->fx + l->stride - 1) / l->stride, l->width);

    zero(to, before * l->c);
    if (l->stride == 1)
        memcpy(to + before * l->c, line, (end - before) * l->c * sizeof *to);
    else
        for (size_t b = before; b < end; b++)
            memcpy(to + b * l->c, line + (b * l->stride + l->fx - l->pad) * l->c,
                   l->c * sizeof *to);
    zero(to + end * l->c, (l->width - end) * l->c);
}

static void lay_images(const struct layout *l, const bf16 *from, size_t images, size_t slack,
                       bf16 *to)
{
    size_t row = l->width * l->c;

    for (size_t i = 0; i < images; i++, from += l->size * l->size * l->c)
        for (size_t a = 0; a < l->width; a++, to += row) {
            size_t y = a * l->stride + l->fy - l->pad; /* huge before the first */
            if (y < l->size)
                lay_row(l, from + y * l->size * l->c, to);
            else
                zero(to, row);
        }
    zero(to, slack * l->c);
}

/* All phases of x; returns the elements of one. */
static size_t lay_x(const struct geometry *g, const bf16 *x, size_t images, bf16 *to)
{
    size_t size = round_up(images * g->width * g->width + g->slack, 32) * g->ci;

    for (size_t f = 0; f < g->phases * g->phases; f++) {
        struct layout l = {g->in, g->ci, g->stride, f / g->phases, f % g->phases, g->pad, g->width};
        lay_images(&l, x, images, size / g->ci - images * g->width * g->width, to + f * size);
    }
    return size;
}

static void lay_dz(const struct geometry *g, const bf16 *dz, size_t images, bf16 *to)
{
    struct layout l = {g->out, g->co, 1, 0, 0, g->lead, g->width};
    lay_images(&l, dz, images, g->slack, to);
}

/* Pixels of a tensor of this size by position: (y, x) = stride (row, column) + (y0, x0), of `rows`
 * rows and `columns` columns; -1: none. */
struct place {
    size_t size, stride, y0, x0, rows, columns, width;
};

static void bf16_find_pixels(const struct place *p, size_t images, int32_t *pixel)
{
    for (size_t i = 0; i < images; i++)
        for (size_t r = 0; r < p->width; r++)
            for (size_t c = 0; c < p->width; c++) {
                size_t y = r * p->stride + p->y0, x = c * p->stride + p->x0;
                *pixel++ =
                    r < p->rows && c < p->columns ? (int32_t)((i * p->size + y) * p->size + x) : -1;
            }
    for (int i = 0; i < BF16_ROWS; i++)
        *pixel++ = -1;
}

/* ---------------------------------------------------------------- rows of z and dx */

struct rows {
    struct bf16_product p; /* of the first position and panel */
    size_t positions;
    bool exact;            /* nothing may be read behind the last position */
    size_t columns, panel; /* elements of a panel */
    const int32_t *pixel;  /* NULL: positions are pixels */
    bf16 *to;              /* (pixels, columns) */
    bool add;
    const struct geometry *g;
    size_t (*base)(const struct geometry *g, size_t j);
};

BF16_INLINE void store_rows(const struct rows *r, const float *block, size_t q, size_t rows,
                            size_t j, bool native)
{
    for (size_t i = 0; i < rows; i++, block += BF16_COLUMNS) {
        int64_t pixel = r->pixel ? r->pixel[q + i] : (int64_t)(q + i);
        if (pixel < 0)
            continue;
        bf16 *to = r->to + (size_t)pixel * r->columns + j * BF16_COLUMNS;
        for (size_t k = 0; k < BF16_COLUMNS; k += VEC) {
            vec v = vec_load(block + k);
            if (r->add)
                v += vec_load_bf16(to + k);
            vec_store_bf16(to + k, v, native);
        }
    }
}

/* A panel stays in the first-level cache while the positions pass. */
static void multiply_rows(const struct rows *r)
{
    float block[BF16_ROWS * BF16_COLUMNS] __attribute__((aligned(64)));
    struct bf16_product p = r->p;

    for (size_t j = 0; j < r->columns / BF16_COLUMNS; j++) {
        const bf16 *a = r->p.a + r->base(r->g, j);
        p.panel = r->p.panel + j * r->panel;
        for (size_t q = 0; q < r->positions; q += BF16_ROWS) {
            size_t rows = r->exact ? smaller(r->positions - q, BF16_ROWS) : BF16_ROWS;
            p.a = a + q * p.row;
            bf16_multiply(&p, rows, block, BF16_COLUMNS, false);
            if (bf16_converts())
                store_rows(r, block, q, rows, j, true);
            else
                store_rows(r, block, q, rows, j, false);
        }
    }
}

/* Distances of forward's chunks; `phase` elements lie between two phases. */
static void forward_chunks(const struct geometry *g, size_t phase, size_t *chunk)
{
    struct tap t = {0};

    do
        for (size_t i = 0; i < g->chunks_in; i++)
            *chunk++ =
                (t.fy * g->phases + t.fx) * phase + (t.ty * g->width + t.tx) * g->ci + i * 32;
    while (next_tap(g, &t));
}

static void forward_in_place(const struct geometry *g, const struct scratch *s, const bf16 *packed,
                             const bf16 *x, bf16 *z, size_t row, size_t last, conv_bf16_rows *done,
                             void *context)
{
    size_t step = positions_of(g), chunks = panel_chunks(g, CONV_FORWARD);

    forward_chunks(g, 0, s->chunk);
    for (; row < last; row += step) {
        size_t rows = smaller(last - row, step);
        multiply_rows(&(struct rows){
            .p = {x + row * g->ci, g->ci, s->chunk, chunks, packed},
            .positions = rows,
            .exact = true,
            .columns = g->co,
            .panel = chunks * BF16_CHUNK_SIZE,
            .to = z + row * g->co,
            .g = g,
            .base = base_in
        });
        if (done)
            done(row, rows, context);
    }
}

static void forward_group(const struct geometry *g, const struct scratch *s, const bf16 *packed,
                          const bf16 *x, bf16 *z, size_t images)
{
    size_t chunks = panel_chunks(g, CONV_FORWARD);
    struct place place = {g->out, 1, 0, 0, g->out, g->out, g->width};

    forward_chunks(g, lay_x(g, x, images, s->x), s->chunk);
    bf16_find_pixels(&place, images, s->pixel);
    multiply_rows(&(struct rows){
        .p = {s->x, g->ci, s->chunk, chunks, packed},
        .positions = images * g->width * g->width,
        .columns = g->co,
        .panel = chunks * BF16_CHUNK_SIZE,
        .pixel = s->pixel,
        .to = z,
        .g = g,
        .base = base_in
    });
}

/* ---------------------------------------------------------------- the first layer */

/* fp32 images as rows of phase fy, with all columns of a row side by side: (phases, positions,
 * stride, ci). Returns the elements of a phase. */
static size_t lay_first(const struct geometry *g, const float *x, size_t images, bf16 *to)
{
    size_t line = g->width * g->stride * g->ci, lead = g->pad * g->ci, pixels = g->in * g->ci;
    size_t size = round_up(images * g->width * g->width + g->slack, 32) * g->stride * g->ci;

    pixels = smaller(pixels, line - lead);
    for (size_t f = 0; f < g->phases; f++) {
        bf16 *at = to + f * size;
        zero(at, size);
        for (size_t i = 0; i < images; i++)
            for (size_t a = 0; a < g->width; a++, at += line) {
                size_t y = a * g->stride + f - g->pad;
                if (y < g->in)
                    bf16_from_floats(x + (i * g->in + y) * g->in * g->ci, pixels, at + lead);
            }
    }
    return size;
}

static void forward_first(const struct geometry *g, const struct scratch *s, const bf16 *packed,
                          const float *x, bf16 *z, size_t images)
{
    size_t phase = lay_first(g, x, images, s->x), n = row_chunks(g);
    struct place place = {g->out, 1, 0, 0, g->out, g->out, g->width};

    for (size_t ky = 0; ky < g->kernel; ky++)
        for (size_t i = 0; i < n; i++)
            s->chunk[ky * n + i] =
                ky % g->stride * phase + ky / g->stride * g->width * g->stride * g->ci + i * 32;
    bf16_find_pixels(&place, images, s->pixel);
    multiply_rows(&(struct rows){
        .p = {s->x, g->stride * g->ci, s->chunk, g->kernel * n, packed},
        .positions = images * g->width * g->width,
        .columns = g->co,
        .panel = g->kernel * n * BF16_CHUNK_SIZE,
        .pixel = s->pixel,
        .to = z,
        .g = g,
        .base = base_in
    });
}

void conv_bf16_forward(const struct conv *c, const bf16 *packed, const void *x, bf16 *z, int first,
                       int end, void *scratch, conv_bf16_rows *done, void *context)
{
    struct geometry g = geometry_of(c);
    struct scratch s = scratch_of(&g, false, scratch);
    size_t in = g.in * g.in * g.ci, out = g.out * g.out;

    bf16_begin();
    if (g.x_in_place)
        forward_in_place(&g, &s, packed, x, z, (size_t)first * out, (size_t)end * out, done,
                         context);
    else
        for (size_t i = (size_t)first; i < (size_t)end; i += g.images) {
            size_t images = smaller((size_t)end - i, g.images);
            if (is_first_layer(&g))
                forward_first(&g, &s, packed, (const float *)x + i * in, z + i * out * g.co,
                              images);
            else
                forward_group(&g, &s, packed, (const bf16 *)x + i * in, z + i * out * g.co, images);
            if (done)
                done(i * out, images * out, context);
        }
    bf16_end();
}

/* ---------------------------------------------------------------- dw */

/* Rows in chunks of 32; the last one is filled up with zeros. */
static const bf16 *full_rows(const bf16 *from, size_t c, size_t rows, size_t row, bf16 *tail)
{
    if (row + 32 <= rows)
        return from + row * c;
    memcpy(tail, from + row * c, (rows - row) * c * sizeof *tail);
    zero(tail + (rows - row) * c, (32 - (rows - row)) * c);
    return tail;
}

static void pack_dz(const struct geometry *g, const bf16 *dz, size_t rows, bf16 *tail, bf16 *panels)
{
    size_t size = round_up(rows, 32) * BF16_COLUMNS;

    for (size_t row = 0; row < rows; row += 32) {
        const bf16 *from = full_rows(dz, g->co, rows, row, tail);
        for (size_t j = 0; j < g->co / 32; j++)
            bf16_pack(from + j * 32, g->co, panels + j * size + row * BF16_COLUMNS);
    }
}

static void turn_x(const struct geometry *g, const bf16 *x, size_t rows, bf16 *tail, bf16 *columns,
                   size_t ld)
{
    for (size_t row = 0; row < rows; row += 32)
        bf16_transpose(full_rows(x, g->ci, rows, row, tail), g->ci, 32, g->ci, columns + row, ld);
}

/* dw of groups of fewer channels than 32 from a product of 32 by 32. */
static void add_small_groups(const struct geometry *g, const float *block, float *dw, bool add)
{
    for (size_t i = 0; i < g->gi; i++)
        for (size_t o = 0; o < 32; o++) {
            float x = block[(o / g->gi * g->gi + i) * 32 + o];
            dw[i * g->co + o] = add ? dw[i * g->co + o] + x : x;
        }
}

struct sums {
    const struct geometry *g;
    const struct scratch *s;
    size_t phase;     /* elements of x_columns between two */
    size_t positions; /* in the panels */
    float *dw;
    bool add;
};

/* Panel j of dz with x at one tap, for a block of positions. */
static void sum_tap(const struct sums *w, struct tap t, size_t j, size_t k0, size_t k, bool add)
{
    const struct geometry *g = w->g;
    const bf16 *x = w->s->x_columns + (t.fy * g->phases + t.fx) * w->phase + t.ty * g->width +
                    t.tx + k0 + base_in(g, j) * w->s->ld;
    float *dw = w->dw + tap_of(g, t) * g->gi * g->co + j * 32;
    float block[32 * 32];
    struct bf16_product p = {x, w->s->ld, w->s->block, k / 32,
                             w->s->dz_panels + (j * w->positions + k0) * BF16_COLUMNS};

    if (g->gi < BF16_CHUNK) {
        bf16_multiply(&p, 32, block, 32, false);
        add_small_groups(g, block, dw, add);
        return;
    }
    for (size_t i = 0; i < g->gi; i += 32) {
        p.a = x + i * w->s->ld;
        bf16_multiply(&p, 32, dw + i * g->co, g->co, add);
    }
}

static void sum_weights(const struct sums *w)
{
    size_t most = large(w->g) ? LARGE_BLOCK_POSITIONS : BLOCK_POSITIONS;

    for (size_t i = 0; i < w->positions / 32; i++)
        w->s->block[i] = 32 * i;
    for (size_t k0 = 0; k0 < w->positions; k0 += most)
        for (size_t j = 0; j < w->g->co / 32; j++) {
            struct tap t = {0};
            do
                sum_tap(w, t, j, k0, smaller(w->positions - k0, most), w->add || k0);
            while (next_tap(w->g, &t));
        }
}

/* Each column of each remainder by the stride by itself: (phases, stride, ci, ld). */
static void turn_first(const struct geometry *g, const struct scratch *s, size_t phase, size_t n)
{
    for (size_t f = 0; f < g->phases; f++)
        for (size_t i = 0; i < g->stride * g->ci; i++) {
            const bf16 *from = s->x + f * phase + i;
            bf16 *to = s->x_columns + (f * g->stride * g->ci + i) * s->ld;
            for (size_t q = 0; q < n; q++)
                to[q] = from[q * g->stride * g->ci];
        }
}

/* The rows of dw's left side, as im2col's columns: from position k0 on. */
static void first_rows(const struct geometry *g, const struct scratch *s, size_t k0, size_t k,
                       bf16 *to, size_t ld)
{
    size_t rows = g->kernel * g->kernel * g->ci;

    for (size_t r = 0; r < first_layer_rows(g); r++, to += ld) {
        size_t c = r % g->ci, kx = r / g->ci % g->kernel, ky = r / g->ci / g->kernel;
        size_t column = (ky % g->stride * g->stride + kx % g->stride) * g->ci + c;
        if (r < rows)
            memcpy(to,
                   s->x_columns + column * s->ld + ky / g->stride * g->width + kx / g->stride + k0,
                   k * sizeof *to);
        else
            zero(to, k);
    }
}

/* Positions [k0, k0 + k) of one image's dz. */
static void lay_first_dz(const struct geometry *g, const bf16 *dz, size_t k0, size_t k, bf16 *to)
{
    for (size_t q = k0; q < k0 + k; q++, to += g->co) {
        size_t y = q / g->width, x = q % g->width;
        if (y < g->out && x < g->out)
            memcpy(to, dz + (y * g->out + x) * g->co, g->co * sizeof *to);
        else
            zero(to, g->co);
    }
}

static void sum_first(const struct geometry *g, const struct scratch *s, const float *x,
                      const bf16 *dz, bool add)
{
    size_t phase = lay_first(g, x, 1, s->x), n = round_up(g->width * g->width, 32);

    turn_first(g, s, phase, round_up(n + g->slack, 32) - 32);
    for (size_t i = 0; i < BLOCK_POSITIONS / 32; i++)
        s->block[i] = 32 * i;
    for (size_t k0 = 0; k0 < n; k0 += BLOCK_POSITIONS) {
        size_t k = smaller(n - k0, BLOCK_POSITIONS);
        first_rows(g, s, k0, k, s->left, LEFT_LD);
        lay_first_dz(g, dz, k0, k, s->dz);
        pack_dz(g, s->dz, k, s->tail, s->dz_panels);
        for (size_t j = 0; j < g->co / 32; j++)
            for (size_t r = 0; r < first_layer_rows(g); r += 32)
                bf16_multiply(&(struct bf16_product){s->left + r * LEFT_LD, LEFT_LD, s->block,
                                                     k / 32, s->dz_panels + j * k * BF16_COLUMNS},
                              32, s->dw + r * g->co + j * 32, g->co, add || k0);
    }
}

static void backward_first(const struct geometry *g, const struct scratch *s,
                           const struct conv_bf16_backward *b, size_t first, size_t end)
{
    size_t out = g->out * g->out, weights = g->kernel * g->kernel * g->ci * g->co;

    for (size_t i = first; i < end; i++) {
        if (b->ready)
            b->ready(i * out, out, b->context);
        sum_first(g, s, (const float *)b->x + i * g->in * g->in * g->ci, b->dz + i * out * g->co,
                  i > first);
    }
    for (size_t i = 0; i < weights; i++)
        b->dw[i] = b->add_dw ? b->dw[i] + s->dw[i] : s->dw[i];
}

/* ---------------------------------------------------------------- dx */

/* Of one phase, whose taps are behind `chunks` others in the panels. dz: of the first position. */
static size_t data_of_phase(const struct geometry *g, const struct scratch *s,
                            const struct conv_bf16_backward *b, const bf16 *dz, size_t images,
                            size_t fy, size_t fx, size_t chunks, bf16 *dx)
{
    size_t y0 = lead_of(g, fy), x0 = lead_of(g, fx), n = 0;
    struct place place = {g->in,
                          g->stride,
                          y0 * g->stride + fy - g->pad,
                          x0 * g->stride + fx - g->pad,
                          end_of(g, fy) - y0,
                          end_of(g, fx) - x0,
                          g->width};

    for (size_t ty = 0; ty <= reach_of(g, fy); ty++)
        for (size_t tx = 0; tx <= reach_of(g, fx); tx++)
            for (size_t i = 0; i < g->chunks_out; i++)
                s->chunk[n++] =
                    ((y0 + g->lead - ty) * g->width + x0 + g->lead - tx) * g->co + i * 32;
    bf16_find_pixels(&place, images, s->pixel);
    multiply_rows(&(struct rows){
        .p = {dz, g->co, s->chunk, n, b->packed + chunks * BF16_CHUNK_SIZE},
        .positions = images * g->width * g->width,
        .exact = g->dz_in_place,
        .columns = g->ci,
        .panel = panel_chunks(g, CONV_DATA) * BF16_CHUNK_SIZE,
        .pixel = s->pixel,
        .to = dx,
        .add = b->add_dx,
        .g = g,
        .base = base_out
    });
    return n;
}

static void bf16_backward_group(const struct geometry *g, const struct scratch *s,
                                const struct conv_bf16_backward *b, size_t image, size_t images,
                                bool add_dw)
{
    size_t in = g->in * g->in * g->ci, n = images * g->width * g->width, chunks = 0;
    const bf16 *dz = b->dz + image * g->out * g->out * g->co, *x = (const bf16 *)b->x + image * in;
    bf16 *dx = b->dx ? b->dx + image * in : NULL;
    size_t phase = lay_x(g, x, images, s->x);

    if (!g->dz_in_place) {
        lay_dz(g, dz, images, s->dz);
        dz = s->dz;
    }
    for (size_t f = 0; f < g->phases * g->phases; f++)
        turn_x(g, s->x + f * phase, phase / g->ci, s->tail, s->x_columns + f * g->ci * s->ld,
               s->ld);
    pack_dz(g, dz + g->lead * (g->width + 1) * g->co, g->dz_in_place ? n : round_up(n, 32), s->tail,
            s->dz_panels);
    sum_weights(&(struct sums){g, s, g->ci * s->ld, round_up(n, 32), b->dw, add_dw});
    if (!dx)
        return;
    if (g->phases < g->stride && !b->add_dx)
        zero(dx, images * in);
    for (size_t f = 0; f < g->phases * g->phases; f++)
        chunks += data_of_phase(g, s, b, dz, images, f / g->phases, f % g->phases, chunks, dx);
}

static void backward_in_place(const struct geometry *g, const struct scratch *s,
                              const struct conv_bf16_backward *b, size_t row, size_t last)
{
    size_t step = positions_of(g), chunks = panel_chunks(g, CONV_DATA);
    bool add_dw = b->add_dw;

    for (; row < last; row += step, add_dw = true) {
        size_t rows = smaller(last - row, step);
        const bf16 *dz = b->dz + row * g->co;
        if (b->ready)
            b->ready(row, rows, b->context);
        turn_x(g, (const bf16 *)b->x + row * g->ci, rows, s->tail, s->x_columns, s->ld);
        pack_dz(g, dz, rows, s->tail, s->dz_panels);
        sum_weights(&(struct sums){g, s, 0, round_up(rows, 32), b->dw, add_dw});
        if (!b->dx)
            continue;
        for (size_t i = 0; i < chunks; i++)
            s->chunk[i] = 32 * i;
        multiply_rows(&(struct rows){
            .p = {dz, g->co, s->chunk, chunks, b->packed},
            .positions = rows,
            .exact = true,
            .columns = g->ci,
            .panel = chunks * BF16_CHUNK_SIZE,
            .to = b->dx + row * g->ci,
            .add = b->add_dx,
            .g = g,
            .base = base_out
        });
        if (b->done)
            b->done(row, rows, b->context);
    }
}

void conv_bf16_backward(const struct conv *c, const struct conv_bf16_backward *b, int first,
                        int end)
{
    struct geometry g = geometry_of(c);
    struct scratch s = scratch_of(&g, true, b->scratch);
    size_t in = g.in * g.in, out = g.out * g.out;

    bf16_begin();
    if (is_first_layer(&g))
        backward_first(&g, &s, b, (size_t)first, (size_t)end);
    else if (g.x_in_place)
        backward_in_place(&g, &s, b, (size_t)first * out, (size_t)end * out);
    else
        for (size_t i = (size_t)first; i < (size_t)end; i += g.images) {
            size_t images = smaller((size_t)end - i, g.images);
            if (b->ready)
                b->ready(i * out, images * out, b->context);
            bf16_backward_group(&g, &s, b, i, images, b->add_dw || i > (size_t)first);
            if (b->dx && b->done)
                b->done(i * in, images * in, b->context);
        }
    bf16_end();
}
