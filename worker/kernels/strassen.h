/*
 * Strassen's algorithm (1969), one level: a product of matrices by seven products of their halves
 * instead of eight. The sums of halves of A are formed in the copy of a register tile's rows, those
 * of B when it is packed, and each product is added to its one or two quarters of C from registers.
 *
 * Counted as direct products (dry_run.h), so that the shares of a team, which does not use it, are
 * compared with the same work.
 *
 * Rounding errors, in parts of the largest element, for A (392, 1024) and B (1024, 512) of noise:
 * root mean square 1.6e-7 and at most 1.8e-6, where the direct product's are 6e-8 and 6e-7.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether it is faster for a B of (k, n) and some hundred rows. */
bool strassen_takes(size_t n, size_t k);

/* Floats of the packed sums of B. */
size_t strassen_panels_floats(size_t n, size_t k);

/* From panels by tile_pack of a whole B, to which the sums of two panels of [first, end) each and
 * of those n / 2 columns apart are added. panels: strassen_panels_floats. */
void strassen_pack(size_t n, size_t k, size_t first, size_t end, float *panels);

/* C (m, n) = A (m, k) B, or C += */
void strassen_gemm(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *panels,
                   float *c, size_t ldc, bool add);

/* C (m, n) = A^T B with A (k, m) and B (k, n), or C +=. sums: strassen_sums_floats */
void strassen_gemm_transposed(size_t m, size_t n, size_t k, const float *a, size_t lda,
                              const float *b, size_t ldb, float *c, size_t ldc, bool add,
                              float *sums);
size_t strassen_sums_floats(size_t m, size_t k);
