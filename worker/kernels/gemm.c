#include "worker/kernels/gemm.h"

#include <cblas.h>
#include <stdio.h>

#include "common/run/trace.h"
#include "worker/team/dry_run.h"

void gemm_single_threaded(void)
{
    openblas_set_num_threads(1);
}

const char *gemm_processor(void)
{
    return openblas_get_corename();
}

const char *gemm_config(void)
{
    return openblas_get_config();
}

void gemm_library(char text[GEMM_LIBRARY_BYTES])
{
    char version[12] = "";

    sscanf(openblas_get_config(), "OpenBLAS %11s",
           version); /* "OpenBLAS 0.3.21 DYNAMIC_ARCH ..." */
    snprintf(text, GEMM_LIBRARY_BYTES, "%s%s%s", version, *version ? " " : "", gemm_processor());
}

static void gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, size_t m, size_t n, size_t k,
                 const float *a, size_t lda, const float *b, size_t ldb, float *c, size_t ldc,
                 bool add)
{
    double piece = trace_begin();

    if (dry_run_products(m, n, k))
        return;
    if (m && n)
        cblas_sgemm(CblasRowMajor, ta, tb, (int)m, (int)n, (int)k, 1.0f, a, (int)lda, b, (int)ldb,
                    add ? 1.0f : 0.0f, c, (int)ldc);
    trace_part(piece, TRACE_GEMM);
}

void gemm_nn(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb,
             float *c, size_t ldc, bool add)
{
    gemm(CblasNoTrans, CblasNoTrans, m, n, k, a, lda, b, ldb, c, ldc, add);
}

void gemm_nt(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb,
             float *c, size_t ldc, bool add)
{
    gemm(CblasNoTrans, CblasTrans, m, n, k, a, lda, b, ldb, c, ldc, add);
}

void gemm_tn(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb,
             float *c, size_t ldc, bool add)
{
    gemm(CblasTrans, CblasNoTrans, m, n, k, a, lda, b, ldb, c, ldc, add);
}
