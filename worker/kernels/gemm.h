/*
 * C (m, n) = op(A) op(B), or C += with add: OpenBLAS, one thread a call. All row-major; ld is the
 * distance of rows in floats.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

/* Makes OpenBLAS run in the calling thread; once a process, before the others. */
void gemm_single_threaded(void);

/* Has OpenBLAS take the buffer of each of so many threads, which it keeps. An error if there is no
 * memory for them: OpenBLAS itself (0.3.21) tries again without end then, and says nothing. */
int gemm_reserve(int threads, struct error *e);

/* The processor that OpenBLAS has chosen its kernels for: "SkylakeX", or "Prescott" where it knows
 * no better. */
const char *gemm_processor(void);

/* How OpenBLAS was built: "OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY SkylakeX MAX_THREADS=64". */
const char *gemm_config(void);

#define GEMM_LIBRARY_BYTES 32
/* The version of OpenBLAS and the processor: "0.3.21 SkylakeX". */
void gemm_library(char text[GEMM_LIBRARY_BYTES]);

/* A (m, k), B (k, n) */
void gemm_nn(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb,
             float *c, size_t ldc, bool add);
/* A (m, k), B (n, k) used transposed */
void gemm_nt(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb,
             float *c, size_t ldc, bool add);
/* A (k, m) used transposed, B (k, n) */
void gemm_tn(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb,
             float *c, size_t ldc, bool add);

/*
 * The kind of processor that the loaded engine was compiled for: libtrainengine is built for
 * several (worker/Makefile.inc), and the dynamic linker loads the best that the processor has.
 */

/* The widest vectors its loops use: "avx512", "avx2", "sse4.2", or "generic" on others. */
const char *isa_level(void);
