#include "tests/reference/reference.h"

void gemm_reference(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k,
                    const float *a, size_t lda, const float *b, size_t ldb, float *c, size_t ldc,
                    bool add)
{
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = add ? c[i * ldc + j] : 0;
            for (size_t l = 0; l < k; l++)
                sum += (double)(transpose_a ? a[l * lda + i] : a[i * lda + l]) *
                       (transpose_b ? b[j * ldb + l] : b[l * ldb + j]);
            c[i * ldc + j] = (float)sum;
        }
}
