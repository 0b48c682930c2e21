#include "worker/layers/linear.h"

#include <string.h>

#include "worker/kernels/dry_run.h"
#include "worker/kernels/gemm.h"

void linear_forward(const struct linear *l, const float *w, const float *b, const float *x,
                    const struct parallel_block *of, float *y)
{
    float *to = y + of->row * l->out + of->column;

    for (size_t i = 0; i < of->rows && !dry_run; i++)
        memcpy(to + i * l->out, b + of->column, of->columns * sizeof *y);
    gemm_nt(of->rows, of->columns, l->in, x + of->row * l->in, l->in, w + of->column * l->in, l->in,
            to, l->out, true);
}

void linear_weight_gradients(const struct linear *l, const float *x, const float *dy, size_t n,
                             const struct parallel_block *of, float *dw, float *db, bool add)
{
    gemm_tn(of->rows, of->columns, n, dy + of->row, l->out, x + of->column, l->in,
            dw + of->row * l->in + of->column, l->in, add);
    for (size_t j = of->row; j < of->row + of->rows && of->column == 0 && !dry_run; j++) {
        double sum = add ? db[j] : 0;
        for (size_t i = 0; i < n; i++)
            sum += dy[i * l->out + j];
        db[j] = (float)sum;
    }
}

void linear_input_gradient(const struct linear *l, const float *w, const float *dy,
                           const struct parallel_block *of, float *dx)
{
    gemm_nn(of->rows, of->columns, l->out, dy + of->row * l->out, l->out, w + of->column, l->in,
            dx + of->row * l->in + of->column, l->in, false);
}
