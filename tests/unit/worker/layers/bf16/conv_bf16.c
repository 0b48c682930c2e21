#include "tests/reference/reference.h"
#include "worker/layers/conv_bf16.h"

#include "tests/unit/worker/compare.h"
#include "worker/layers/conv_bf16_grid.h"
#include "worker/layers/conv.h"
#include "worker/team/memory.h"

static const struct shape {
    int n, in, ci, co, kernel, stride, pad, groups;
} shapes[] = {
    {3,  19, 3,   64,  7, 2, 3, 1 }, /* stems */
    {2,  33, 3,   32,  7, 2, 3, 1 },
    {3,  8,  3,   64,  3, 1, 1, 1 },
    {2,  9,  1,   32,  3, 1, 1, 1 },
    {3,  7,  64,  96,  1, 1, 0, 1 },
    {2,  20, 32,  64,  1, 1, 0, 1 },
    {3,  8,  64,  32,  1, 2, 0, 1 },
    {3,  7,  32,  64,  1, 2, 0, 1 },
    {3,  7,  64,  32,  3, 1, 1, 1 },
    {2,  14, 32,  96,  3, 1, 1, 1 },
    {70, 4,  32,  32,  3, 1, 1, 1 },
    {3,  1,  32,  32,  3, 1, 1, 1 },
    {70, 1,  64,  96,  3, 1, 1, 1 }, /* with taps that only see padding */
    {9,  1,  32,  64,  3, 2, 1, 1 },
    {5,  2,  64,  32,  3, 2, 1, 1 },
    {37, 1,  128, 128, 3, 1, 1, 2 },
    {4,  2,  128, 128, 3, 2, 1, 16},
    {3,  14, 32,  64,  3, 2, 1, 1 },
    {3,  13, 64,  32,  3, 2, 1, 1 },
    {2,  9,  32,  32,  5, 1, 2, 1 },
    {2,  9,  128, 128, 3, 1, 1, 32}, /* groups of 4, 16, 32 and 64 */
    {2,  10, 128, 128, 3, 2, 1, 8 },
    {2,  7,  128, 128, 3, 1, 1, 4 },
    {2,  8,  128, 128, 3, 2, 1, 2 },
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

struct data {
    struct conv c;
    size_t in, out, weights;
    bool first;        /* layer: x is float */
    float *x, *w, *dz; /* rounded to bf16, as floats */
    bf16 *x_16, *dz_16, *forward, *back;
    struct conv_bf16_scratch scratch;
};

/* n numbers that bf16 has, also as such. */
static float *rounded_noise(size_t n, int64_t seed, bf16 **as_bf16)
{
    float *x = noise(n, seed);
    *as_bf16 = malloc(n * sizeof **as_bf16);
    bf16_from_floats(x, n, *as_bf16);
    bf16_to_floats(*as_bf16, n, x);
    return x;
}

static size_t scratch_bytes(const struct conv *c, enum bf16_use use)
{
    struct bf16_grid g = bf16_grid_of(c);
    return bf16_scratch_of(&g, use, NULL).bytes;
}

static struct data bf16_conv_make(const struct shape *s)
{
    struct data d = {.c = conv_make(s->in, s->ci, s->co, s->kernel, s->stride, s->pad, s->groups)};
    size_t bytes = scratch_bytes(&d.c, BF16_BACKWARD);
    bf16 *w;

    cr_assert(conv_bf16_takes(&d.c));
    d.first = s->ci < 32;
    d.in = (size_t)(s->n * s->in * s->in * s->ci);
    d.out = (size_t)(s->n * d.c.window.out * d.c.window.out * s->co);
    d.weights = conv_weights(&d.c);
    d.x = rounded_noise(d.in, 1, &d.x_16);
    d.w = rounded_noise(d.weights, 2, &w);
    free(w);
    d.dz = rounded_noise(d.out, 3, &d.dz_16);
    d.forward = malloc(conv_bf16_packed(&d.c, CONV_FORWARD) * sizeof *d.forward);
    conv_bf16_pack(&d.c, CONV_FORWARD, d.w, 0, conv_bf16_panels(&d.c, CONV_FORWARD), d.forward);
    if (!d.first) {
        d.back = malloc(conv_bf16_packed(&d.c, CONV_DATA) * sizeof *d.back);
        conv_bf16_pack(&d.c, CONV_DATA, d.w, 0, conv_bf16_panels(&d.c, CONV_DATA), d.back);
    }
    cr_assert_leq(scratch_bytes(&d.c, BF16_FORWARD), bytes);
    d.scratch.memory = memory_allocate(bytes);
    memset(d.scratch.memory, 0xff, bytes); /* NaN: what is not written must not be read */
    return d;
}

static void bf16_conv_drop(struct data *d)
{
    void *all[] = {d->x, d->w, d->dz, d->x_16, d->dz_16, d->forward, d->back, d->scratch.memory};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

static const char *bf16_name(const struct shape *s)
{
    static char text[160];
    snprintf(text, sizeof text, "%d x (%d, %d, %d) -> %d, kernel %d, stride %d, %d groups, %s",
             s->n, s->in, s->in, s->ci, s->co, s->kernel, s->stride, s->groups,
             bf16_kind_name(bf16_kind()));
    return text;
}

static double largest(const float *x, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)x[i]));
    return most;
}

/* Sums of fp32, rounded to bf16 once: half a unit of the last of 8 bits, 2^-9 of the next power of
 * two. */
static void bf16_conv_assert_rounded(const bf16 *have, const float *want, size_t n,
                                     const char *what, const struct shape *s)
{
    double most = largest(want, n);
    for (size_t i = 0; i < n; i++) {
        double x = bf16_to_float(have[i]), y = want[i];
        cr_assert(fabs(x - y) <= 0x1.01p-8 * fabs(y) + 2e-6 * most, "%s of %s: %zu is %g, not %g",
                  what, bf16_name(s), i, x, y);
    }
}

static void bf16_count_rows(const struct parallel_block *part, void *context)
{
    size_t *next = context;
    cr_assert_eq(part->row, *next, "rows come in order and once");
    *next += part->rows;
}

static bf16 *forward(struct data *d, const struct shape *s)
{
    bf16 *z = malloc(d->out * sizeof *z);
    size_t rows = 0;
    size_t lines = (size_t)(s->n * d->c.window.out), cut = lines * 2 / 5; /* within an image */
    const void *x = d->first ? (void *)d->x : d->x_16;

    conv_bf16_forward(&d->c, d->forward, x, z, 0, cut, d->scratch, bf16_count_rows, &rows, false);
    conv_bf16_forward(&d->c, d->forward, d->x_16, z, cut, lines, d->scratch, bf16_count_rows, &rows,
                      true); /* the first layer reads either */
    cr_assert_eq(rows * (size_t)s->co, d->out);
    return z;
}

/* In three parts, which begin and end within images. */
static void backward(struct data *d, const struct shape *s, bool add, bf16 *dx, float *dw)
{
    size_t lines = (size_t)(s->n * d->c.window.out), rows = 0;
    struct conv_bf16_backward b = {.packed = d->back,
                                   .x = d->first ? (void *)d->x : d->x_16,
                                   .dz = d->dz_16,
                                   .dx = d->first ? NULL : dx,
                                   .add_dx = add,
                                   .dw = dw,
                                   .add_dw = add,
                                   .scratch = d->scratch,
                                   .done = d->first ? NULL : bf16_count_rows,
                                   .context = &rows};
    for (size_t i = 0; i < 3; i++, b.add_dw = true, b.x = d->x_16, b.bf16_x = true)
        if (lines * i / 3 < lines * (i + 1) / 3)
            conv_bf16_backward(&d->c, &b, lines * i / 3, lines * (i + 1) / 3);
    cr_assert_eq(rows * (size_t)s->ci, d->first ? 0 : d->in);
}

static void bf16_check_forward(struct data *d, const struct shape *s)
{
    float *want = noise(d->out, 5);
    bf16 *z = forward(d, s);

    conv_forward_reference(&d->c, d->w, d->x, want, s->n);
    bf16_conv_assert_rounded(z, want, d->out, "z", s);
    free(want);
    free(z);
}

static void bf16_check_backward(struct data *d, const struct shape *s, bool add)
{
    bf16 *dx;
    float *old_dx = rounded_noise(d->in, 6, &dx), *dw = noise(d->weights, 7),
          *old_dw = copy_of(dw, d->weights);
    float *want_dx = noise(d->in, 8), *want_dw = noise(d->weights, 9);

    backward(d, s, add, dx, dw);
    conv_backward_reference(&d->c, d->w, d->x, d->dz, s->n, want_dx, want_dw);
    for (size_t i = 0; add && i < d->in; i++)
        want_dx[i] += old_dx[i];
    for (size_t i = 0; add && i < d->weights; i++)
        want_dw[i] += old_dw[i];
    if (!d->first)
        bf16_conv_assert_rounded(dx, want_dx, d->in, "dx", s);
    assert_close(dw, want_dw, d->weights, 5e-6, "dw of %s", bf16_name(s));
    void *all[] = {dx, old_dx, dw, old_dw, want_dx, want_dw};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

static void bf16_check_all(enum bf16_kind kind)
{
    if (!bf16_use(kind))
        cr_skip_test("this processor has no %s", bf16_kind_name(kind));
    for (size_t i = 0; i < SHAPES; i++) {
        struct data d = bf16_conv_make(&shapes[i]);
        bf16_check_forward(&d, &shapes[i]);
        bf16_check_backward(&d, &shapes[i], false);
        bf16_check_backward(&d, &shapes[i], true);
        bf16_conv_drop(&d);
    }
}

Test(conv_bf16, emulated_equals_the_definition)
{
    bf16_check_all(BF16_EMULATED);
}

Test(conv_bf16, avx512_bf16_equals_the_definition)
{
    bf16_check_all(BF16_DOT);
}

Test(conv_bf16, amx_equals_the_definition)
{
    bf16_check_all(BF16_AMX);
}

Test(conv_bf16, amx_and_emulation_give_the_same_bits)
{
    if (!bf16_use(BF16_AMX))
        cr_skip_test("this processor has no %s", bf16_kind_name(BF16_AMX));
    for (size_t i = 0; i < SHAPES; i++) {
        struct data d = bf16_conv_make(&shapes[i]);
        bf16 *z[2], *dx[2];
        float *dw[2];
        for (int k = 0; k < 2; k++) {
            bf16_use(k ? BF16_AMX : BF16_EMULATED);
            z[k] = forward(&d, &shapes[i]);
            dx[k] = calloc(d.in, sizeof *dx[k]);
            dw[k] = noise(d.weights, 4);
            backward(&d, &shapes[i], true, dx[k], dw[k]);
        }
        cr_assert_arr_eq(z[0], z[1], d.out * sizeof *z[0]);
        cr_assert_arr_eq(dx[0], dx[1], d.in * sizeof *dx[0]);
        cr_assert_arr_eq(dw[0], dw[1], d.weights * sizeof *dw[0]);
        for (int k = 0; k < 2; k++) {
            free(z[k]);
            free(dx[k]);
            free(dw[k]);
        }
        bf16_conv_drop(&d);
    }
}

Test(conv_bf16, refuses_other_channels)
{
    struct conv odd[] = {conv_make(8, 48, 64, 3, 1, 1, 1), conv_make(8, 64, 40, 3, 1, 1, 1),
                         conv_make(8, 96, 96, 3, 1, 1, 4), conv_make(8, 16, 32, 3, 1, 1, 4)};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        cr_assert_not(conv_bf16_takes(&odd[i]));
}
