#include "worker/kernels/gemm.h"

#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "common/run/trace.h"
#include "worker/kernels/isa.h"
#include "worker/team/dry_run.h"
#include "worker/team/parallel.h"

void gemm_single_threaded(void)
{
    openblas_set_num_threads(1);
}

#define BUFFER_BYTES ((size_t)129 << 20) /* upper bound; 0.3.21 requests 128 MiB and 4 KiB */
/* Long enough for the threads to overlap, so that OpenBLAS takes a buffer for each (a matter of
 * timing); larger products would touch more of each buffer. */
#define PRODUCT_SIDE 128

struct reserve {
    const float *a; /* (PRODUCT_SIDE, PRODUCT_SIDE) */
    float *c;       /* (threads, PRODUCT_SIDE, PRODUCT_SIDE) */
};

static void gemm_reserve_one(struct parallel_share share, void *context)
{
    struct reserve *r = context;
    const int n = PRODUCT_SIDE;

    parallel_barrier(share);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0f, r->a, n, r->a, n, 0.0f,
                r->c + (size_t)share.part * PRODUCT_SIDE * PRODUCT_SIDE, n);
}

int gemm_reserve(int threads, struct error *e)
{
    size_t bytes = (size_t)threads * BUFFER_BYTES, square = (size_t)PRODUCT_SIDE * PRODUCT_SIDE;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED)
        return error_set(e, ERR_NO_MEMORY,
                         "no memory for the buffers of OpenBLAS: %d x %zu MiB of address space",
                         threads, BUFFER_BYTES >> 20);
    munmap(memory, bytes);
    float *squares = calloc((size_t)threads + 1, square * sizeof *squares);
    if (!squares)
        return error_set(e, ERR_NO_MEMORY, "no memory for a product of matrices");
    struct reserve r = {.a = squares, .c = squares + square};
    gemm_single_threaded();
    parallel_team(threads, gemm_reserve_one, &r);
    free(squares);
    return 0;
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

    sscanf(openblas_get_config(), "OpenBLAS %11s", version);
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

const char *isa_level(void)
{
    return ISA_NAME;
}
