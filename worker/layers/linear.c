#include "worker/layers/linear.h"

#include <string.h>

#include "worker/kernels/gemm.h"

void linear_forward(const struct linear *l, const float *w, const float *b, const float *x,
                    size_t n, float *y)
{
    for (size_t i = 0; i < n; i++)
        memcpy(y + i * l->out, b, l->out * sizeof *y);
    gemm_nt(n, l->out, l->in, x, l->in, w, l->in, y, l->out, true);
}

void linear_weight_gradients(const struct linear *l, const float *x, const float *dy, size_t n,
                             size_t first, size_t end, float *dw, float *db, bool add)
{
    gemm_tn(end - first, l->in, n, dy + first, l->out, x, l->in, dw + first * l->in, l->in, add);
    for (size_t j = first; j < end; j++) {
        double sum = add ? db[j] : 0;
        for (size_t i = 0; i < n; i++)
            sum += dy[i * l->out + j];
        db[j] = (float)sum;
    }
}

void linear_input_gradient(const struct linear *l, const float *w, const float *dy, size_t n,
                           float *dx)
{
    gemm_nn(n, l->in, l->out, dy, l->out, w, l->in, dx, l->in, false);
}
