#include "tests/reference/reference.h"
#include "tests/unit/worker/compare.h"
#include "worker/kernels/gemm.h"
#include "worker/layers/linear.h"

enum { N = 7, IN = 37, OUT = 19 };

static const struct linear layer = {IN, OUT, false};
static const struct parallel_block all = {0, OUT, 0, IN}; /* of dw */

struct data {
    float *w, *b, *x, *dy;
};

static struct data make_linear(void)
{
    gemm_single_threaded();
    return (struct data){noise(OUT * IN, 1), noise(OUT, 2), noise(N * IN, 3), noise(N * OUT, 4)};
}

static void drop_linear(struct data *d)
{
    free(d->w);
    free(d->b);
    free(d->x);
    free(d->dy);
}

Test(linear, forward_equals_the_definition)
{
    struct data d = make_linear();
    float y[N * OUT], want[N * OUT];

    for (int part = 0; part < 3; part++) {
        struct parallel_block of[PARALLEL_BLOCKS];
        int blocks = parallel_matrix(N, N, OUT, 8, (struct parallel_share){part, 3}, of);
        for (int i = 0; i < blocks; i++)
            linear_forward(&layer, d.w, d.b, d.x, &of[i], y);
    }
    linear_forward_reference(&layer, d.w, d.b, d.x, N, want);
    assert_close(y, want, N * OUT, 1e-5, "y");
    drop_linear(&d);
}

/* Whatever parts the threads take. */
Test(linear, gradients_equal_the_definition)
{
    struct data d = make_linear();
    float dw[OUT * IN], db[OUT], dx[N * IN], want_dw[OUT * IN], want_db[OUT], want_dx[N * IN];

    linear_backward_reference(&layer, d.w, d.x, d.dy, N, want_dw, want_db, want_dx);
    for (int part = 0; part < 3; part++) {
        struct parallel_block of[PARALLEL_BLOCKS];
        struct parallel_share share = {part, 3};
        int blocks = parallel_matrix(OUT, OUT, IN, 16, share, of);
        for (int i = 0; i < blocks; i++)
            linear_weight_gradients(&layer, d.x, d.dy, N, &of[i], dw, db, false);
        blocks = parallel_matrix(N, N, IN, 16, share, of);
        for (int i = 0; i < blocks; i++)
            linear_input_gradient(&layer, d.w, d.dy, &of[i], dx);
    }
    assert_close(dw, want_dw, OUT * IN, 1e-5, "dw");
    assert_close(db, want_db, OUT, 1e-5, "db");
    assert_close(dx, want_dx, N * IN, 1e-5, "dx");
    drop_linear(&d);
}

Test(linear, weight_gradients_are_added)
{
    struct data d = make_linear();
    float dw[OUT * IN], db[OUT], want_dw[OUT * IN], want_db[OUT];

    linear_weight_gradients(&layer, d.x, d.dy, N, &all, want_dw, want_db, false);
    memcpy(dw, want_dw, sizeof dw);
    memcpy(db, want_db, sizeof db);
    linear_weight_gradients(&layer, d.x, d.dy, N, &all, dw, db, true);
    for (int i = 0; i < OUT * IN; i++)
        want_dw[i] *= 2;
    for (int i = 0; i < OUT; i++)
        want_db[i] *= 2;
    assert_close(dw, want_dw, OUT * IN, 1e-6, "dw");
    assert_close(db, want_db, OUT, 1e-6, "db");
    drop_linear(&d);
}

/* By the own tile, of parts that are no whole panels. */
Test(linear, the_own_tile_equals_the_definition)
{
    enum { WIDE = 64, OUTPUTS = 45 };
    static const struct linear tiled = {WIDE, OUTPUTS, true};
    float *w = noise(OUTPUTS * WIDE, 1), *b = noise(OUTPUTS, 2), *x = noise(N * WIDE, 3);
    float *dy = noise(N * OUTPUTS, 4), y[N * OUTPUTS], want_y[N * OUTPUTS];
    float dw[OUTPUTS * WIDE], db[OUTPUTS], dx[N * WIDE];
    float want_dw[OUTPUTS * WIDE], want_db[OUTPUTS], want_dx[N * WIDE];

    linear_forward_reference(&tiled, w, b, x, N, want_y);
    linear_backward_reference(&tiled, w, x, dy, N, want_dw, want_db, want_dx);
    for (int part = 0; part < 4; part++) {
        struct parallel_block of[PARALLEL_BLOCKS];
        struct parallel_share share = {part, 4};
        int blocks = parallel_matrix(N, 2, OUTPUTS, 32, share, of);
        for (int i = 0; i < blocks; i++)
            linear_forward(&tiled, w, b, x, &of[i], y);
        blocks = parallel_matrix(OUTPUTS, OUTPUTS, WIDE, 32, share, of);
        for (int i = 0; i < blocks; i++)
            linear_weight_gradients(&tiled, x, dy, N, &of[i], dw, db, false);
        blocks = parallel_matrix(N, 2, WIDE, 32, share, of);
        for (int i = 0; i < blocks; i++)
            linear_input_gradient(&tiled, w, dy, &of[i], dx);
    }
    assert_close(y, want_y, N * OUTPUTS, 1e-5, "y");
    assert_close(dw, want_dw, OUTPUTS * WIDE, 1e-5, "dw");
    assert_close(db, want_db, OUTPUTS, 1e-5, "db");
    assert_close(dx, want_dx, N * WIDE, 1e-5, "dx");
    float *memory[] = {w, b, x, dy};
    for (int i = 0; i < 4; i++)
        free(memory[i]);
}
