/* C (m, n) = op(A) op(B), or C += with add, by OpenBLAS, single-threaded; ld: floats per row */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

/* Makes OpenBLAS compute in the calling thread. Call once, before the others. */
void gemm_single_threaded(void);

/* Makes OpenBLAS allocate its buffers for `threads` threads. Fails if there is no memory for them,
 * where OpenBLAS itself (0.3.21) would retry forever. */
int gemm_reserve(int threads, struct error *e);

/* The processor OpenBLAS chose its kernels for: "SkylakeX", or "Prescott" if unknown to it */
const char *gemm_processor(void);

/* OpenBLAS's build: "OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY SkylakeX MAX_THREADS=64". */
const char *gemm_config(void);

#define GEMM_LIBRARY_BYTES 32
/* Version and processor of OpenBLAS: "0.3.21 SkylakeX". */
void gemm_library(char text[GEMM_LIBRARY_BYTES]);

/* A (m, k), B (k, n) */
void gemm_nn(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb,
             float *c, size_t ldc, bool add);
/* A (m, k), B (n, k), used transposed */
void gemm_nt(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb,
             float *c, size_t ldc, bool add);
/* A (k, m), used transposed, B (k, n) */
void gemm_tn(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb,
             float *c, size_t ldc, bool add);

/* The ISA level of the loaded engine: "avx512", "avx2", "sse4.2", or "generic" */
const char *isa_level(void);
