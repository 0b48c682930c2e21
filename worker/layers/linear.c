#include "worker/layers/linear.h"

#include <string.h>

#include "worker/kernels/gemm.h"
#include "worker/kernels/tile_gemm.h"
#include "worker/kernels/tile_size.h"
#include "worker/team/dry_run.h"

static bool linear_uses_tile(const struct linear *l)
{
    return l->tile && tile_gemm_takes(l->in);
}

static void linear_add_dots(const struct linear *l, const float *w, const float *x,
                            const struct parallel_block *of, float *y)
{
    if (dry_run_products(of->rows, of->columns, l->in))
        return;
    for (size_t i = of->row; i < of->row + of->rows; i++)
        for (size_t j = of->column; j < of->column + of->columns; j++) {
            const float *a = x + i * l->in, *b = w + j * l->in;
            vec sums = {0};
            for (size_t k = 0; k < l->in; k += VEC)
                sums += vec_load(a + k) * vec_load(b + k);
            for (int k = 0; k < VEC; k++)
                y[i * l->out + j] += sums[k];
        }
}

static void linear_forward_by_tile(const struct linear *l, const float *w, const float *x,
                                   const struct parallel_block *of, float *y)
{
    size_t whole = of->columns / tile_columns() * tile_columns();
    struct tile_matrix b = {w + of->column * l->in, l->in, true, false};
    struct parallel_block rest = {of->row, of->rows, of->column + whole, of->columns - whole};

    tile_gemm(of->rows, whole, l->in, x + of->row * l->in, l->in, &b,
              y + of->row * l->out + of->column, l->out, true);
    linear_add_dots(l, w, x, &rest, y);
}

void linear_forward(const struct linear *l, const float *w, const float *b, const float *x,
                    const struct parallel_block *of, float *y)
{
    float *to = y + of->row * l->out + of->column;

    for (size_t i = 0; i < of->rows && !dry_run; i++)
        memcpy(to + i * l->out, b + of->column, of->columns * sizeof *y);
    if (linear_uses_tile(l))
        linear_forward_by_tile(l, w, x, of, y);
    else
        gemm_nt(of->rows, of->columns, l->in, x + of->row * l->in, l->in, w + of->column * l->in,
                l->in, to, l->out, true);
}

void linear_weight_gradients(const struct linear *l, const float *x, const float *dy, size_t n,
                             const struct parallel_block *of, float *dw, float *db, bool add)
{
    float *to = dw + of->row * l->in + of->column;
    struct tile_matrix b = {x + of->column, l->in, false, false};

    if (linear_uses_tile(l))
        tile_gemm_transposed(of->rows, of->columns, n, dy + of->row, l->out, &b, to, l->in, add);
    else
        gemm_tn(of->rows, of->columns, n, dy + of->row, l->out, x + of->column, l->in, to, l->in,
                add);
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
    float *to = dx + of->row * l->in + of->column;
    struct tile_matrix b = {w + of->column, l->in, false, false};

    if (linear_uses_tile(l))
        tile_gemm(of->rows, of->columns, l->out, dy + of->row * l->out, l->out, &b, to, l->in,
                  false);
    else
        gemm_nn(of->rows, of->columns, l->out, dy + of->row * l->out, l->out, w + of->column, l->in,
                to, l->in, false);
}

void dropout_apply(float *x, size_t count, double rate, struct rng stream)
{
    uint32_t below = (uint32_t)(rate * 0x1p32);
    float scale = (float)(1 / (1 - rate));

    for (size_t i = 0; i < count; i++)
        x[i] = rng_u32(&stream) < below ? 0 : x[i] * scale;
}
