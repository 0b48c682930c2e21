#include <signal.h>

#include "tests/reference/reference.h"
#include "tests/unit/worker/compare.h"
#include "worker/kernels/gemm.h"
#include "worker/kernels/tile_gemm.h"
#include "worker/layers/conv.h"
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
    float *x, *w, *dz;
};

static struct conv make_conv(const struct shape *s)
{
    return conv_make(s->in, s->ci, s->co, s->kernel, s->stride, s->pad, s->groups);
}

static struct data make(const struct shape *s)
{
    struct data d = {.c = make_conv(s)};
    d.in = (size_t)(s->n * s->in * s->in * s->ci);
    d.out = (size_t)(s->n * d.c.window.out * d.c.window.out * s->co);
    d.weights = conv_weights(&d.c);
    d.x = noise(d.in, 1);
    d.w = noise(d.weights, 2);
    d.dz = noise(d.out, 3);
    gemm_single_threaded();
    return d;
}

static void drop(struct data *d)
{
    free(d->x);
    free(d->w);
    free(d->dz);
}

static const char *name(const struct shape *s, const struct conv *c)
{
    static char text[160];
    snprintf(text, sizeof text, "%d x (%d, %d, %d) -> %d, kernel %d, stride %d, algorithm %d", s->n,
             s->in, s->in, s->ci, s->co, s->kernel, s->stride, (int)c->algorithm);
    return text;
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

Test(conv, groups_of_other_shapes_are_refused)
{
    struct conv odd = conv_make(8, 48, 48, 3, 1, 1, 16), five = conv_make(8, 64, 64, 5, 1, 2, 16);
    struct conv wider = conv_make(8, 64, 128, 3, 1, 1, 16);
    cr_assert(!conv_grouped_takes(&odd));
    cr_assert(!conv_grouped_takes(&five));
    cr_assert(!conv_grouped_takes(&wider));
}

/* Tiles that stick out, single pixels, several groups of tiles, both sides of a batch; each mixture
 * of tiles of 4 and 3 outputs. */
static const struct shape winograd_shapes[] = {
    {2,  1,  32,  32,  3, 1, 1, 1},
    {3,  2,  32,  64,  3, 1, 1, 1},
    {7,  3,  32,  64,  3, 1, 1, 1},
    {9,  6,  64,  32,  3, 1, 1, 1},
    {2,  8,  32,  32,  3, 1, 1, 1},
    {3,  9,  32,  32,  3, 1, 1, 1},
    {5,  10, 32,  64,  3, 1, 1, 1},
    {2,  11, 64,  32,  3, 1, 1, 1},
    {2,  12, 32,  32,  3, 1, 1, 1},
    {3,  13, 32,  32,  3, 1, 1, 1},
    {1,  15, 32,  32,  3, 1, 1, 1},
    {1,  16, 32,  32,  3, 1, 1, 1},
    {5,  6,  64,  64,  3, 1, 1, 2},
    {2,  14, 256, 256, 3, 1, 1, 4},
    {9,  7,  96,  96,  3, 1, 1, 3},
    {2,  22, 64,  32,  3, 1, 1, 1},
    {1,  28, 32,  32,  3, 1, 1, 1},
    {1,  4,  64,  32,  3, 1, 1, 1},
    {19, 2,  64,  96,  3, 1, 1, 1},
    {9,  2,  64,  64,  3, 1, 1, 2},
    {2,  7,  64,  96,  3, 1, 1, 1},
    {2,  14, 96,  32,  3, 1, 1, 1},
    {51, 5,  32,  32,  3, 1, 1, 1},
};

/* What a team's hooks see: `ready` copies dz to where it is read, `done` notes what came. */
struct hooks {
    const float *dz;
    float *ready_dz; /* NaN before */
    size_t out_channels, channels;
    uint8_t *ready, *done; /* of an element: how often it came */
};

static void make_ready(const struct parallel_block *part, void *context)
{
    const struct hooks *h = context;

    for (size_t r = part->row; r < part->row + part->rows; r++)
        for (size_t j = part->column; j < part->column + part->columns; j++) {
            size_t at = r * h->out_channels + j;
            h->ready_dz[at] = h->dz[at];
            h->ready[at]++;
        }
}

static void note_done(const struct parallel_block *part, void *context)
{
    const struct hooks *h = context;

    for (size_t r = part->row; r < part->row + part->rows; r++)
        for (size_t j = part->column; j < part->column + part->columns; j++)
            h->done[r * h->channels + j]++;
}

static void assert_once(const uint8_t *times, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(times[i], 1, "%s: element %zu came %d times", what, i, times[i]);
}

/* A pass of a team. */
struct team {
    struct data *d;
    const struct shape *s;
    const struct conv_backward *b;
    struct conv_memory memory;
    float *z;
    struct hooks *hooks;
};

static void forward_part(struct parallel_share share, void *context)
{
    const struct team *t = context;
    conv_forward(&t->d->c, t->d->w, t->d->x, t->z, t->s->n, share, &t->memory, note_done, t->hooks);
}

static void backward_part(struct parallel_share share, void *context)
{
    const struct team *t = context;
    conv_backward(&t->d->c, t->b, t->s->n, share, &t->memory);
}

static float *not_numbers(size_t n)
{
    float *p = malloc(n * sizeof *p);
    for (size_t i = 0; i < n; i++)
        p[i] = NAN;
    return p;
}

/* Rounding errors grow with the channels, with the sums that threads add up, and where products are
 * rounded by themselves, as SSE has no multiply-add: there F(4x4) of 14x14 outputs and 96 channels
 * is off by 1.5e-6 at most in tiles of 4, and by 2.05e-6 in tiles of 4 and 3, on average by 2.4e-7
 * and 2.3e-7. */
static double tolerance_of(const struct data *d, int threads)
{
    bool fused = tile_columns() > 8;
    return threads > 1 || d->c.window.channels >= 192 || !fused ? 3e-6 : 2e-6;
}

/* In parts of the largest: the root of the mean square, which a few outputs do not decide. */
static double mean_error(const float *have, const float *want, size_t n)
{
    double squares = 0, largest = 1e-30;

    for (size_t i = 0; i < n; i++) {
        squares += pow((double)have[i] - want[i], 2);
        largest = fmax(largest, fabs((double)want[i]));
    }
    return sqrt(squares / (double)n) / largest;
}

static void check_forward(struct team *t, int threads, const float *want)
{
    struct data *d = t->d;
    struct hooks h = {.channels = (size_t)t->s->co, .done = calloc(d->out, 1)};

    t->z = not_numbers(d->out);
    t->hooks = &h;
    parallel_team(threads, forward_part, t);
    assert_close(t->z, want, d->out, tolerance_of(d, threads), "z of %s by %d threads",
                 name(t->s, &d->c), threads);
    cr_assert_lt(mean_error(t->z, want, d->out), 4e-7, "z of %s by %d threads", name(t->s, &d->c),
                 threads);
    assert_once(h.done, d->out, name(t->s, &d->c));
    free(t->z);
    free(h.done);
}

/* Gradients are added to `old` ones, or overwrite what is no number. */
static float *old_gradients(size_t n, bool add, int seed)
{
    return add ? noise(n, seed) : not_numbers(n);
}

static void assert_gradients(float *have, const float *old, bool add, const float *want, size_t n,
                             double tolerance, const char *what)
{
    float *sum = copy_of(want, n);

    for (size_t i = 0; add && i < n; i++)
        sum[i] += old[i];
    assert_close(have, sum, n, tolerance, "%s", what);
    free(sum);
}

static void check_backward(struct team *t, int threads, bool add, bool wants_dx,
                           const float *want_dx, const float *want_dw)
{
    struct data *d = t->d;
    char text[256];
    struct hooks h = {
        d->dz,           not_numbers(d->out), (size_t)t->s->co, (size_t)t->s->ci, calloc(d->out, 1),
        calloc(d->in, 1)};
    float *dx = old_gradients(d->in, add, 6), *dw = old_gradients(d->weights, add, 7);
    float *old_dx = copy_of(dx, d->in), *old_dw = copy_of(dw, d->weights);
    struct conv_backward b = {.w = d->w,
                              .x = d->x,
                              .dz = h.ready_dz,
                              .dx = wants_dx ? dx : NULL,
                              .add_dx = add,
                              .dw = dw,
                              .add_dw = add,
                              .ready = make_ready,
                              .done = note_done,
                              .context = &h};

    t->b = &b;
    parallel_team(threads, backward_part, t);
    snprintf(text, sizeof text, "gradients of %s by %d threads, add %d, dx %d", name(t->s, &d->c),
             threads, add, wants_dx);
    assert_gradients(dw, old_dw, add, want_dw, d->weights, threads > 1 ? 6e-6 : 5e-6, text);
    assert_once(h.ready, d->out, text);
    if (wants_dx) {
        assert_gradients(dx, old_dx, add, want_dx, d->in, tolerance_of(d, threads), text);
        assert_once(h.done, d->in, text);
    }
    void *memory[] = {h.ready_dz, h.ready, h.done, dx, dw, old_dx, old_dw};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        free(memory[i]);
}

/* What a team's results are compared with. */
struct wanted {
    float *z, *dx, *dw;
};

static struct wanted wanted_of(const struct data *d, const struct shape *s)
{
    struct wanted w = {noise(d->out, 5), noise(d->in, 8), noise(d->weights, 9)};

    conv_forward_reference(&d->c, d->w, d->x, w.z, s->n);
    conv_backward_reference(&d->c, d->w, d->x, d->dz, s->n, w.dx, w.dw);
    return w;
}

static void drop_wanted(struct wanted *w)
{
    free(w->z);
    free(w->dx);
    free(w->dw);
}

static struct conv_memory make_memory(const struct conv *c, int images, int threads)
{
    float **own = malloc((size_t)threads * sizeof *own);
    size_t own_floats = conv_own_floats(c, threads),
           team_floats = conv_team_floats(c, images, threads);

    for (int i = 0; i < threads; i++)
        own[i] = not_numbers(own_floats);
    return (struct conv_memory){not_numbers(team_floats), own, team_floats, own_floats, threads};
}

static void drop_memory(struct conv_memory *m)
{
    for (int i = 0; i < m->threads; i++)
        free(m->own[i]);
    free((void *)m->own);
    free(m->team);
}

static void check_team_of(struct data *d, const struct shape *s, const struct wanted *w,
                          int threads)
{
    struct team t = {.d = d, .s = s, .memory = make_memory(&d->c, s->n, threads)};

    check_forward(&t, threads, w->z);
    check_backward(&t, threads, false, true, w->dx, w->dw);
    check_backward(&t, threads, true, true, w->dx, w->dw);
    check_backward(&t, threads, false, false, w->dx, w->dw);
    drop_memory(&t.memory);
}

static const int team_sizes[] = {1, 2, 3, 5, 7, 22};
enum { TEAM_SIZES = sizeof team_sizes / sizeof team_sizes[0], AS_CHOSEN = -1 };

static void check_shape(const struct shape *s, int algorithm)
{
    struct data d = make(s);
    struct wanted w = wanted_of(&d, s);

    if (algorithm != AS_CHOSEN)
        d.c.algorithm = (enum conv_algorithm)algorithm;
    for (int i = 0; i < TEAM_SIZES; i++)
        check_team_of(&d, s, &w, team_sizes[i]);
    drop_wanted(&w);
    drop(&d);
}

static void check_shapes(int algorithm)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        if (algorithm != CONV_PIXEL ||
            (tile_gemm_takes((size_t)shapes[i].ci) && tile_gemm_takes((size_t)shapes[i].co)))
            check_shape(&shapes[i], algorithm);
}

Test(conv, chosen_algorithm_equals_the_plain_convolution)
{
    check_shapes(AS_CHOSEN);
}

Test(conv, openblas_equals_the_plain_convolution)
{
    check_shapes(CONV_OPENBLAS);
}

Test(conv, own_tile_equals_the_plain_convolution)
{
    static const struct shape larger[] = {
        {1, 14, 288, 96,  1, 1, 0, 1}, /* several blocks of dw */
        {2, 9,  96,  320, 3, 2, 1, 1},
        {8, 24, 32,  64,  1, 1, 0, 1}, /* dw as a whole, and row by row */
        {1, 40, 32,  32,  3, 1, 1, 1}, /* several tiles, with the hooks called for each */
        {2, 40, 32,  32,  3, 1, 1, 1},
        {3, 80, 32,  64,  1, 1, 0, 1},
        {9, 7,  256, 320, 1, 1, 0, 1}, /* by halves, of one thread: odd rows, several tiles */
        {6, 14, 320, 256, 1, 1, 0, 1},
    };
    check_shapes(CONV_TILE);
    for (size_t i = 0; i < sizeof larger / sizeof larger[0]; i++)
        check_shape(&larger[i], CONV_TILE);
}

Test(conv, by_pixel_equals_the_plain_convolution)
{
    static const struct shape many = {340, 2, 32, 64, 3, 1, 1, 1}; /* with up to seven threads */

    check_shapes(CONV_PIXEL);
    check_shape(&many, CONV_PIXEL);
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
        {5, 7,  64,  64,  3, 1, 1, 2 },
        {2, 5,  128, 128, 3, 2, 1, 2 },
        {2, 1,  64,  64,  3, 1, 1, 2 },
        {1, 2,  64,  64,  3, 2, 1, 16},
        {1, 14, 128, 128, 3, 1, 1, 32},
    };
    for (size_t i = 0; i < sizeof grouped / sizeof grouped[0]; i++) {
        struct conv c = make_conv(&grouped[i]);
        cr_assert_eq(c.algorithm, CONV_GROUPED);
        cr_assert(conv_grouped_takes(&c), "%s", name(&grouped[i], &c));
        check_shape(&grouped[i], AS_CHOSEN);
    }
}

static void check_winograd(const struct shape *s, enum conv_winograd forward,
                           enum conv_winograd data, enum conv_winograd weights)
{
    struct data d = make(s);
    struct wanted w = wanted_of(&d, s);

    cr_assert(conv_winograd_takes(&d.c), "%s", name(s, &d.c));
    d.c.winograd[CONV_FORWARD] = forward;
    d.c.winograd[CONV_DATA] = data;
    d.c.winograd[CONV_WEIGHTS] = weights;
    for (int i = 0; i < TEAM_SIZES; i += ONE_OF)
        check_team_of(&d, s, &w, team_sizes[i]);
    drop_wanted(&w);
    drop(&d);
}

/* Tiles of their own, shared ones, several groups of them, large weights. */
Test(conv, winograd_equals_the_plain_convolution)
{
    static const struct shape large = {5, 14, 192, 160, 3, 1, 1, 1};

    for (size_t i = 0; i < sizeof winograd_shapes / sizeof winograd_shapes[0]; i++) {
        check_winograd(&winograd_shapes[i], CONV_WINOGRAD_2, CONV_WINOGRAD_2, CONV_WINOGRAD_2);
        check_winograd(&winograd_shapes[i], CONV_WINOGRAD_4, CONV_WINOGRAD_4, CONV_WINOGRAD_4);
    }
    check_winograd(&large, CONV_WINOGRAD_4, CONV_WINOGRAD_4, CONV_WINOGRAD_4);
}

Test(conv, each_direction_may_use_winograd_or_not)
{
    for (size_t i = 0; i < sizeof winograd_shapes / sizeof winograd_shapes[0]; i++) {
        check_winograd(&winograd_shapes[i], CONV_WINOGRAD_2, CONV_NO_WINOGRAD, CONV_WINOGRAD_4);
        check_winograd(&winograd_shapes[i], CONV_NO_WINOGRAD, CONV_WINOGRAD_4, CONV_NO_WINOGRAD);
    }
}

static void forward_in_too_little_memory(bool own)
{
    struct shape s = {3, 7, 64, 32, 3, 1, 1, 1};
    struct data d = make(&s);
    struct conv_memory memory = make_memory(&d.c, s.n, 2);

    *(own ? &memory.own_floats : &memory.team_floats) -= 1;
    conv_forward(&d.c, d.w, d.x, not_numbers(d.out), s.n, (struct parallel_share){0, 2}, &memory,
                 NULL, NULL);
}

Test(conv, too_little_memory_of_a_thread_is_noticed, .signal = SIGABRT)
{
    forward_in_too_little_memory(true);
}

Test(conv, too_little_memory_of_a_team_is_noticed, .signal = SIGABRT)
{
    forward_in_too_little_memory(false);
}

/* OpenMP may start fewer threads than the memory is for. */
Test(conv, a_smaller_team_than_the_memory_is_for_computes_the_same)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct data d = make(&shapes[i]);
        struct wanted w = wanted_of(&d, &shapes[i]);
        struct team t = {.d = &d, .s = &shapes[i], .memory = make_memory(&d.c, shapes[i].n, 3)};
        check_forward(&t, 1, w.z);
        check_backward(&t, 1, false, true, w.dx, w.dw);
        drop_memory(&t.memory);
        drop_wanted(&w);
        drop(&d);
    }
}

Test(conv, winograd_is_for_padded_3x3_of_stride_1)
{
    struct conv strided = conv_make(8, 64, 64, 3, 2, 1, 1), bare = conv_make(8, 64, 64, 3, 1, 0, 1);
    struct conv point = conv_make(8, 64, 64, 1, 1, 0, 1), odd = conv_make(8, 64, 65, 3, 1, 1, 1);
    struct conv grouped = conv_make(8, 64, 64, 3, 1, 1, 16);
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
static void check_stated_error(const struct shape *of, enum conv_winograd m, double rms,
                               double most)
{
    struct shape s = *of;
    struct data d = make(&s);
    float *z = noise(d.out, 4), *want_z = noise(d.out, 5), *dx = noise(d.in, 6),
          *want_dx = noise(d.in, 7), *dw = noise(d.weights, 8), *want_dw = noise(d.weights, 9);
    for (int i = 0; i < CONV_DIRECTIONS; i++)
        d.c.winograd[i] = m;
    struct conv_memory memory = make_memory(&d.c, s.n, 1);
    struct conv_backward b = {.w = d.w, .x = d.x, .dz = d.dz, .dx = dx, .dw = dw};

    conv_forward(&d.c, d.w, d.x, z, s.n, PARALLEL_ALL, &memory, NULL, NULL);
    conv_backward(&d.c, &b, s.n, PARALLEL_ALL, &memory);
    drop_memory(&memory);
    conv_forward_reference(&d.c, d.w, d.x, want_z, s.n);
    conv_backward_reference(&d.c, d.w, d.x, d.dz, s.n, want_dx, want_dw);
    struct distance all[] = {distance_of(z, want_z, d.out), distance_of(dx, want_dx, d.in),
                             distance_of(dw, want_dw, d.weights)};
    for (int i = 0; i < 3; i++)
        cr_assert(all[i].rms <= rms && all[i].most <= most, "F(%d), direction %d: rms %g, most %g",
                  (int)m, i, all[i].rms, all[i].most);
    float *all_floats[] = {z, want_z, dx, want_dx, dw, want_dw};
    for (size_t i = 0; i < sizeof all_floats / sizeof all_floats[0]; i++)
        free(all_floats[i]);
    drop(&d);
}

Test(conv, rounding_errors_are_as_stated)
{
    static const struct shape direct = {2, 14, 256, 32, 3, 1, 1, 1},
                              tiny = {98, 2, 256, 32, 3, 1, 1, 1},
                              halved = {2, 14, 1024, 512, 1, 1, 0, 1};

    check_stated_error(&direct, CONV_NO_WINOGRAD, 1.5e-7, 1e-6);
    check_stated_error(&direct, CONV_WINOGRAD_2, 2e-7, 1.5e-6);
    check_stated_error(&tiny, CONV_WINOGRAD_2, 2e-7, 1.5e-6);
    check_stated_error(&direct, CONV_WINOGRAD_4, 4e-7, 3e-6);
    check_stated_error(&halved, CONV_NO_WINOGRAD, 2e-7, 2e-6);
}
