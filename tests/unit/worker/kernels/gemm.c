#include <string.h>
#include <sys/resource.h>

#include "tests/reference/reference.h"
#include "tests/unit/worker/compare.h"
#include "worker/kernels/gemm.h"
#include "worker/kernels/strassen.h"
#include "worker/kernels/tile_gemm.h"

/* m, k and what rows are longer than they need be: odd on purpose, and 1024 where rows collide in
 * the cache. */
static const struct {
    size_t m, k, gap;
} shapes[] = {
    {1,   1,   0  },
    {5,   3,   1  },
    {14,  64,  0  },
    {15,  257, 3  },
    {29,  300, 7  },
    {130, 515, 509},
    {300, 700, 324}
};

static void check(bool transpose_a, bool transpose_b, bool packed, bool add, size_t at, size_t n)
{
    size_t m = shapes[at].m, k = shapes[at].k, lda = (transpose_a ? m : k) + shapes[at].gap,
           ldc = n + 5;
    size_t ldb = (transpose_b ? k : n) + 3;
    float *a = noise(lda * (transpose_a ? k : m), 1), *b = noise(ldb * (transpose_b ? n : k), 2);
    float *c = noise(m * ldc, 3), *want = copy_of(c, m * ldc),
          *panels = malloc(k * n * sizeof *panels);
    struct tile_matrix plain = {b, ldb, transpose_b, false}, packs = {panels, k, false, true};

    gemm_reference(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, want, ldc, add);
    if (packed)
        tile_pack(&plain, k, n, panels, k);
    (transpose_a ? tile_gemm_transposed : tile_gemm)(m, n, k, a, lda, packed ? &packs : &plain, c,
                                                     ldc, add);
    assert_close(c, want, m * ldc, 1e-5, "m %zu n %zu k %zu%s%s%s%s", m, n, k,
                 transpose_a ? " A^T" : "", transpose_b ? " B^T" : "", packed ? " packed" : "",
                 add ? " added" : "");
    free(a);
    free(b);
    free(c);
    free(want);
    free(panels);
}

Test(gemm, own_tile_equals_the_reference_product)
{
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (size_t n = tile_columns(); n <= 3 * tile_columns(); n += 2 * tile_columns())
            for (int bits = 0; bits < 16; bits++)
                check(bits & 1, bits & 2, bits & 4, bits & 8, s, n);
}

/* More columns than panels stay in the cache. */
Test(gemm, own_tile_takes_many_rows_by_many_columns)
{
    size_t last = sizeof shapes / sizeof shapes[0] - 1;
    check(false, false, true, true, last, 400 / tile_columns() * tile_columns() + tile_columns());
}

/* Also one row alone, and the odd last one. */
static void check_strassen(size_t m, size_t n, size_t k, bool add)
{
    size_t lda = k + 3, ldc = n + 5;
    float *a = noise(m * lda, 1), *b = noise(k * n, 2), *c = noise(m * ldc, 3);
    float *want = copy_of(c, m * ldc), *panels = malloc(strassen_panels_floats(n, k) * sizeof *a);
    struct tile_matrix plain = {b, n, false, false};

    gemm_reference(false, false, m, n, k, a, lda, b, n, want, ldc, add);
    tile_pack(&plain, k, n, panels, k);
    strassen_pack(n, k, 0, n / tile_columns() / 2, panels);
    strassen_gemm(m, n, k, a, lda, panels, c, ldc, add);
    assert_close(c, want, m * ldc, 3e-6, "m %zu n %zu k %zu, add %d", m, n, k, add);
    free(a);
    free(b);
    free(c);
    free(want);
    free(panels);
}

static void check_strassen_transposed(size_t m, size_t n, size_t k, bool add)
{
    size_t lda = m + 3, ldb = n + 7, ldc = n + 5;
    float *a = noise(k * lda, 1), *b = noise(k * ldb, 2), *c = noise(m * ldc, 3);
    float *want = copy_of(c, m * ldc), *sums = malloc(strassen_sums_floats(m, k) * sizeof *a);

    gemm_reference(true, false, m, n, k, a, lda, b, ldb, want, ldc, add);
    strassen_gemm_transposed(m, n, k, a, lda, b, ldb, c, ldc, add, sums);
    assert_close(c, want, m * ldc, 3e-6, "A^T, m %zu n %zu k %zu, add %d", m, n, k, add);
    free(a);
    free(b);
    free(c);
    free(want);
    free(sums);
}

Test(gemm, strassen_equals_the_reference_product)
{
    static const size_t sides[] = {256, 320, 1088}, odd[] = {1, 2, 31, 130, 1101};

    cr_assert(strassen_takes(256, 320));
    cr_assert(!strassen_takes(192, 256));
    cr_assert(!strassen_takes(256, 288));
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 5; j++)
            for (int add = 0; add < 2; add++) {
                check_strassen(odd[j], sides[i], sides[2 - i], add);
                check_strassen_transposed(sides[i], sides[2 - i], odd[j], add);
            }
}

/* OpenBLAS itself would try again without end. */
Test(gemm, lack_of_memory_for_openblas_is_an_error, .timeout = 600)
{
    struct error e;
    struct rlimit now, small;

    cr_assert_eq(getrlimit(RLIMIT_AS, &now), 0);
    small = (struct rlimit){(rlim_t)256 << 20, now.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_AS, &small), 0);
    cr_assert_eq(gemm_reserve(4, &e), -ERR_NO_MEMORY);
    cr_assert_eq(setrlimit(RLIMIT_AS, &now), 0);
    cr_assert(strstr(e.text, "buffers of OpenBLAS: 4 x"), "%s", e.text);
    cr_assert_eq(gemm_reserve(2, &e), 0, "%s", e.text);
}

Test(gemm, openblas_is_called_with_the_right_layout)
{
    size_t m = 7, n = 5, k = 9;
    float *a = noise(m * k, 1), *b = noise(k * n, 2), *c = noise(m * n, 3);
    float *want = copy_of(c, m * n);

    gemm_single_threaded();
    gemm_nn(m, n, k, a, k, b, n, c, n, true);
    gemm_reference(false, false, m, n, k, a, k, b, n, want, n, true);
    assert_close(c, want, m * n, 1e-5, "nn");
    gemm_nt(m, n, k, a, k, b, k, c, n, false);
    gemm_reference(false, true, m, n, k, a, k, b, k, want, n, false);
    assert_close(c, want, m * n, 1e-5, "nt");
    gemm_tn(m, n, k, a, m, b, n, c, n, false);
    gemm_reference(true, false, m, n, k, a, m, b, n, want, n, false);
    assert_close(c, want, m * n, 1e-5, "tn");
    free(a);
    free(b);
    free(c);
    free(want);
}
