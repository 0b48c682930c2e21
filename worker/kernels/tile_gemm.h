/*
 * Matrix products with a register tile: TILE_ROWS rows by TILE_COLUMNS columns of C stay in
 * registers while k runs. Faster than OpenBLAS if a side is short (64 channels) or few rows meet
 * many weights, which is most of a ResNet. Single-threaded.
 *
 * The right-hand matrix is read in panels: (n / TILE_COLUMNS, k, TILE_COLUMNS), packed in advance
 * or block by block during the product. n must be a multiple of TILE_COLUMNS (tile_gemm_takes).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct tile_matrix {
    const float *data;
    size_t ld;       /* floats between rows */
    bool transposed; /* data is (n, k) */
    bool packed;     /* data is panels, ld is the k they were packed with */
};

size_t tile_columns(void); /* TILE_COLUMNS of the loaded engine, or of the counted one */

bool tile_gemm_takes(size_t n);

/* Writes panels. k_all >= k is the k of the whole matrix, if some of its rows are packed. */
void tile_pack(const struct tile_matrix *b, size_t k, size_t n, float *panels, size_t k_all);

/* C (m, n) = A (m, k) B, or C += */
void tile_gemm(size_t m, size_t n, size_t k, const float *a, size_t lda,
               const struct tile_matrix *b, float *c, size_t ldc, bool add);

/* C (m, n) = A^T B with A (k, m); k may be 0. */
void tile_gemm_transposed(size_t m, size_t n, size_t k, const float *a, size_t lda,
                          const struct tile_matrix *b, float *c, size_t ldc, bool add);

/* The other terms of A' = A + a_sign A[a], B' likewise, and C[c] = c_sign A' B' (+ C[c] if add_c),
 * at an offset in floats from the first; an offset of 0: none. */
struct tile_second {
    ptrdiff_t a, b, c;
    float a_sign, b_sign, c_sign;
    bool add_c;
};

/* C = A' B, or C += A' B, with packed B; k is a multiple of 32. */
void tile_gemm_sums(size_t m, size_t n, size_t k, const float *a, size_t lda,
                    const struct tile_matrix *b, float *c, size_t ldc, bool add,
                    const struct tile_second *second);

/* C = A'^T B', B not packed; m is a multiple of 32. sums: tile_transposed_sums_floats */
size_t tile_transposed_sums_floats(size_t m, size_t k);
void tile_gemm_transposed_sums(size_t m, size_t n, size_t k, const float *a, size_t lda,
                               const struct tile_matrix *b, float *c, size_t ldc, bool add,
                               const struct tile_second *second, float *sums);
