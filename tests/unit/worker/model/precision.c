/* The convolutions of precision bf16 as a team computes them: directly, by Winograd, or each
 * direction in another way. */
#include "tests/reference/reference.h"
#include "tests/unit/worker/compare.h"
#include "tests/unit/worker/tiny.h"
#include "worker/kernels/bf16.h"
#include "worker/model/precision.h"
#include "worker/team/parallel.h"

enum { THREADS_MAX = 5 };

static const struct shape {
    int n, in, ci, co, groups;
} shapes[] = {
    {3, 1,  32, 32, 1}, /* fewer pixels than a tile; fewer images than threads */
    {2, 5,  64, 32, 1},
    {3, 7,  32, 96, 1},
    {3, 7,  64, 64, 2},
    {5, 14, 96, 32, 1},
};

/* As tiny, with groups of channels. */
static const struct arch tiny_pairs = {
    .name = "tiny_pairs",
    .bottleneck = true,
    .blocks = {1, 1, 1, 1},
    .groups = 2,
    .width_per_group = 64
};

/* A model of one 3x3 convolution; the inputs are numbers that bf16 has. */
struct convolution {
    struct model m;
    struct unit u;
    float *own[THREADS_MAX], *dw[THREADS_MAX];
    size_t in, out, weights;
    float *x, *dz, *want_z, *want_dx, *want_dw;
    bf16 *x_16, *dz_16;
};

static float *rounded_noise(size_t n, int64_t seed, bf16 **as_bf16)
{
    float *x = noise(n, seed);
    *as_bf16 = malloc(n * sizeof **as_bf16);
    bf16_from_floats(x, n, *as_bf16);
    bf16_to_floats(*as_bf16, n, x);
    return x;
}

/* Memory that must be written before it is read */
static void *not_a_number(void *p, size_t bytes)
{
    return p ? memset(p, 0xff, bytes) : NULL;
}

static void convolution_make(struct convolution *c, const struct shape *s)
{
    bf16 *w_16;

    *c = (struct convolution){.u = {.conv = conv_make(s->in, s->ci, s->co, 3, 1, 1, s->groups)}};
    c->in = (size_t)(s->n * s->in * s->in * s->ci);
    c->out = (size_t)(s->n * s->in * s->in * s->co);
    c->weights = conv_weights(&c->u.conv);
    c->x = rounded_noise(c->in, 1, &c->x_16);
    c->dz = rounded_noise(c->out, 3, &c->dz_16);
    c->m = (struct model){.ops = &precision_bf16,
                          .n = s->n,
                          .params = rounded_noise(c->weights, 2, &w_16),
                          .unit_count = 1};
    free(w_16);
    c->want_z = noise(c->out, 4);
    c->want_dx = noise(c->in, 5);
    c->want_dw = noise(c->weights, 6);
    conv_forward_reference(&c->u.conv, c->m.params, c->x, c->want_z, s->n);
    conv_backward_reference(&c->u.conv, c->m.params, c->x, c->dz, s->n, c->want_dx, c->want_dw);
}

static void convolution_drop(struct convolution *c)
{
    void *all[] = {c->x, c->dz, c->want_z, c->want_dx, c->want_dw, c->m.params, c->x_16, c->dz_16};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

/* The memory of so many threads; that of the direct ways is counted for a network with larger
 * convolutions. */
static void convolution_allocate(struct convolution *c, const struct shape *s, int threads)
{
    struct model *m = &c->m;
    struct error e;

    m->config = tiny_config(s->groups > 1 ? &tiny_pairs : &tiny, threads);
    m->layouts[0] =
        (struct layout){.image_size = m->config.image_size, .batch = s->n, .units = &c->u};
    m->layout = m->layouts;
    m->layout_count = 1;
    m->own = c->own;
    m->dw = c->dw;
    m->team_floats = m->own_floats = 0;
    cr_assert_eq(m->ops->allocate(m, &e), 0);
    not_a_number(m->team, m->team_floats * sizeof(float));
    for (int t = 0; t < threads; t++)
        not_a_number(m->own[t], m->own_floats * sizeof(float));
}

static void convolution_release(struct convolution *c)
{
    for (int t = 0; t < c->m.config.threads; t++) {
        free(c->own[t]);
        free(c->dw[t]);
        c->own[t] = c->dw[t] = NULL;
    }
    free(c->m.team);
    free(c->m.packed);
    c->m.team = NULL;
}

/* ---- a pass of a team */

struct pass {
    struct convolution *c;
    struct precision_backward b;
    bf16 *x, *dz;          /* not numbers until `ready` */
    uint8_t *ready, *done; /* of an element: how often it came */
    size_t channels;       /* of what is done */
};

static void pass_make_ready(const struct parallel_block *part, void *context)
{
    struct pass *p = context;
    size_t ci = (size_t)p->c->u.conv.window.channels, co = unit_channels(&p->c->u);

    for (size_t r = part->row; r < part->row + part->rows; r++) {
        for (size_t j = part->column; j < part->column + part->columns; j++) {
            p->dz[r * co + j] = p->c->dz_16[r * co + j];
            p->ready[r * co + j]++;
        }
        memcpy(p->x + r * ci, p->c->x_16 + r * ci, ci * sizeof *p->x);
    }
}

static void pass_note_done(const struct parallel_block *part, void *context)
{
    struct pass *p = context;

    for (size_t r = part->row; r < part->row + part->rows; r++)
        for (size_t j = part->column; j < part->column + part->columns; j++)
            p->done[r * p->channels + j]++;
}

static void pass_forward(struct parallel_share share, void *context)
{
    struct pass *p = context;
    struct model *m = &p->c->m;
    m->ops->forward(m, &p->c->u, p->c->x_16, share, pass_note_done, p);
}

static void pass_backward(struct parallel_share share, void *context)
{
    struct pass *p = context;
    struct model *m = &p->c->m;
    m->ops->backward(m, &p->c->u, &p->b, share);
}

static const char *pass_name(const struct convolution *c)
{
    const enum conv_winograd *w = c->u.conv.winograd;
    static char text[160];

    snprintf(text, sizeof text, "%d x (%d, %d, %d) -> %d by %d/%d/%d, %d threads, %s", c->m.n,
             c->u.conv.window.in, c->u.conv.window.in, c->u.conv.window.channels,
             c->u.conv.out_channels, (int)w[CONV_FORWARD], (int)w[CONV_DATA], (int)w[CONV_WEIGHTS],
             c->m.config.threads, bf16_kind_name(bf16_kind()));
    return text;
}

static void pass_assert_once(const uint8_t *times, size_t n, const struct convolution *c)
{
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(times[i], 1, "%s: element %zu came %d times", pass_name(c), i, times[i]);
}

/* Rounded to bf16 once: half a unit of the last of 8 bits. */
static void pass_assert_rounded(const bf16 *have, const float *want, const float *old, size_t n,
                                const struct convolution *c)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)want[i]));
    for (size_t i = 0; i < n; i++) {
        double x = bf16_to_float(have[i]), y = (double)want[i] + (old ? (double)old[i] : 0);
        cr_assert(fabs(x - y) <= 0x1.01p-8 * fabs(y) + 1e-5 * most, "%s: %zu is %g, not %g",
                  pass_name(c), i, x, y);
    }
}

static void check_forward(struct convolution *c)
{
    size_t bytes = c->out * sizeof(bf16);
    struct pass p = {.c = c, .done = calloc(c->out, 1), .channels = unit_channels(&c->u)};
    bf16 *again = not_a_number(malloc(bytes), bytes);

    c->u.z = not_a_number(malloc(bytes), bytes);
    parallel_team(c->m.config.threads, pass_forward, &p);
    pass_assert_rounded(c->u.z, c->want_z, NULL, c->out, c);
    pass_assert_once(p.done, c->out, c);
    bf16 *z = c->u.z;
    c->u.z = again;
    parallel_team(c->m.config.threads, pass_forward, &p);
    cr_assert_arr_eq(again, z, bytes);
    free(p.done);
    free(z);
    free(again);
}

/* Gradients of a pass; the caller frees them. */
static void gradients_of(struct convolution *c, bool add, bool wants_dx, bf16 **dx, float **dw)
{
    size_t in = c->in * sizeof(bf16), out = c->out * sizeof(bf16);
    struct pass p = {.c = c,
                     .x = not_a_number(malloc(in), in),
                     .dz = not_a_number(malloc(out), out),
                     .ready = calloc(c->out, 1),
                     .done = calloc(c->in, 1),
                     .channels = (size_t)c->u.conv.window.channels};

    if (add)
        free(rounded_noise(c->in, 7, dx));
    else
        *dx = not_a_number(malloc(in), in);
    *dw = noise(c->weights, 8);
    c->m.grads = *dw;
    p.b = (struct precision_backward){.x = p.x,
                                      .dz = p.dz,
                                      .dx = wants_dx ? *dx : NULL,
                                      .add_dx = add,
                                      .add_dw = add,
                                      .ready = pass_make_ready,
                                      .done = pass_note_done,
                                      .context = &p};
    parallel_team(c->m.config.threads, pass_backward, &p);
    pass_assert_once(p.ready, c->out, c);
    if (wants_dx)
        pass_assert_once(p.done, c->in, c);
    free(p.x);
    free(p.dz);
    free(p.ready);
    free(p.done);
}

static void check_backward(struct convolution *c, bool add, bool wants_dx)
{
    bf16 *dx, *dx_again, *old_dx_16;
    float *dw, *dw_again, *old_dx = rounded_noise(c->in, 7, &old_dx_16),
                          *want_dw = noise(c->weights, 8);

    for (size_t i = 0; i < c->weights; i++)
        want_dw[i] = c->want_dw[i] + (add ? want_dw[i] : 0);
    gradients_of(c, add, wants_dx, &dx, &dw);
    if (wants_dx)
        pass_assert_rounded(dx, c->want_dx, add ? old_dx : NULL, c->in, c);
    assert_close(dw, want_dw, c->weights, 1e-5, "dw of %s", pass_name(c));
    gradients_of(c, add, wants_dx, &dx_again, &dw_again);
    cr_assert_arr_eq(dx_again, dx, c->in * sizeof *dx);
    cr_assert_arr_eq(dw_again, dw, c->weights * sizeof *dw);
    void *all[] = {dx, dx_again, dw, dw_again, old_dx, old_dx_16, want_dw};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

/* By 1, 2, 3 and 5 threads. */
static void check_teams(const struct shape *s, enum conv_winograd forward, enum conv_winograd data,
                        enum conv_winograd weights)
{
    static const int threads[] = {1, 2, 3, THREADS_MAX};
    struct convolution c;

    convolution_make(&c, s);
    c.u.conv.winograd[CONV_FORWARD] = forward;
    c.u.conv.winograd[CONV_DATA] = data;
    c.u.conv.winograd[CONV_WEIGHTS] = weights;
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        convolution_allocate(&c, s, threads[i]);
        check_forward(&c);
        check_backward(&c, false, true);
        check_backward(&c, true, true);
        check_backward(&c, false, false);
        convolution_release(&c);
    }
    convolution_drop(&c);
}

static void check_kind(enum bf16_kind kind)
{
    static const enum conv_winograd ways[] = {CONV_NO_WINOGRAD, CONV_WINOGRAD_2, CONV_WINOGRAD_4};

    if (!bf16_use(kind))
        cr_skip_test("this processor has no %s", bf16_kind_name(kind));
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int k = 0; k<9; k += ONE_OF> 1 ? 4 : 1)
            check_teams(&shapes[i], ways[k % 3], ways[k % 3], ways[k / 3]);
}

Test(precision_bf16, teams_compute_the_definition_in_any_way_emulated)
{
    check_kind(BF16_EMULATED);
}

Test(precision_bf16, teams_compute_the_definition_in_any_way_by_avx512_bf16)
{
    check_kind(BF16_DOT);
}

Test(precision_bf16, teams_compute_the_definition_in_any_way_by_amx)
{
    check_kind(BF16_AMX);
}
