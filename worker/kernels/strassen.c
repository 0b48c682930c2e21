#include "worker/kernels/strassen.h"

#include "worker/kernels/tile_gemm.h"
#include "worker/kernels/tile_size.h"
#include "worker/team/dry_run.h"

/* Quarters of a matrix; NO: no second term. */
enum quarter { Q11, Q12, Q21, Q22, NO };

/* (a + a_sign a_second) (b + b_sign b_second) goes to c and, times c_sign, to c_second. The first
 * products to reach a quarter overwrite it. */
struct term {
    enum quarter a, a_second, b, b_second, c, c_second;
    float a_sign, b_sign, c_sign;
    bool first, first_second;
};

enum { PRODUCTS = 7 };

static const struct term terms[PRODUCTS] = {
    {Q11, Q22, Q11, Q22, Q11, Q22, 1,  1,  1,  true,  true },
    {Q21, Q22, Q11, NO,  Q21, Q22, 1,  0,  -1, true,  false},
    {Q11, NO,  Q12, Q22, Q12, Q22, 0,  -1, 1,  true,  false},
    {Q22, NO,  Q21, Q11, Q11, Q21, 0,  -1, 1,  false, false},
    {Q11, Q12, Q22, NO,  Q12, Q11, 1,  0,  -1, false, false},
    {Q21, Q11, Q11, Q12, Q22, NO,  -1, 1,  0,  false, false},
    {Q12, Q22, Q21, Q22, Q11, NO,  -1, 1,  0,  false, false},
};

enum { SIDE_MIN = 256 };

bool strassen_takes(size_t n, size_t k)
{
    return n >= SIDE_MIN && k >= SIDE_MIN && n % 64 == 0 && k % 64 == 0;
}

size_t strassen_panels_floats(size_t n, size_t k)
{
    return n * k / 4 * PRODUCTS;
}

/* Of the second quarter from the first, of a matrix whose quarters have `rows` and `columns`. */
static ptrdiff_t strassen_offset(enum quarter q, size_t rows, size_t columns, size_t ld)
{
    return (ptrdiff_t)((size_t)q / 2 * rows * ld + (size_t)q % 2 * columns);
}

static ptrdiff_t strassen_second(enum quarter q, enum quarter second, size_t rows, size_t columns,
                                 size_t ld)
{
    return second == NO
               ? 0
               : strassen_offset(second, rows, columns, ld) - strassen_offset(q, rows, columns, ld);
}

/* Q12 and Q21 of the packed B become those of the third and fourth product; behind B are those of
 * the first, sixth and seventh. */
void strassen_pack(size_t n, size_t k, size_t first, size_t end, float *panels)
{
    size_t half = k / 2 * TILE_COLUMNS;

    if (dry_run)
        return;
    for (size_t j = first; j < end; j++) {
        float *left = panels + j * 2 * half, *right = left + n * k / 2;
        float *sums = panels + n * k + j * half;
        for (size_t i = 0; i < half; i += VEC) {
            vec b11 = vec_load(left + i), b12 = vec_load(right + i);
            vec b21 = vec_load(left + half + i), b22 = vec_load(right + half + i);
            vec_store(right + i, b12 - b22);
            vec_store(left + half + i, b21 - b11);
            vec_store(sums + i, b11 + b22);
            vec_store(sums + n * k / 4 + i, b11 + b12);
            vec_store(sums + n * k / 2 + i, b21 + b22);
        }
    }
}

/* The B of a product: the packed quarter, or the sum behind B. */
static struct tile_matrix strassen_panels_of(size_t product, size_t n, size_t k,
                                             const float *panels)
{
    static const int sums[PRODUCTS] = {0, -1, -1, -1, -1, 1, 2};
    enum quarter q = terms[product].b;

    if (sums[product] >= 0)
        return (struct tile_matrix){panels + n * k + (size_t)sums[product] * (n * k / 4), k / 2,
                                    false, true};
    return (struct tile_matrix){panels + (size_t)q % 2 * (n * k / 2) +
                                    (size_t)q / 2 * (k / 2 * TILE_COLUMNS),
                                k, false, true};
}

/* The last row of an odd number, from the same panels: a B12 = a (B12 - B22) + a B22. */
static void strassen_last_row(size_t n, size_t k, const float *a, const float *panels, float *c,
                              bool add)
{
    static const struct tile_second none, both = {.a_sign = 1};
    struct tile_second sum = both;
    static const size_t products[4] = {3, 1, 2, 4};

    sum.a = (ptrdiff_t)(k / 2);
    for (size_t i = 0; i < 4; i++) {
        struct tile_matrix b = strassen_panels_of(products[i], n, k, panels);
        tile_gemm_sums(1, n / 2, k / 2, a + (i == 0 ? k / 2 : 0), k, &b, c + i / 2 * (n / 2), n,
                       add || i % 2, i % 2 ? &sum : &none);
    }
}

void strassen_gemm(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *panels,
                   float *c, size_t ldc, bool add)
{
    size_t h = m / 2;

    if (dry_run_products(m, n, k))
        return;
    for (size_t i = 0; h && i < PRODUCTS; i++) {
        const struct term *t = &terms[i];
        struct tile_matrix b = strassen_panels_of(i, n, k, panels);
        struct tile_second second = {.a = strassen_second(t->a, t->a_second, h, k / 2, lda),
                                     .c = strassen_second(t->c, t->c_second, h, n / 2, ldc),
                                     .a_sign = t->a_sign,
                                     .c_sign = t->c_sign,
                                     .add_c = add || !t->first_second};
        tile_gemm_sums(h, n / 2, k / 2, a + strassen_offset(t->a, h, k / 2, lda), lda, &b,
                       c + strassen_offset(t->c, h, n / 2, ldc), ldc, add || !t->first, &second);
    }
    if (m % 2)
        strassen_last_row(n, k, a + (m - 1) * lda, panels, c + (m - 1) * ldc, add);
}

size_t strassen_sums_floats(size_t m, size_t k)
{
    return tile_transposed_sums_floats(m / 2, k / 2);
}

/* A quarter of A^T is the one of A on the other side of the diagonal. */
static enum quarter strassen_turned(enum quarter q)
{
    return q == Q12 ? Q21 : q == Q21 ? Q12 : q;
}

void strassen_gemm_transposed(size_t m, size_t n, size_t k, const float *a, size_t lda,
                              const float *b, size_t ldb, float *c, size_t ldc, bool add,
                              float *sums)
{
    size_t h = k / 2;

    if (dry_run_products(m, n, k))
        return;
    for (size_t i = 0; h && i < PRODUCTS; i++) {
        const struct term *t = &terms[i];
        enum quarter q = strassen_turned(t->a);
        struct tile_matrix of = {b + strassen_offset(t->b, h, n / 2, ldb), ldb, false, false};
        struct tile_second second = {
            .a = strassen_second(q, strassen_turned(t->a_second), h, m / 2, lda),
            .b = strassen_second(t->b, t->b_second, h, n / 2, ldb),
            .c = strassen_second(t->c, t->c_second, m / 2, n / 2, ldc),
            .a_sign = t->a_sign,
            .b_sign = t->b_sign,
            .c_sign = t->c_sign,
            .add_c = add || !t->first_second};
        tile_gemm_transposed_sums(m / 2, n / 2, h, a + strassen_offset(q, h, m / 2, lda), lda, &of,
                                  c + strassen_offset(t->c, m / 2, n / 2, ldc), ldc,
                                  add || !t->first, &second, sums);
    }
    if (k % 2) {
        struct tile_matrix last = {b + (k - 1) * ldb, ldb, false, false};
        tile_gemm_transposed(m, n, 1, a + (k - 1) * lda, lda, &last, c, ldc, add || h);
    }
}
