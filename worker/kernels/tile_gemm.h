/*
 * Matrix products from an own register tile: TILE_ROWS rows by TILE_COLUMNS columns of C stay in
 * registers while k runs. Faster than OpenBLAS where a side is short (64 channels) or few rows meet
 * many weights, which is most of a ResNet. One thread a call.
 *
 * The right-hand matrix is read in panels of TILE_COLUMNS columns: (n / TILE_COLUMNS, k,
 * TILE_COLUMNS). It is either packed beforehand (when many calls use it) or block by block on the
 * way. n must be a multiple of TILE_COLUMNS; tile_gemm_takes says so. The plain twin is
 * gemm_reference.
 */
#ifndef TRAIND_WORKER_KERNELS_TILE_GEMM_H
#define TRAIND_WORKER_KERNELS_TILE_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/kernels/vec.h"

enum {
    TILE_COLUMNS = 2 * VEC,
    /* 2 x 14 sums, two columns and one row element fill the 32 registers of AVX-512; others
       have 16. */
    TILE_ROWS = VEC == 16 ? 14 : 6
};

/* Where the register tile is measured to be as fast as OpenBLAS or faster: AVX-512 (114 against 100
 * GFLOP/s), AVX2 by gcc (the same; clang 14 spills its sums: 42 against 106). Not with SSE alone,
 * where OpenBLAS finds better code when it starts. */
#if defined __AVX512F__ || (defined __AVX2__ && !defined __clang__)
#define TILE_GEMM_PAYS 1
#else
#define TILE_GEMM_PAYS 0
#endif

/* B (k, n) by its storage. */
struct tile_matrix {
    const float *data;
    size_t ld;       /* floats between rows */
    bool transposed; /* data is (n, k) */
    bool packed;     /* data is panels, ld is the k they were packed with */
};

static inline bool tile_gemm_takes(size_t n)
{
    return n % TILE_COLUMNS == 0;
}

/* Writes panels; k_all >= k is the k of the whole matrix, if only some of its rows are packed by
 * this call. */
void tile_pack(const struct tile_matrix *b, size_t k, size_t n, float *panels, size_t k_all);

/* C (m, n) = A (m, k) B, or C += */
void tile_gemm(size_t m, size_t n, size_t k, const float *a, size_t lda,
               const struct tile_matrix *b, float *c, size_t ldc, bool add);

/* C (m, n) = A^T B with A (k, m) */
void tile_gemm_transposed(size_t m, size_t n, size_t k, const float *a, size_t lda,
                          const struct tile_matrix *b, float *c, size_t ldc, bool add);

#endif
