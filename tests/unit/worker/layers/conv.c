#include "tests/unit/worker/compare.h"
#include "worker/kernels/gemm.h"
#include "worker/kernels/tile_gemm.h"
#include "worker/layers/conv_grouped.h"
#include "worker/layers/conv_winograd.h"

static const struct shape {
    int n, in, ci, co, kernel, stride, pad, groups;
} shapes[] = {
    {2,  9, 3,  64, 7, 2, 3, 1}, /* the stem */
    {1,  5, 5,  7,  3, 1, 1, 1}, /* channels of no multiple */
    {3,  9, 1,  32, 5, 1, 2, 1}, /* of cnn: grey images, and its second one at two widths */
    {3,  7, 32, 64, 5, 1, 2, 1},
    {2,  7, 24, 48, 5, 1, 2, 1},
    {3,  6, 16, 24, 3, 2, 1, 1},
    {2,  7, 64, 32, 3, 1, 1, 1},
    {2,  6, 32, 64, 1, 1, 0, 1},
    {2,  6, 33, 64, 1, 2, 0, 1},
    {1,  1, 32, 32, 3, 1, 1, 1},
    {3,  2, 32, 64, 3, 1, 1, 1},
    {2,  2, 64, 32, 3, 2, 1, 1}, /* vanished taps, few images */
    {50, 1, 32, 32, 3, 1, 1, 1},
    {50, 2, 32, 32, 3, 1, 1, 1},
    {49, 2, 32, 64, 3, 2, 1, 1}, /* by pixel */
    {50, 3, 32, 32, 3, 1, 1, 1},
    {48, 5, 32, 32, 3, 2, 1, 1},
    {50, 4, 64, 32, 1, 2, 0, 1},
};

struct data {
    struct conv c;
    size_t in, out, weights; /* floats */
    float *x, *w, *dz, *scratch;
};

static struct data make(const struct shape *s)
{
    struct data d = {.c = conv_make(s->in, s->ci, s->co, s->kernel, s->stride, s->pad, s->groups)};
    d.in = (size_t)(s->n * s->in * s->in * s->ci);
    d.out = (size_t)(s->n * d.c.window.out * d.c.window.out * s->co);
    d.weights = conv_weights(&d.c);
    d.x = noise(d.in, 1);
    d.w = noise(d.weights, 2);
    d.dz = noise(d.out, 3);
    d.scratch = malloc(conv_scratch_floats(&d.c) * sizeof(float));
    gemm_single_threaded();
    return d;
}

static void drop(struct data *d)
{
    free(d->x);
    free(d->w);
    free(d->dz);
    free(d->scratch);
}

static const char *name(const struct shape *s, const struct conv *c)
{
    static char text[160];
    snprintf(text, sizeof text, "%d x (%d, %d, %d) -> %d, kernel %d, stride %d, algorithm %d", s->n,
             s->in, s->in, s->ci, s->co, s->kernel, s->stride, (int)c->algorithm);
    return text;
}

static void count_rows(size_t row, size_t rows, void *context)
{
    size_t *next = context;
    cr_assert_eq(row, *next, "rows come in order and once");
    *next += rows;
}

static void check_forward(struct data *d, const struct shape *s)
{
    float *z = noise(d->out, 4), *want = noise(d->out, 5);
    size_t rows = 0;
    int half = s->n > 50 ? s->n / 2 : 0; /* also in two ranges */

    conv_forward(&d->c, d->w, d->x, z, 0, half, d->scratch, count_rows, &rows);
    conv_forward(&d->c, d->w, d->x, z, half, s->n, d->scratch, count_rows, &rows);
    conv_forward_reference(&d->c, d->w, d->x, want, s->n);
    cr_assert_eq(rows * (size_t)s->co, d->out);
    assert_close(z, want, d->out, 2e-6, "z of %s", name(s, &d->c));
    free(z);
    free(want);
}

static void check_backward(struct data *d, const struct shape *s, bool add)
{
    float *dx = noise(d->in, 6), *dw = noise(d->weights, 7), *old_dx = copy_of(dx, d->in);
    float *old_dw = copy_of(dw, d->weights), *want_dx = noise(d->in, 8),
          *want_dw = noise(d->weights, 9);
    struct conv_backward b = {.w = d->w,
                              .x = d->x,
                              .dz = d->dz,
                              .dx = dx,
                              .add_dx = add,
                              .dw = dw,
                              .add_dw = add,
                              .scratch = d->scratch};

    conv_backward(&d->c, &b, 0, s->n);
    conv_backward_reference(&d->c, d->w, d->x, d->dz, s->n, want_dx, want_dw);
    for (size_t i = 0; add && i < d->in; i++)
        want_dx[i] += old_dx[i];
    for (size_t i = 0; add && i < d->weights; i++)
        want_dw[i] += old_dw[i];
    assert_close(dx, want_dx, d->in, 2e-6, "dx of %s", name(s, &d->c));
    assert_close(dw, want_dw, d->weights, 5e-6, "dw of %s", name(s, &d->c));
    free(dx);
    free(dw);
    free(old_dx);
    free(old_dw);
    free(want_dx);
    free(want_dw);
}

enum { AS_CHOSEN = -1 };

static void check_all(int algorithm)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct data d = make(&shapes[i]);
        if (algorithm == CONV_PIXEL &&
            (!tile_gemm_takes((size_t)shapes[i].ci) || !tile_gemm_takes((size_t)shapes[i].co))) {
            drop(&d);
            continue;
        }
        if (algorithm != AS_CHOSEN) {
            d.c.algorithm = (enum conv_algorithm)algorithm;
            d.scratch = realloc(d.scratch, conv_scratch_floats(&d.c) * sizeof(float));
        }
        check_forward(&d, &shapes[i]);
        check_backward(&d, &shapes[i], false);
        check_backward(&d, &shapes[i], true);
        drop(&d);
    }
}

Test(conv, chosen_algorithm_equals_the_plain_convolution)
{
    check_all(AS_CHOSEN);
}

Test(conv, openblas_equals_the_plain_convolution)
{
    check_all(CONV_OPENBLAS);
}

Test(conv, gemm_is_chosen)
{
    struct conv c = conv_make(8, 64, 64, 3, 1, 1, 1), grouped = conv_make(8, 64, 64, 3, 1, 1, 16);
    enum conv_algorithm first = c.algorithm;

    c.winograd[CONV_FORWARD] = CONV_WINOGRAD_4;
    conv_choose_gemm(&c, JOB_GEMM_AUTO);
    cr_assert_eq(c.algorithm, first);
    cr_assert_eq(c.algorithm == CONV_TILE, !strcmp(conv_gemm_name(JOB_GEMM_AUTO), "own"));
    cr_assert_eq(c.winograd[CONV_FORWARD], CONV_WINOGRAD_4);
    conv_choose_gemm(&c, JOB_GEMM_OPENBLAS);
    cr_assert_eq(c.algorithm, CONV_OPENBLAS);
    cr_assert_eq(c.winograd[CONV_FORWARD], CONV_NO_WINOGRAD);
    conv_choose_gemm(&c, JOB_GEMM_OWN);
    cr_assert_eq(c.algorithm, CONV_TILE);
    conv_choose_gemm(&grouped, JOB_GEMM_OPENBLAS);
    cr_assert_eq(grouped.algorithm, CONV_GROUPED);
}

Test(conv, own_tile_equals_the_plain_convolution)
{
    check_all(CONV_TILE);
}

Test(conv, by_pixel_equals_the_plain_convolution)
{
    check_all(CONV_PIXEL);
}

/* Groups of 4 to 64 channels, several slices of them, strides, and rows of every strip length. */
Test(conv, groups_equal_the_plain_convolution)
{
    static const struct shape grouped[] = {
        {2, 31, 32,  32,  3, 1, 1, 8 },
        {1, 28, 64,  64,  3, 2, 1, 16},
        {2, 9,  32,  32,  3, 2, 1, 4 },
        {2, 7,  64,  64,  3, 1, 1, 8 },
        {3, 6,  64,  64,  3, 2, 1, 4 },
        {2, 7,  64,  64,  3, 1, 1, 2 },
        {2, 5,  128, 128, 3, 2, 1, 2 },
        {2, 1,  64,  64,  3, 1, 1, 2 },
        {1, 2,  64,  64,  3, 2, 1, 16},
        {1, 14, 128, 128, 3, 1, 1, 32},
    };
    for (size_t i = 0; i < sizeof grouped / sizeof grouped[0]; i++) {
        struct data d = make(&grouped[i]);
        cr_assert_eq(d.c.algorithm, CONV_GROUPED);
        cr_assert(conv_grouped_takes(&d.c), "%s", name(&grouped[i], &d.c));
        check_forward(&d, &grouped[i]);
        check_backward(&d, &grouped[i], false);
        check_backward(&d, &grouped[i], true);
        drop(&d);
    }
}

Test(conv, groups_of_other_shapes_are_told)
{
    struct conv odd = conv_make(8, 48, 48, 3, 1, 1, 16), five = conv_make(8, 64, 64, 5, 1, 2, 16);
    struct conv wider = conv_make(8, 64, 128, 3, 1, 1, 16);
    cr_assert(!conv_grouped_takes(&odd));
    cr_assert(!conv_grouped_takes(&five));
    cr_assert(!conv_grouped_takes(&wider));
}

/* A tile holds 2 MiB: so many rows that several are needed, with the hooks called for each. */
Test(conv, many_tiles)
{
    struct shape s = {2, 40, 32, 32, 3, 1, 1, 1}, point = {3, 80, 32, 64, 1, 1, 0, 1};
    struct data d = make(&s), p = make(&point);
    check_forward(&d, &s);
    check_backward(&d, &s, false);
    check_forward(&p, &point);
    check_backward(&p, &point, true);
    drop(&d);
    drop(&p);
}

/* Tiles that stick out, single pixels, several groups of tiles, both sides of a batch. */
static const struct shape winograd_shapes[] = {
    {2,  1,  32, 32, 3, 1, 1, 1},
    {3,  2,  32, 64, 3, 1, 1, 1},
    {1,  4,  64, 32, 3, 1, 1, 1},
    {2,  7,  64, 96, 3, 1, 1, 1},
    {2,  14, 96, 32, 3, 1, 1, 1},
    {51, 5,  32, 32, 3, 1, 1, 1},
};

static void check_winograd(const struct shape *s, enum conv_winograd forward,
                           enum conv_winograd data, enum conv_winograd weights)
{
    struct data d = make(s);
    cr_assert(conv_winograd_takes(&d.c), "%s", name(s, &d.c));
    d.c.winograd[CONV_FORWARD] = forward;
    d.c.winograd[CONV_DATA] = data;
    d.c.winograd[CONV_WEIGHTS] = weights;
    d.scratch = realloc(d.scratch, conv_scratch_floats(&d.c) * sizeof(float));
    check_forward(&d, s);
    check_backward(&d, s, false);
    check_backward(&d, s, true);
    drop(&d);
}

Test(conv, winograd_equals_the_plain_convolution)
{
    for (size_t i = 0; i < sizeof winograd_shapes / sizeof winograd_shapes[0]; i++) {
        check_winograd(&winograd_shapes[i], CONV_WINOGRAD_2, CONV_WINOGRAD_2, CONV_WINOGRAD_2);
        check_winograd(&winograd_shapes[i], CONV_WINOGRAD_4, CONV_WINOGRAD_4, CONV_WINOGRAD_4);
    }
}

Test(conv, each_direction_has_its_own_way)
{
    for (size_t i = 0; i < sizeof winograd_shapes / sizeof winograd_shapes[0]; i++) {
        check_winograd(&winograd_shapes[i], CONV_WINOGRAD_2, CONV_NO_WINOGRAD, CONV_WINOGRAD_4);
        check_winograd(&winograd_shapes[i], CONV_NO_WINOGRAD, CONV_WINOGRAD_4, CONV_NO_WINOGRAD);
    }
}

static void count_pixels(size_t row, size_t rows, void *context)
{
    size_t *count = context;
    (void)row;
    *count += rows;
}

/* All parts of a stage in turn, from the last to the first: none may need another's. */
static void run_stages(const struct conv *c, const struct data *d, const struct conv_backward *b,
                       float *z, int images, int parts)
{
    int forward = conv_forward_stages(c, images), backward = conv_backward_stages(c, images, true);
    size_t pixels = 0;

    cr_assert_gt(forward, 4, "several groups of tiles");
    cr_assert_gt(backward, 7);
    for (int i = 0; i < forward; i++)
        for (int part = parts - 1; part >= 0; part--)
            conv_forward_stage(c, d->w, d->x, z, images, i, (struct conv_share){part, parts},
                               d->scratch, count_pixels, &pixels);
    cr_assert_eq(pixels * (size_t)c->out_channels, d->out);
    for (int i = 0; i < backward; i++)
        for (int part = parts - 1; part >= 0; part--)
            conv_backward_stage(c, b, images, i, (struct conv_share){part, parts});
}

static void check_stages(const struct shape *s, int parts)
{
    struct data d = make(s);
    for (int i = 0; i < CONV_DIRECTIONS; i++)
        d.c.winograd[i] = CONV_WINOGRAD_4;
    d.scratch = realloc(d.scratch, conv_scratch_floats(&d.c) * sizeof(float));
    float *z = noise(d.out, 4), *want_z = noise(d.out, 5), *dx = noise(d.in, 6),
          *want_dx = copy_of(dx, d.in), *dw = noise(d.weights, 8),
          *want_dw = copy_of(dw, d.weights);
    size_t done = 0;
    struct conv_backward b = {.w = d.w,
                              .x = d.x,
                              .dz = d.dz,
                              .dx = want_dx,
                              .add_dx = true,
                              .dw = want_dw,
                              .add_dw = true,
                              .scratch = d.scratch};

    conv_forward(&d.c, d.w, d.x, want_z, 0, s->n, d.scratch, NULL, NULL);
    conv_backward(&d.c, &b, 0, s->n);
    b.dx = dx;
    b.dw = dw;
    b.done = count_pixels;
    b.context = &done;
    run_stages(&d.c, &d, &b, z, s->n, parts);
    cr_assert_eq(done * (size_t)s->ci, d.in);
    assert_close(z, want_z, d.out, 1e-6, "z of %s", name(s, &d.c));
    assert_close(dx, want_dx, d.in, 1e-6, "dx of %s", name(s, &d.c));
    assert_close(dw, want_dw, d.weights, 5e-6, "dw of %s", name(s, &d.c));
    float *memory[] = {z, want_z, dx, want_dx, dw, want_dw};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        free(memory[i]);
    drop(&d);
}

Test(conv, threads_share_products_with_large_weights)
{
    struct shape several = {13, 14, 192, 160, 3, 1, 1, 1}, odd = {25, 9, 160, 192, 3, 1, 1, 1};
    struct conv small = conv_make(56, 64, 64, 3, 1, 1, 1),
                direct = conv_make(7, 512, 512, 3, 1, 1, 1);

    check_stages(&several, 2);
    check_stages(&odd, 7);
    for (int i = 0; i < CONV_DIRECTIONS; i++)
        small.winograd[i] = CONV_WINOGRAD_4;
    cr_assert_eq(conv_forward_stages(&small, 16) + conv_backward_stages(&small, 16, true), 0);
    cr_assert_eq(conv_forward_stages(&direct, 16) + conv_backward_stages(&direct, 16, true), 0);
}

Test(conv, winograd_is_for_padded_3x3_of_stride_1)
{
    struct conv strided = conv_make(8, 64, 64, 3, 2, 1, 1), bare = conv_make(8, 64, 64, 3, 1, 0, 1);
    struct conv point = conv_make(8, 64, 64, 1, 1, 0, 1), odd = conv_make(8, 64, 65, 3, 1, 1, 1);
    struct conv grouped = conv_make(8, 64, 64, 3, 1, 1, 8);
    cr_assert(!conv_winograd_takes(&strided));
    cr_assert(!conv_winograd_takes(&bare));
    cr_assert(!conv_winograd_takes(&point));
    cr_assert(!conv_winograd_takes(&odd));
    cr_assert(!conv_winograd_takes(&grouped));
}

struct distance {
    double rms, most; /* of the largest element */
};

static struct distance distance_of(const float *have, const float *want, size_t n)
{
    double squares = 0, most = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)have[i] - want[i]);
        squares += d * d;
        most = fmax(most, d);
        largest = fmax(largest, fabs((double)want[i]));
    }
    return (struct distance){sqrt(squares / (double)n) / largest, most / largest};
}

/* What conv.h, the job option's help and the man page say: against sums in double. */
static void check_stated_error(enum conv_winograd m, double rms, double most)
{
    struct shape s = {2, 14, 256, 32, 3, 1, 1, 1};
    struct data d = make(&s);
    float *z = noise(d.out, 4), *want_z = noise(d.out, 5), *dx = noise(d.in, 6),
          *want_dx = noise(d.in, 7), *dw = noise(d.weights, 8), *want_dw = noise(d.weights, 9);
    for (int i = 0; i < CONV_DIRECTIONS; i++)
        d.c.winograd[i] = m;
    d.scratch = realloc(d.scratch, conv_scratch_floats(&d.c) * sizeof(float));
    struct conv_backward b = {
        .w = d.w, .x = d.x, .dz = d.dz, .dx = dx, .dw = dw, .scratch = d.scratch};

    conv_forward(&d.c, d.w, d.x, z, 0, s.n, d.scratch, NULL, NULL);
    conv_backward(&d.c, &b, 0, s.n);
    conv_forward_reference(&d.c, d.w, d.x, want_z, s.n);
    conv_backward_reference(&d.c, d.w, d.x, d.dz, s.n, want_dx, want_dw);
    struct distance all[] = {distance_of(z, want_z, d.out), distance_of(dx, want_dx, d.in),
                             distance_of(dw, want_dw, d.weights)};
    for (int i = 0; i < 3; i++)
        cr_assert(all[i].rms <= rms && all[i].most <= most, "F(%d), direction %d: rms %g, most %g",
                  (int)m, i, all[i].rms, all[i].most);
    float *memory[] = {z, want_z, dx, want_dx, dw, want_dw};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        free(memory[i]);
    drop(&d);
}

Test(conv, rounding_errors_are_as_stated)
{
    check_stated_error(CONV_NO_WINOGRAD, 1.5e-7, 1e-6);
    check_stated_error(CONV_WINOGRAD_2, 2e-7, 1.5e-6);
    check_stated_error(CONV_WINOGRAD_4, 4e-7, 3e-6);
}
