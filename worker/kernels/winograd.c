#include "worker/kernels/winograd.h"

#include "worker/kernels/numbers.h"

#define INLINE ISA_INLINE

/* The points of F(4x4) are +-S and +-L; the product of their squares is 1. */
#define S  (2.0f / 3)
#define L  1.5f
#define S2 (S * S)
#define L2 (L * L)

/* The rows of G at +-S are (1, +-S, S^2) / (2 S^2 (S^2 - L^2)), as at +-L. */
#define GS (1 / (2 * S2 * (S2 - L2)))
#define GL (1 / (2 * L2 * (L2 - S2)))

/* One dimension of each transform, from elements `from` apart to elements `to` apart; `size` of the
 * m outputs are wanted. */

INLINE void input_1d(int m, int size, const vec *x, int from, vec *y, int to)
{
    if (m == WINOGRAD_IMAGE) {
        y[0] = x[0];
        y[to] = x[from];
        y[2 * to] = x[0] + x[from];
        return;
    }
    const vec x0 = x[0], x1 = x[from], x2 = x[2 * from], x3 = x[3 * from];
    if (m == 2) {
        y[0] = x0 - x2;
        y[to] = x1 + x2;
        y[2 * to] = x2 - x1;
        y[3 * to] = x3 - x1;
        return;
    }
    const vec x4 = x[4 * from];
    vec even_s = x4 - L2 * x2, odd_s = x3 - L2 * x1;
    vec even_l = x4 - S2 * x2, odd_l = x3 - S2 * x1;
    y[0] = x4 + x0 - (S2 + L2) * x2;
    y[to] = even_s + S * odd_s;
    y[2 * to] = even_s - S * odd_s;
    y[3 * to] = even_l + L * odd_l;
    y[4 * to] = even_l - L * odd_l;
    if (size == m)
        y[5 * to] = x[5 * from] + x1 - (S2 + L2) * x3;
}

INLINE void output_1d(int m, int size, const vec *x, int from, vec *y, int to)
{
    vec sum_s = x[from] + x[2 * from], difference_s = x[from] - x[2 * from];

    if (m == WINOGRAD_IMAGE) {
        y[0] = sum_s;
        y[to] = x[0] + x[2 * from];
        return;
    }
    if (m == 2) {
        y[0] = x[0] + sum_s;
        y[to] = difference_s + x[3 * from];
        return;
    }
    vec sum_l = x[3 * from] + x[4 * from], difference_l = x[3 * from] - x[4 * from];
    y[0] = x[0] + sum_s + sum_l;
    y[to] = S * difference_s + L * difference_l;
    y[2 * to] = S2 * sum_s + L2 * sum_l;
    if (size == m)
        y[3 * to] = S * S2 * difference_s + L * L2 * difference_l + x[5 * from];
}

INLINE void output_gradient_1d(int m, int size, const vec *x, int from, vec *y, int to)
{
    if (m == WINOGRAD_IMAGE) {
        y[0] = x[from];
        y[to] = x[0];
        y[2 * to] = x[0] + x[from];
        return;
    }
    if (m == 2) {
        y[0] = x[0];
        y[to] = x[0] + x[from];
        y[2 * to] = x[0] - x[from];
        y[3 * to] = x[from];
        return;
    }
    vec even_s = x[0] + S2 * x[2 * from], odd_s = x[from];
    vec even_l = x[0] + L2 * x[2 * from], odd_l = x[from];
    if (size == m) {
        odd_s += S2 * x[3 * from];
        odd_l += L2 * x[3 * from];
        y[5 * to] = x[3 * from];
    }
    y[0] = x[0];
    y[to] = even_s + S * odd_s;
    y[2 * to] = even_s - S * odd_s;
    y[3 * to] = even_l + L * odd_l;
    y[4 * to] = even_l - L * odd_l;
}

INLINE void kernel_1d(int m, int size, const vec *x, int from, vec *y, int to)
{
    const vec x0 = x[0], x1 = x[from], x2 = x[2 * from];

    (void)size;
    if (m == WINOGRAD_IMAGE) {
        y[0] = x0 - x1;
        y[to] = x2 - x1;
        y[2 * to] = x1;
        return;
    }
    y[0] = x0;
    if (m == 2) {
        y[to] = 0.5f * (x0 + x2) + 0.5f * x1;
        y[2 * to] = 0.5f * (x0 + x2) - 0.5f * x1;
        y[3 * to] = x2;
        return;
    }
    vec even_s = GS * x0 + GS * S2 * x2, even_l = GL * x0 + GL * L2 * x2;
    y[to] = even_s + GS * S * x1;
    y[2 * to] = even_s - GS * S * x1;
    y[3 * to] = even_l + GL * L * x1;
    y[4 * to] = even_l - GL * L * x1;
    y[5 * to] = x2;
}

INLINE void kernel_gradient_1d(int m, int size, const vec *x, int from, vec *y, int to)
{
    vec sum_s = x[from] + x[2 * from], difference_s = x[from] - x[2 * from];

    (void)size;
    if (m == WINOGRAD_IMAGE) {
        y[0] = x[0];
        y[to] = x[2 * from] - x[0] - x[from];
        y[2 * to] = x[from];
        return;
    }
    if (m == 2) {
        y[0] = x[0] + 0.5f * sum_s;
        y[to] = 0.5f * difference_s;
        y[2 * to] = 0.5f * sum_s + x[3 * from];
        return;
    }
    vec sum_l = x[3 * from] + x[4 * from], difference_l = x[3 * from] - x[4 * from];
    y[0] = x[0] + GS * sum_s + GL * sum_l;
    y[to] = GS * S * difference_s + GL * L * difference_l;
    y[2 * to] = GS * S2 * sum_s + GL * L2 * sum_l + x[5 * from];
}

typedef void transform_1d(int m, int size, const vec *x, int from, vec *y, int to);

/* How many of a dimension's elements belong to wanted outputs. */
INLINE int wanted(int m, int size, int elements)
{
    return elements - (winograd_outputs(m) - size);
}

/* (in, in) -> (out, out): down the columns, then along the rows. */
INLINE void transform_2d(transform_1d *one, struct winograd_tile t, int in, int out, const vec *x,
                         vec *y)
{
    vec half[WINOGRAD_POSITIONS_MAX];

#pragma GCC unroll 6
    for (int i = 0; i < wanted(t.m, t.columns, in); i++)
        one(t.m, t.rows, x + i, in, half + i, in);
#pragma GCC unroll 6
    for (int i = 0; i < wanted(t.m, t.rows, out); i++)
        one(t.m, t.columns, half + i * in, 1, y + i * out, 1);
}

/* Whether element i of a matrix (side, side) belongs to wanted outputs. */
INLINE bool wants(struct winograd_tile t, int side, int i)
{
    return i / side < wanted(t.m, t.rows, side) && i % side < wanted(t.m, t.columns, side);
}

INLINE void load_pixels(struct winograd_tile t, const void *const *pixels, int side, size_t c,
                        vec *x, enum number_kind kind)
{
#pragma GCC unroll 36
    for (int i = 0; i < side * side; i++)
        if (wants(t, side, i))
            x[i] = number_load(pixels[i], c, kind);
}

INLINE void store_positions(struct winograd_tile t, const vec *y, size_t ld, float *v)
{
#pragma GCC unroll 36
    for (int i = 0; i < (t.m + 2) * (t.m + 2); i++)
        if (wants(t, t.m + 2, i))
            vec_store(v + (size_t)i * ld, y[i]);
}

INLINE void load_positions(struct winograd_tile t, const float *v, size_t ld, vec *x)
{
#pragma GCC unroll 36
    for (int i = 0; i < (t.m + 2) * (t.m + 2); i++)
        if (wants(t, t.m + 2, i))
            x[i] = vec_load(v + (size_t)i * ld);
}

INLINE void store(void *to, size_t c, vec y, bool add, enum number_kind kind)
{
    if (add)
        y += number_load(to, c, kind);
    number_store(to, c, y, kind);
}

/* Calls a function of a tile with constants; arguments follow. */
#define WITH_CONSTANT_TILE(function, t, ...)                                                       \
    (t.m == WINOGRAD_IMAGE           ? function(TILE(WINOGRAD_IMAGE, 2, 2), __VA_ARGS__)           \
     : t.m == 2                      ? function(TILE(2, 2, 2), __VA_ARGS__)                        \
     : t.rows == 4 && t.columns == 4 ? function(TILE(4, 4, 4), __VA_ARGS__)                        \
     : t.rows == 4                   ? function(TILE(4, 4, 3), __VA_ARGS__)                        \
     : t.columns == 4                ? function(TILE(4, 3, 4), __VA_ARGS__)                        \
                                     : function(TILE(4, 3, 3), __VA_ARGS__))
#define TILE(m, rows, columns) ((struct winograd_tile){m, rows, columns})
#define ALL(m)                 TILE(m, winograd_outputs(m), winograd_outputs(m))

INLINE void input(struct winograd_tile t, const void *const *pixels, size_t channels, float *v,
                  size_t ld, enum number_kind kind)
{
    vec x[WINOGRAD_POSITIONS_MAX], y[WINOGRAD_POSITIONS_MAX];

    for (size_t c = 0; c < channels; c += VEC) {
        load_pixels(t, pixels, winograd_inputs(t.m), c, x, kind);
        transform_2d(input_1d, t, winograd_inputs(t.m), t.m + 2, x, y);
        store_positions(t, y, ld, v + c);
    }
}

void winograd_input(struct winograd_tile t, const void *const *pixels, size_t channels, float *v,
                    size_t ld)
{
    WITH_CONSTANT_TILE(input, t, pixels, channels, v, ld, NUMBER_FLOAT);
}

void winograd_bf16_input(struct winograd_tile t, const void *const *pixels, size_t channels,
                         float *v, size_t ld)
{
    WITH_CONSTANT_TILE(input, t, pixels, channels, v, ld, NUMBER_BF16);
}

INLINE void output_tile(struct winograd_tile t, const float *v, size_t ld, size_t channels,
                        void *const *pixels, bool add, enum number_kind kind)
{
    vec x[WINOGRAD_POSITIONS_MAX], y[WINOGRAD_OUTPUTS_MAX];
    int outputs = winograd_outputs(t.m);

    for (size_t c = 0; c < channels; c += VEC) {
        load_positions(t, v + c, ld, x);
        transform_2d(output_1d, t, t.m + 2, outputs, x, y);
#pragma GCC unroll 16
        for (int i = 0; i < outputs * outputs; i++)
            if (wants(t, outputs, i))
                store(pixels[i], c, y[i], add, kind);
    }
}

INLINE void output(struct winograd_tile t, const float *v, size_t ld, size_t channels,
                   void *const *pixels, bool add, enum number_kind kind)
{
    if (add)
        WITH_CONSTANT_TILE(output_tile, t, v, ld, channels, pixels, true, kind);
    else
        WITH_CONSTANT_TILE(output_tile, t, v, ld, channels, pixels, false, kind);
}

void winograd_output(struct winograd_tile t, const float *v, size_t ld, size_t channels,
                     void *const *pixels, bool add)
{
    output(t, v, ld, channels, pixels, add, NUMBER_FLOAT);
}

void winograd_bf16_output(struct winograd_tile t, const float *v, size_t ld, size_t channels,
                          void *const *pixels, bool add)
{
    NUMBER_BF16_CALL(output, t, v, ld, channels, pixels, add);
}

INLINE void output_gradient(struct winograd_tile t, const void *const *pixels, size_t channels,
                            float *v, size_t ld, enum number_kind kind)
{
    vec x[WINOGRAD_OUTPUTS_MAX], y[WINOGRAD_POSITIONS_MAX];

    for (size_t c = 0; c < channels; c += VEC) {
        load_pixels(t, pixels, winograd_outputs(t.m), c, x, kind);
        transform_2d(output_gradient_1d, t, winograd_outputs(t.m), t.m + 2, x, y);
        store_positions(t, y, ld, v + c);
    }
}

void winograd_output_gradient(struct winograd_tile t, const void *const *pixels, size_t channels,
                              float *v, size_t ld)
{
    WITH_CONSTANT_TILE(output_gradient, t, pixels, channels, v, ld, NUMBER_FLOAT);
}

void winograd_bf16_output_gradient(struct winograd_tile t, const void *const *pixels,
                                   size_t channels, float *v, size_t ld)
{
    WITH_CONSTANT_TILE(output_gradient, t, pixels, channels, v, ld, NUMBER_BF16);
}

#define WITH_CONSTANT_SIZE(function, m, ...)                                                       \
    (m == WINOGRAD_IMAGE ? function(WINOGRAD_IMAGE, __VA_ARGS__)                                   \
     : m == 2            ? function(2, __VA_ARGS__)                                                \
                         : function(4, __VA_ARGS__))

INLINE void kernel(int m, const float *w, ptrdiff_t tap_ld, size_t channels, float *u, size_t ld)
{
    vec x[9], y[WINOGRAD_POSITIONS_MAX];

    for (size_t c = 0; c < channels; c += VEC) {
#pragma GCC unroll 9
        for (int i = 0; i < 9; i++)
            x[i] = vec_load(w + i * tap_ld + c);
        transform_2d(kernel_1d, ALL(m), 3, m + 2, x, y);
        store_positions(ALL(m), y, ld, u + c);
    }
}

void winograd_kernel(int m, const float *w, ptrdiff_t tap_ld, size_t channels, float *u, size_t ld)
{
    WITH_CONSTANT_SIZE(kernel, m, w, tap_ld, channels, u, ld);
}

INLINE void kernel_gradient(int m, const float *u, size_t ld, size_t channels, float *dw,
                            size_t tap_ld, bool add)
{
    vec x[WINOGRAD_POSITIONS_MAX], y[9];

    for (size_t c = 0; c < channels; c += VEC) {
        load_positions(ALL(m), u + c, ld, x);
        transform_2d(kernel_gradient_1d, ALL(m), m + 2, 3, x, y);
#pragma GCC unroll 9
        for (size_t i = 0; i < 9; i++)
            store(dw + i * tap_ld, c, y[i], add, NUMBER_FLOAT);
    }
}

void winograd_kernel_gradient(int m, const float *u, size_t ld, size_t channels, float *dw,
                              size_t tap_ld, bool add)
{
    WITH_CONSTANT_SIZE(kernel_gradient, m, u, ld, channels, dw, tap_ld, add);
}
