#include <string.h>

#include "tests/reference/reference.h"

/* A matrix of a transform, (rows, columns). */
struct matrix {
    int rows, columns;
    double at[6][6];
};

static double power(double x, int n)
{
    return n ? x * power(x, n - 1) : 1;
}

/* Coefficients of the product of (x - p) over all points but the one left out (-1: none). */
static void polynomial(const double *points, int count, int without, double *c)
{
    int degree = 0;
    memset(c, 0, 6 * sizeof *c);
    c[0] = 1;
    for (int i = 0; i < count; i++) {
        if (i == without)
            continue;
        degree++;
        for (int k = degree; k >= 0; k--)
            c[k] = (k ? c[k - 1] : 0) - points[i] * c[k];
    }
}

/* The product over all other points j of (p_i - p_j). */
static double weight(const double *points, int count, int i)
{
    double product = 1;
    for (int j = 0; j < count; j++)
        product *= j == i ? 1 : points[i] - points[j];
    return product;
}

struct matrices {
    struct matrix a, b, g; /* A, B^T, G */
};

/* Toom-Cook: Lagrange's interpolation at the points, and at infinity. */
static struct matrices matrices_of(int m)
{
    /* Three products for y = (w1 x0 + w2 x1, w0 x0 + w1 x1) */
    static const struct matrices image = {
        {3, 2, {{0, 1}, {1, 0}, {1, 1}}           },
        {3, 2, {{1, 0}, {0, 1}, {1, 1}}           },
        {3, 3, {{1, -1, 0}, {0, -1, 1}, {0, 1, 0}}}
    };
    static const double two[] = {0, 1, -1}, four[] = {0, 2. / 3, -2. / 3, 1.5, -1.5};
    const double *points = m == 2 ? two : four;
    struct matrices all = {
        {m + 2, m,     {{0}}},
        {m + 2, m + 2, {{0}}},
        {m + 2, 3,     {{0}}}
    };

    if (m == WINOGRAD_IMAGE)
        return image;
    for (int i = 0; i <= m; i++) {
        for (int j = 0; j < m; j++)
            all.a.at[i][j] = power(points[i], j);
        for (int j = 0; j < 3; j++)
            all.g.at[i][j] = power(points[i], j) / weight(points, m + 1, i);
        polynomial(points, m + 1, i, all.b.at[i]);
    }
    polynomial(points, m + 1, -1, all.b.at[m + 1]);
    all.a.at[m + 1][m - 1] = all.g.at[m + 1][2] = 1;
    return all;
}

static struct matrix transposed(struct matrix m)
{
    struct matrix t = {m.columns, m.rows, {{0}}};
    for (int i = 0; i < m.rows; i++)
        for (int j = 0; j < m.columns; j++)
            t.at[j][i] = m.at[i][j];
    return t;
}

/* y (rows, rows) = T x T^T */
static void winograd_reference_apply(struct matrix t, const double x[36], double y[36])
{
    for (int i = 0; i < t.rows; i++)
        for (int j = 0; j < t.rows; j++) {
            y[i * t.rows + j] = 0;
            for (int k = 0; k < t.columns; k++)
                for (int l = 0; l < t.columns; l++)
                    y[i * t.rows + j] += t.at[i][k] * x[k * t.columns + l] * t.at[j][l];
        }
}

/* F(2x2)'s row of B^T at 0 has the other sign in winograd.c than here, as has G's: their product is
 * the same. */
static struct matrices signed_matrices(int m)
{
    struct matrices all = matrices_of(m);
    for (int j = 0; m == 2 && j < 4; j++) {
        all.b.at[0][j] *= -1;
        all.g.at[0][j] *= -1;
    }
    return all;
}

/* Whether element i of a matrix (side, side) belongs to wanted outputs. */
static bool wanted(struct winograd_tile t, int side, int i)
{
    int outputs = winograd_outputs(t.m);
    return i / side < side - (outputs - t.rows) && i % side < side - (outputs - t.columns);
}

static void load_wanted(struct winograd_tile t, int side, const float *const *pixels, size_t c,
                        double x[36])
{
    for (int i = 0; i < side * side; i++)
        x[i] = wanted(t, side, i) ? pixels[i][c] : 0;
}

static void store_wanted(struct winograd_tile t, const double y[36], float *v, size_t ld)
{
    for (int i = 0; i < winograd_positions(t.m); i++)
        if (wanted(t, t.m + 2, i))
            v[(size_t)i * ld] = (float)y[i];
}

void winograd_input_reference(struct winograd_tile t, const float *const *pixels, size_t channels,
                              float *v, size_t ld)
{
    double x[36] = {0}, y[36];
    for (size_t c = 0; c < channels; c++) {
        load_wanted(t, winograd_inputs(t.m), pixels, c, x);
        winograd_reference_apply(signed_matrices(t.m).b, x, y);
        store_wanted(t, y, v + c, ld);
    }
}

void winograd_output_reference(struct winograd_tile t, const float *v, size_t ld, size_t channels,
                               float *const *pixels, bool add)
{
    double x[36] = {0}, y[36];
    int side = winograd_outputs(t.m);
    for (size_t c = 0; c < channels; c++) {
        for (int i = 0; i < winograd_positions(t.m); i++)
            x[i] = wanted(t, t.m + 2, i) ? v[(size_t)i * ld + c] : 0;
        winograd_reference_apply(transposed(signed_matrices(t.m).a), x, y);
        for (int i = 0; i < side * side; i++)
            if (wanted(t, side, i))
                pixels[i][c] = (float)(add ? pixels[i][c] + y[i] : y[i]);
    }
}

void winograd_output_gradient_reference(struct winograd_tile t, const float *const *pixels,
                                        size_t channels, float *v, size_t ld)
{
    double x[36] = {0}, y[36];
    for (size_t c = 0; c < channels; c++) {
        load_wanted(t, winograd_outputs(t.m), pixels, c, x);
        winograd_reference_apply(signed_matrices(t.m).a, x, y);
        store_wanted(t, y, v + c, ld);
    }
}

void winograd_kernel_reference(int m, const float *w, ptrdiff_t tap_ld, size_t channels, float *u,
                               size_t ld)
{
    double x[36] = {0}, y[36];
    for (size_t c = 0; c < channels; c++) {
        for (int i = 0; i < 9; i++)
            x[i] = w[i * tap_ld + (ptrdiff_t)c];
        winograd_reference_apply(signed_matrices(m).g, x, y);
        for (int i = 0; i < winograd_positions(m); i++)
            u[(size_t)i * ld + c] = (float)y[i];
    }
}

void winograd_kernel_gradient_reference(int m, const float *u, size_t ld, size_t channels,
                                        float *dw, size_t tap_ld, bool add)
{
    double x[36] = {0}, y[36];
    for (size_t c = 0; c < channels; c++) {
        for (int i = 0; i < winograd_positions(m); i++)
            x[i] = u[(size_t)i * ld + c];
        winograd_reference_apply(transposed(signed_matrices(m).g), x, y);
        for (size_t i = 0; i < 9; i++)
            dw[i * tap_ld + c] = (float)(add ? dw[i * tap_ld + c] + y[i] : y[i]);
    }
}
